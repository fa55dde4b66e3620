"""Customers send the requests of a story over HTTP; what they were told stays true."""

from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from flask.testing import FlaskClient

from app.http.application import create_app
from domain.accounts.organization import SCOPES
from domain.accounts.wallet import Deposit, Wallet, wallet_id
from domain.errors import Refused
from domain.ids import derive_id
from domain.links.network import NoSuchEndpoint, ProviderPlan
from domain.lookups.bulk_job import BulkJob
from tests.installation import numbers
from tests.plan_files import take_over
from tests.simulation.machine import Machine
from tests.simulation.roles import Roles
from tests.simulation.story import Request
from tests.simulation.template import Template

BOUGHT_AT = "2020-02-02T02:02:02Z"  # Before any clock that is wrong.
NUMBERS = ("+15005550001", "+15005550003", "+15005550004", *numbers(27))  # Three fail.
LEFT_MICROS = 9_000  # After a customer has spent: not enough for two lookups.
MAY_PASS = {"IDEMPOTENCY_IN_PROGRESS", "RATE_LIMITED", "SERVICE_UNAVAILABLE"}
Outcome = tuple[frozenset[int], frozenset[int], int]  # Items: completed, failed, cancelled ones.

_clients: list[FlaskClient] = []


def client_of(machine: Machine) -> FlaskClient:
    """Return what asks a process; its application is made once, which takes longer than a run."""
    if not _clients:
        _clients.append(create_app(machine).test_client())
    client = _clients[0]
    application: Any = client.application
    # As if it were made for this one.
    application.open = partial(application.open.func, machine, application.extensions)
    return client


def outcome_of(job: BulkJob) -> Outcome:
    """Return which items of a job were completed and failed, and how many were cancelled."""
    return frozenset(job.completed), frozenset(job.failed), job.cancelled_count


def deposited(request: Request) -> str:
    """Return the reference of a deposit."""
    return f"paid-{request.number}"


