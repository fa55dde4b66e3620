"""The walk of a partner with the generated client; mypy checks it before it runs.

What a failed step got stands in its message. Money is compared as text, as it is sent.
"""

import os
import time
from base64 import b64encode
from threading import Event
from typing import TypeVar
from uuid import UUID

import httpx
from carrier_lookup_plans_and_links_client import AuthenticatedClient
from carrier_lookup_plans_and_links_client.api.authentication import issue_token
from carrier_lookup_plans_and_links_client.api.links import (
    create_link,
    list_link_history,
    list_links,
)
from carrier_lookup_plans_and_links_client.api.number_lookup import create_job, look_up, read_job
from carrier_lookup_plans_and_links_client.api.plans import list_plans, read_plan_coverage
from carrier_lookup_plans_and_links_client.api.wallet import read_wallet
from carrier_lookup_plans_and_links_client.models import (
    BulkBody,
    CoverageReply,
    CoverageType,
    Job,
    JobAcceptedReply,
    JobReply,
    KnownErrorCode,
    KnownJobStatus,
    KnownLinkStatus,
    KnownNetworkReason,
    LinkBody,
    LinkPageReply,
    LookupReply,
    NetworkError,
    NewLinkReply,
    Plan,
    PlanPageReply,
    Token,
    TokenForm,
    TokenFormGrantType,
    TransactionPageReply,
    ValidationProblem,
    WalletReply,
)
from carrier_lookup_plans_and_links_client.types import Unset
from recipes import KeptToken, Repeating, connect, every_transaction

URL = os.environ["URL"]
SECRETS = (os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])
JOB_SECONDS_MAX = 60
POLL_S = 0.2

Kind = TypeVar("Kind")


def be(kind: type[Kind], reply: object) -> Kind:
    """Return a reply that is what it should be."""
    assert isinstance(reply, kind), reply
    return reply


class Losing(httpx.BaseTransport):
    """Loses the first reply of each path in `losing`, after the service has done what it says."""

    def __init__(self, *losing: str) -> None:
        self.inner = httpx.HTTPTransport()
        self.losing = {*losing}
        self.sent: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.sent.append(f"{request.method} {path}")
        reply = self.inner.handle_request(request)
        if path not in self.losing:
            return reply
        self.losing.remove(path)
        message = "lost"
        raise httpx.ReadError(message, request=request)


def get_a_token() -> None:
    pair = b64encode(":".join(SECRETS).encode()).decode()
    form = TokenForm(TokenFormGrantType.CLIENT_CREDENTIALS)
    with AuthenticatedClient(base_url=URL, token=pair, prefix="Basic") as client:
        assert be(Token, issue_token.sync(client=client, body=form)).expires_in > 0


def renew_a_token() -> None:
    auth, wire = KeptToken(URL, *SECRETS), Losing()
    options = {"auth": auth, "transport": wire}
    with AuthenticatedClient(base_url=URL, token="", httpx_args=options) as client:
        be(WalletReply, read_wallet.sync(client=client))
        auth.token = "revoked"
        be(WalletReply, read_wallet.sync(client=client))
        auth.renew_at = time.monotonic()
        be(WalletReply, read_wallet.sync(client=client))
        be(WalletReply, read_wallet.sync(client=client))
    token, wallet = "POST /auth/token", "GET /v1/wallet"
    assert wire.sent == [token, wallet, wallet, token, wallet, token, wallet, wallet]


def look_up_a_number(client: AuthenticatedClient) -> None:
    found = be(LookupReply, look_up.sync(client=client, phone_number="+447400123456"))
    carrier = found.data.carrier
    assert found.data.country_code == "GB"
    assert not isinstance(carrier, Unset)
    assert carrier.name
    problem = be(ValidationProblem, look_up.sync(client=client, phone_number="seven")).error
    assert problem.code is KnownErrorCode.VALIDATION_ERROR
    assert not isinstance(problem.details, Unset)
    assert problem.details.additional_properties.keys() == {"phone_number"}
    # It is away for the first attempt of an organization: the second one is that of the recipe.
    key = "lookup-1"
    late = look_up.sync(client=client, phone_number="+15005550004", idempotency_key=key)
    assert be(LookupReply, late).data.phone_number == "+15005550004"


