"""For payment services: book what partners have paid."""

from math import inf
from typing import Annotated, ClassVar, Final
from uuid import UUID

from marshmallow import Schema

from app.http.accounts.input import Money, one_line
from app.http.edge.callers import authenticate_machine
from app.http.edge.input import Id
from app.http.edge.operation import Group, Shown
from app.http.edge.replies import Answer, example
from app.http.edge.request import Given, reached
from domain.accounts import wallet as wallets
from domain.accounts.organization import Organization
from domain.cause import Cause
from domain.errors import BillingNotConfigured, NotPossible, ValidationFailed
from projections.engine.shape import Amount, Currency, Moment, Shape, format_time, means


class Deposit(Shape):
    """A payment into a wallet."""

    id: Annotated[UUID, means("The deposit.")]
    organization: Annotated[UUID, means("Whose wallet it went to.")]
    amount: Annotated[Amount, means("What was paid in.", example="50.00")]
    currency: Currency
    reference: Annotated[str, means("As it was given.", example="payment-4711")]
    transaction_id: Annotated[UUID, means("Its entry in the wallet.")]
    created_at: Annotated[Moment, means("When it was booked (UTC).")]


EXAMPLE: Final = example("The deposit.", Deposit)
REPLIES: Final = [
    Shown(EXAMPLE, 201),
    Shown(EXAMPLE, 200, "The deposit that an earlier request with the reference made."),
]
OTHER_AMOUNT: Final = {"amount": "The deposit with this reference has another amount."}


class DepositBody(Schema):
    """What was paid, by whom, and the payment's own reference."""

    example: ClassVar = {it: EXAMPLE.data[it] for it in ("organization", "amount", "reference")}

    organization = Id("Whose wallet it goes to.", required=True)
    amount = Money("What was paid; more than 0.", inf, required=True)
    reference = one_line("Names the payment: the same one is booked once for an organization.")


blueprint = Group("Deposits", "deposits", description=__doc__)


@blueprint.operation(
    "POST /v1/deposits",
    who=authenticate_machine,
    body=DepositBody,
    reply=REPLIES,
    errors="BILLING_NOT_CONFIGURED",
    invalid=OTHER_AMOUNT,
)
def make_deposit(client_id: str, given: Given[None]) -> Answer:
    """Book a payment.

    The reference makes it safe to send again: the same one is the same deposit, and with another
    amount it is refused. Only machine-to-machine clients with the scope `deposits`, which is given
    by name, may do this; `X-Organization-Id` is not read. An organization that is suspended is
    paid all the same.
    """
    organization_id = given.body["organization"]
    if given.parts.log.find(Organization, organization_id) is None:
        raise ValidationFailed({"organization": ["There is no such organization."]})
    return book(given, organization_id, given.cause(of=client_id))


def book(
    given: Given[None], organization_id: UUID, cause: Cause, kind: str = wallets.DEPOSIT
) -> Answer:
    """Book what a body says was paid in, once for each reference."""
    parts, reference = given.parts, given.body["reference"]
    if parts.log.find(wallets.Wallet, wallets.wallet_id(organization_id)) is None:
        raise BillingNotConfigured
    try:
        deposit, is_new = parts.accounts.book_deposit(
            organization_id, given.body["amount"], reference, cause, kind
        )
    except NotPossible as error:  # Another amount, or more than a wallet can hold.
        why = str(error)
        raise ValidationFailed({"amount": [f"{why[:1].upper()}{why[1:]}."]}) from None
    at = format_time(deposit.modified_on)
    shown = Deposit.of(deposit, currency=parts.settings.currency, created_at=at)
    location = f"{reached(parts.settings.base)}/v1/transactions/{deposit.transaction_id}"
    return Answer(shown, 201, {"Location": location}) if is_new else Answer(shown)