class Customers:
    """Each request either gets an answer or finds the process dead."""

    def __init__(self, world: Any, template: Template) -> None:
        self._world, self.template = world, template
        self.roles = Roles(world, template)
        self._sent: dict[int, tuple[str, str, Any]] = {}
        self._elsewhere: dict[str, Any] = {}  # The link of the import file, if there is one.
        self._clients: list[str] = []
        self.told: dict[int, tuple[Request, str, Any]] = {}  # Successes: what each named, and body.
        self.cancelled: dict[int, Outcome] = {}  # Jobs, by the number of their request.

    def register(self) -> None:
        """Give each customer a client."""
        parts = self._world.outside
        parts.keys.ensure()
        self._clients = [
            parts.client(each, f"cl_{each.hex}") for each in self.template.organizations
        ]
        parts.projector.catch_up()

    def ask(self, machine: Machine, request: Request) -> tuple[int, Any] | None:
        """Send a request; return status and body. None: there is nothing yet to ask about."""
        owner = self.template.organizations[request.customer - 1]
        beside: dict[str, Any] = {
            "deposit": self._deposit,
            "spend": self._spend,
            "deactivate": self._deactivate,
            "import": self._import,
        }
        if request.kind in beside:
            try:
                beside[request.kind](machine, owner, request)
            except Refused as refusal:
                return refusal.status, {"error": {"code": refusal.code}}
            return 200, {}
        if request.number not in self._sent:
            made = self.roles.made.get(request.about)
            if request.about and made is None:
                return None
            self._sent[request.number] = self._composed(request, made)
        headers = {"X-Request-Id": f"request-{request.number}"}
        headers |= {"Idempotency-Key": request.key} if request.key else {}
        headers |= {} if request.waits or request.kind != "link" else {"Prefer": "respond-async"}
        return self._open(machine, request.customer, self._sent[request.number], headers)

    def _open(
        self, machine: Machine, customer: int, sent: tuple[str, str, Any], headers: Any
    ) -> tuple[int, Any]:
        client_id, owner = self._clients[customer - 1], self.template.organizations[customer - 1]
        token, (method, path, body) = (
            self._world.outside.issuer.issue(client_id, owner, SCOPES),
            sent,
        )
        headers["Authorization"] = f"Bearer {token}"
        reply = client_of(machine).open(path, method=method, json=body, headers=headers)
        return reply.status_code, reply.json

    def get(self, customer: int, path: str) -> Any:
        """Read something once all is calm."""
        parts = self._world.outside
        parts.projector.catch_up()
        status, body = self._open(parts, customer, ("GET", path, None), {})
        assert status == 200, body
        return body["data"]

    def _composed(self, request: Request, made: UUID | None) -> tuple[str, str, Any]:
        """Return method, path and body; sent once more they are the same."""
        plans = [*map(str, self.template.plans)]
        add = [plans[each] for each in request.plans]
        path = f"/v1/links/{made}"
        match request.kind:
            case "link":
                return "POST", "/v1/links", {"plan_id": add[0], "name": f"Van {request.number}"}
            case "change":
                assert made is not None
                there = self._world.link(made).current_activations
                chosen = zip(there, request.removes, strict=False)
                remove = [str(each.id) for each, goes in chosen if goes]
                added = add if add or remove else plans[:1]
                return "PUT", f"{path}/plans", {"remove": remove, "add": added}
            case "lookup":
                number = NUMBERS[request.amount % len(NUMBERS)].replace("+", "%2B")
                return "POST", f"/number-lookup?phone_number={number}", None
            case "job":
                asked = [*NUMBERS, *numbers(request.count, 1_000)][: request.count]
                return "POST", "/number-lookup/bulk", {"phone_numbers": asked}
            case "drop":
                return "DELETE", f"/number-lookup/bulk/{made}", None
            case "end" | "read":
                return "DELETE" if request.kind == "end" else "GET", path, None
            case _:
                return "POST", f"{path}/{request.kind}", None

    def hear(self, request: Request, status: int, body: Any) -> None:
        """Note what a caller was told: the same key always gets the same, and a success stays."""
        number, had = request.number, self.told.get(request.number)
        if status >= 300:
            code = body["error"]["code"]
            assert had is None or request.key is None or code in MAY_PASS, (
                f"{request}: {had}, {code}"
            )
            return
        made = self.roles.made.get(request.about)
        if request.kind == "drop" and made is not None:
            outcome = outcome_of(self._world.outside.log.get(BulkJob, made))
            assert self.cancelled.setdefault(request.about, outcome) == outcome, str(request)
        named = self._named(request, status, body)
        assert had is None or had[1] == named, f"{request}: was told {had}, is told {named}"
        if named is not None:
            self.told[number] = request, named, self._sent.get(number, ("", "", {}))[2]

    def _named(self, request: Request, status: int, body: Any) -> str | None:
        """Return the id of what was promised, None if that is nothing that has to stay."""
        match request.kind:
            case "link" | "change":
                return str(body["data"]["id"]) if status != 202 else None
            case "job":
                return str(body["data"]["job_id"])
            case "lookup":
                return str(body["meta"]["lookup_id"])
            case "deposit":
                owner = self.template.organizations[request.customer - 1]
                return str(Deposit.id_of(owner, deposited(request)))
        return None

    def _deposit(self, machine: Machine, owner: UUID, request: Request) -> None:
        machine.accounts.move("deposit", owner, request.amount, deposited(request), machine.cause())

    def _spend(self, machine: Machine, owner: UUID, request: Request) -> None:
        """Let an organization run out of money."""
        held = self._world.outside.log.get(Wallet, wallet_id(owner)).balance_micros
        once, less = f"spent-{request.number}", LEFT_MICROS - held
        if less < 0:
            machine.accounts.move("adjustment", owner, less, once, machine.cause(), reason="spent")

    def _deactivate(self, _: Machine, __: UUID, request: Request) -> None:
        """Let the network itself make a link inactive."""
        made = self.roles.made.get(request.about)
        endpoint_id = self._world.link(made).endpoint_id if made is not None else None
        if endpoint_id is not None:
            with suppress(NoSuchEndpoint):  # It may be ended.
                self._world.deactivate(endpoint_id)

    def import_at_last(self) -> None:
        """Send the file again that may have got no answer."""
        if self._elsewhere:
            take_over(self._world.outside, self._world.outside.cause(), self._elsewhere)

    def _import(self, machine: Machine, owner: UUID, request: Request) -> None:
        """Take over a link that was issued elsewhere; once it is there it stays as it is.

        Only of a stock: an order brings its eSIM, so there is none to be issued elsewhere.
        """
        network = self._world.simulator
        if network.shape != "stock":
            return
        if not self._elsewhere:
            plan_id, called = next(iter(self.template.plans.items()))
            plan = ProviderPlan(called, 5_000, 30)
            free = network.available_esims(plan, None, "", page=0, timeout_s=1.0)
            iccid = free[-1]  # The first ones may be reserved here already.
            link_id = derive_id("imported_link", network.name, iccid)
            made = network.create_endpoint(iccid, plan, "base", str(link_id), timeout_s=1.0)
            entry = {"organization_id": str(owner), "iccid": iccid, "endpoint_id": made.endpoint_id}
            bought = {"plan_id": str(plan_id), "bought_at": BOUGHT_AT}
            self._elsewhere = entry | {"plans": [bought]}
        take_over(machine, machine.cause(f"request-{request.number}"), self._elsewhere)
