"""What your organization has, pays and may do."""

from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from marshmallow import Schema
from msgspec import UNSET, Struct, UnsetType

from app.bootstrap.container import Container
from app.http.accounts.input import Money
from app.http.edge.input import CLIENT_ID, JsonNumber
from app.http.edge.operation import Group, link_to
from app.http.edge.replies import Answer, example, replay_headers, time_or_null, wait_for
from app.http.edge.request import Given
from app.security.authorization import Caller
from app.security.secrets import new_client_secret
from domain.accounts import wallet as wallets
from domain.accounts.commands import ROTATED
from domain.accounts.organization import (
    OF_KEYS,
    OLD_ENDS,
    OLD_ENDS_MAX,
    THRESHOLDS_MAX,
    ApiClient,
    Organization,
    not_over,
)
from domain.errors import NotFound, RateLimited
from domain.money import format_amount
from projections.engine.shape import (
    MORE_MAY_COME,
    Amount,
    Currency,
    Moment,
    Shape,
    amount_of,
    format_time,
    means,
    one_of,
)
from projections.models.api_clients import ApiClientRow

SECOND: Final = timedelta(seconds=1)


class Whose(Shape):
    """An organization."""

    id: Annotated[UUID, means("The organization.")]
    name: Annotated[str, means("How people call it.", example="Acme")]
    status: Annotated[
        str,
        means("No other status gets this reply."),
        means(**one_of("OrganizationStatus", ["active"], MORE_MAY_COME)),
    ]


class Client(Shape):
    """An API client."""

    id: Annotated[str, means("The `client_id`.", example=CLIENT_ID)]
    scopes: Annotated[list[str], means("What its tokens may allow.", example=["lookup", "wallet"])]
    created_at: Annotated[Moment, means("When it was made (UTC).")]
    rotated_at: Annotated[Moment | None, means("When its secret was renewed last (UTC).")]
    old_secret_ends: Annotated[
        Moment | None,
        means("Until when the secret before the newest is good (UTC); null: there is only one."),
    ]


class ClientWithSecret(Client, kw_only=True):
    """A client with its new secret."""

    client_secret: Annotated[
        str | UnsetType,
        means("The new secret. It is shown only now: a repeat with the same key lacks it."),
        means(example="cls_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA"),
    ] = UNSET


class Prices(Struct):
    """What your organization pays; a plan tells its own price."""

    lookup: Annotated[Amount, means("For each number.", example="0.005")]
    monthly_link_fee: Annotated[Amount, means("For each active link and month.", example="1.00")]
    currency: Currency


class Spending(Shape):
    """What may be spent in a calendar month (UTC)."""

    month: Annotated[str, means("This month.", example="2026-11", pattern="^[0-9]{4}-[0-9]{2}$")]
    limit: Annotated[Amount, means("What may be spent in it.", example="50.00")]
    spent: Annotated[
        Amount,
        means("What was charged less what was refunded in it; perhaps below 0.", example="12.50"),
    ]
    available: Annotated[Amount, means("What may still be spent.", example="37.50")]
    currency: Currency


class Wallet(Shape):
    """A balance."""

    balance: Annotated[Amount, means("What the wallet holds.")]
    currency: Currency
    open_claim: Annotated[
        Amount | UnsetType,
        means("There while you owe for a reversed deposit: what comes in settles it first."),
    ] = UNSET

    @classmethod
    def holding(cls, its: wallets.Wallet) -> "Wallet":
        return cls.of(its, open_claim=amount_of(its.claim_micros) or UNSET)


class Limits(Struct):
    """What your organization may use; the guide Limits has those that are the same for all."""

    requests_per_minute: Annotated[int | None, means("Null: any number.", example=600)]
    spending: Annotated[Spending | None, means("Null: all that the wallet holds.")]
    job_numbers: Annotated[int, means("In one job.", example=1000)]
    open_job_numbers: Annotated[
        int, means("Of all jobs, while they have no outcome.", example=100_000)
    ]


class Account(Struct):
    """What an organization has, pays and may do."""

    organization: Whose
    client: Client
    prices: Prices
    wallet: Annotated[Wallet | None, means("Null: nothing with a price can be bought.")]
    low_balance_threshold: Annotated[
        Amount | None, means("Below it the webhook `wallet.low_balance` is sent. Null: never.")
    ]
    limits: Limits
    sandbox: Annotated[bool, means("Whether some numbers and plans fail on purpose here.")]


class AccountBody(Schema):
    """What a partner may change."""

    example: ClassVar = {"low_balance_threshold": "20.00"}

    low_balance_threshold = Money(
        "Below it the webhook `wallet.low_balance` is sent; null: never.",
        required=True,
        allow_none=True,
    )


class RotateBody(Schema):
    """What becomes of the secret before the new one."""

    example: ClassVar = {"old_ends_in": 3600}

    old_ends_in = JsonNumber(
        "For how many seconds the present secret stays good, without it 86400; 0: it ends at "
        "once. One that it has replaced itself ends at once in any case.",
        OLD_ENDS_MAX // SECOND,
        lowest=0,
    )


EXAMPLE: Final = example("The account.", Account)

KEYS: Final = "The API clients of your organization, for one that may renew and end them all."
blueprint = Group("Account", "wallet", description=__doc__)
clients_blueprint = Group("Clients", OF_KEYS, description=KEYS)


@blueprint.operation("GET /v1/account", reply=EXAMPLE)
def read_account(caller: Caller, given: Given[None]) -> Account:
    """Read the account.

    Prices, balance and limits of your organization, and what this client may do.
    """
    return _account_of(given.parts, caller)