def finish_a_job(client: AuthenticatedClient) -> None:
    body = BulkBody(["+447400123456", "+33612345678"])
    made = create_job.sync(client=client, body=body, idempotency_key="job-1")
    accepted = be(JobAcceptedReply, made).data
    ends = {KnownJobStatus.COMPLETED, KnownJobStatus.FAILED}
    end = time.monotonic() + JOB_SECONDS_MAX
    while (job := read(client, accepted.job_id)).status not in ends:
        assert time.monotonic() < end, job
        Event().wait(POLL_S)
    assert not isinstance(job.items, Unset)
    assert [(each.phone_number, each.error) for each in job.items] == [
        ("+447400123456", None),
        ("+33612345678", None),
    ]


def read(client: AuthenticatedClient, job_id: UUID) -> Job:
    return be(JobReply, read_job.sync(job_id, client=client)).data


def choose_a_plan(client: AuthenticatedClient) -> Plan:
    found = list_plans.sync(client=client, country="FR", coverage_type=CoverageType.LOCAL)
    plan = be(PlanPageReply, found).data.data[0]
    coverage = be(CoverageReply, read_plan_coverage.sync(plan.id, client=client)).data
    assert "FR" in [each.country_code for each in coverage.countries]
    return plan


def buy(client: AuthenticatedClient, wire: Losing, plan: Plan) -> str:
    """Buy a link; first replies are lost, and what is sent again gives the same link."""
    body, key = LinkBody(plan.id, name="Van 12"), "order-1"
    link = be(NewLinkReply, create_link.sync(client=client, body=body, idempotency_key=key)).data
    assert wire.sent == ["POST /auth/token"] * 2 + ["POST /v1/links"] * 2
    again = create_link.sync_detailed(client=client, body=body, idempotency_key=key)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert be(NewLinkReply, again.parsed).data.id == link.id
    assert (link.amount_charged, link.status) == (plan.partner_cost, KnownLinkStatus.ACTIVE)
    return str(link.id)


def fail_to_buy(client: AuthenticatedClient) -> None:
    """Read the details of an error by their types."""
    plans = be(PlanPageReply, list_plans.sync(client=client, per_page=100)).data.data
    broken = next(each for each in plans if each.provider_plan_id == "sandbox-no-esim")
    refused = create_link.sync(client=client, body=LinkBody(broken.id))
    error = be(NetworkError, refused).error
    assert error.code is KnownErrorCode.PROVISIONING_ERROR
    assert error.details.reason is KnownNetworkReason.NO_ESIM_AVAILABLE
    assert isinstance(error.details.retryable, bool)


def read_lists(client: AuthenticatedClient, link: str) -> None:
    first = be(LinkPageReply, list_links.sync(client=client, status=KnownLinkStatus.ACTIVE)).data
    assert [str(each.id) for each in first.data] == [link]
    history = be(TransactionPageReply, list_link_history.sync(link, client=client)).data
    assert [each.kind for each in history.data] == ["activation"]
    entries = list(every_transaction(client, per_page=2))
    assert [each.sequence for each in entries] == [*range(len(entries), 0, -1)]
    assert len(entries) > 4
    balance = be(WalletReply, read_wallet.sync(client=client)).data.balance
    assert entries[0].balance_after == balance


def act_for_an_organization() -> None:
    """Do what only a machine-to-machine client does: name an organization in a header."""
    secrets = (os.environ["MACHINE_ID"], os.environ["MACHINE_SECRET"])
    with connect(URL, URL, *secrets) as client:
        organization = os.environ["ORGANIZATION"]
        be(WalletReply, read_wallet.sync(client=client, x_organization_id=organization))


def main() -> None:
    get_a_token()
    renew_a_token()
    act_for_an_organization()
    with connect(URL, URL, *SECRETS) as client:
        look_up_a_number(client)
        finish_a_job(client)
        plan = choose_a_plan(client)
    wire = Losing("/auth/token", "/v1/links")
    options = {"auth": KeptToken(URL, *SECRETS), "transport": Repeating(wire)}
    with AuthenticatedClient(base_url=URL, token="", httpx_args=options) as client:
        link = buy(client, wire, plan)
        fail_to_buy(client)
        read_lists(client, link)
    print("walked")  # noqa: T201  # The test waits for it.


if __name__ == "__main__":
    main()