@blueprint.operation(
    "PATCH /v1/account",
    body=AccountBody,
    reply=EXAMPLE,
    invalid={"low_balance_threshold": "Missing data for required field."},
    examples=[RateLimited(f"It was changed {THRESHOLDS_MAX} times today.", retry_after_s=3_600)],
)
def change_account(caller: Caller, given: Given[None]) -> Account:
    """Change the account.

    A webhook tells when the balance falls below the threshold, at once if it is below it already;
    null ends that.
    """
    parts, cause = given.parts, given.cause()
    threshold_micros = given.body["low_balance_threshold"]

    def change(organization: Organization) -> None:
        found = parts.log.find(wallets.Wallet, wallets.wallet_id(organization.id))
        wallet = None if found is None else (found.balance_micros, found.currency)
        organization.set_low_balance_threshold(threshold_micros, cause, wallet)

    parts.accounts.change_organization(caller.organization_id, change)
    return _account_of(parts, caller)


def load_client(caller: Caller, given: Given[Any], client_id: str) -> ApiClient:
    """Return a client of the caller's organization, also a deleted one."""
    client = given.parts.log.find(ApiClient, ApiClient.id_of(client_id))
    if client is None or client.organization_id != caller.organization_id:
        raise NotFound
    return client


@clients_blueprint.operation(
    "GET /v1/account/clients",
    reply=example("All clients, oldest first.", list[Client], "ClientListReply"),
    leads_to=link_to("rotate_client_secret delete_client", client_id="/data/0/id"),
)
def list_clients(caller: Caller, given: Given[None]) -> list[Client]:
    """List the clients of your organization, oldest first.

    All that are not deleted, this one too, and never a secret.
    """
    parts, now = given.parts, given.parts.clock()
    wait_for(parts, parts.clients.name)
    found = parts.views.read(parts.clients.of_organization, caller.organization_id)
    return [show_client(each, now) for each in found]


@clients_blueprint.operation(
    "POST /v1/account/clients/<client_id>/rotate-secret",
    resource=load_client,
    body=RotateBody,
    key=True,
    reply=example("The client with its new secret.", ClientWithSecret),
    examples=[RateLimited(ROTATED, retry_after_s=3_600)],
)
def rotate_client_secret(caller: Caller, given: Given[ApiClient]) -> Answer:
    """Give a client a new secret.

    It may be your own. The secret is shown only here and is kept nowhere: a repeat with the same
    `Idempotency-Key` is 200 without `client_secret`, and then you rotate again. Tokens stay good
    until they expire.
    """
    secret, parts, cause = new_client_secret(), given.parts, given.cause(of=caller.client_id)
    ends_s = given.body.get("old_ends_in", OLD_ENDS // SECOND)
    client, replayed = parts.accounts.rotate_own_secret(
        given.found, parts.secret_hasher.hash(secret), ends_s, given.key, cause
    )
    more = {"created_at": format_time(client.created_on)}
    more |= {} if replayed else {"client_secret": secret}
    shown = show_client(client, cause.at, ClientWithSecret, **more)
    return Answer(shown, headers=replay_headers(replayed))


@clients_blueprint.operation(
    "DELETE /v1/account/clients/<client_id>",
    resource=load_client,
    reply=example("The client as it was. It gets no token any more.", Client),
    errors="LAST_CLIENT",
)
def delete_client(caller: Caller, given: Given[ApiClient]) -> Client:
    """Delete a client.

    Its secrets and its tokens are refused, within a second everywhere. The last client with the
    scope `clients` stays. Deleting one again changes nothing.
    """
    revoke, cause = given.parts.accounts.revoke_client, given.cause(of=caller.client_id)
    client = revoke(given.found.client_id, cause, spares_last=True)
    return show_client(client, cause.at, created_at=format_time(client.created_on))


def show_client(
    its: ApiClient | ApiClientRow, now: datetime, kind: type[Client] = Client, **more: Any
) -> Client:
    """Return a client as partners see it; `more` is what `its` lacks."""
    ends = time_or_null(not_over(its.old_until, now))
    return kind.of(its, id=its.client_id, old_secret_ends=ends, **more)


def _account_of(parts: Container, caller: Caller) -> Account:
    """Read the account from the log, because a read model may lack the latest change."""
    organization = parts.log.get(Organization, caller.organization_id)
    client = parts.log.get(ApiClient, ApiClient.id_of(caller.client_id))
    wallet = parts.log.find(wallets.Wallet, wallets.wallet_id(organization.id))
    settings, spending = parts.settings, None
    if wallet is not None and wallet.spending is not None:
        now = wallet.spending.at(parts.clock())
        available = format_amount(max(now.limit_micros - now.spent_micros, 0))
        spending = Spending.of(now, available=available, currency=wallet.currency)
    return Account(
        organization=Whose.of(organization),
        client=show_client(client, parts.clock(), created_at=format_time(client.created_on)),
        prices=Prices(
            format_amount(parts.prices.of_lookup(organization.price_micros)),
            format_amount(organization.monthly_link_fee_micros),
            settings.currency,
        ),
        wallet=None if wallet is None else Wallet.holding(wallet),
        low_balance_threshold=amount_of(organization.low_balance_threshold_micros),
        limits=Limits(
            requests_per_minute=caller.per_minute or None,
            spending=spending,
            job_numbers=settings.bulk_numbers_max,
            open_job_numbers=settings.job_items_open_max,
        ),
        sandbox=settings.sandbox,
    )
