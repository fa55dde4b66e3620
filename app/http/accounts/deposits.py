"""Deposits by a payment service, which is a machine-to-machine client with a scope of its own."""

from typing import Annotated, Any, Final
from uuid import UUID

from flask import Response
from marshmallow import Schema, ValidationError
from msgspec import Struct

from app.http.accounts.input import AMOUNT, Money, Reference
from app.http.edge.callers import authenticate_machine
from app.http.edge.input import Blueprint, Id, described
from app.http.edge.operation import operation
from app.http.edge.replies import (
    LOCATION,
    META,
    TRANSACTION_ID,
    Amount,
    Currency,
    Moment,
    Reply,
    format_time,
    means,
    success,
)
from app.http.edge.request import container, reached, request_context
from domain.accounts import wallet as wallets
from domain.accounts.organization import Organization
from domain.cause import Cause
from domain.errors import BillingNotConfigured, NotPossible, ValidationFailed
from domain.money import format_amount

NO_ORGANIZATION = "There is no such organization."
NOTHING = "Must be more than 0."


class Deposit(Struct):
    """A payment into a wallet."""

    id: Annotated[UUID, means("The deposit.", example="2f0c9a44-7d3b-5e0a-9b61-2f7f0e5c8d14")]
    organization: Annotated[UUID, means("Whose wallet it went to.")]
    amount: Annotated[Amount, means("What was paid in.", example="50.00")]
    currency: Currency
    reference: Annotated[str, means("As it was given.", example="payment-4711")]
    transaction_id: Annotated[UUID, means("Its entry in the wallet.")]
    created_at: Annotated[Moment, means("When it was booked (UTC).")]


class DepositReply(Reply[Deposit]):
    """The deposit."""


def _above_zero(micros: int) -> None:
    if not micros:
        raise ValidationError(NOTHING)


class DepositBody(Schema):
    """What was paid, by whom, and the payment's own reference."""

    organization = Id(required=True, metadata=described("Whose wallet it goes to."))
    amount = Money(
        required=True,
        validate=_above_zero,
        metadata=described(
            "What was paid; more than 0.", pattern=AMOUNT.replace("^", "^(?=.*[1-9])")
        ),
    )
    reference = Reference(
        required=True,
        metadata=described("Names the payment: the same one is booked once for an organization."),
    )


_EXAMPLE: Final = DepositReply(
    data=Deposit(
        id=UUID("2f0c9a44-7d3b-5e0a-9b61-2f7f0e5c8d14"),
        organization=UUID("0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60"),
        amount="50.00",
        currency="USD",
        reference="payment-4711",
        transaction_id=TRANSACTION_ID,
        created_at="2026-11-21T03:04:05.100Z",
    ),
    meta=META,
)

blueprint = Blueprint(
    "Deposits", __name__, description="For payment services: book what partners have paid."
)


@blueprint.route("/v1/deposits", methods=["POST"])
@operation(
    scope="deposits",
    refusals=[
        ValidationFailed({"amount": ["The deposit with this reference has another amount."]}),
        BillingNotConfigured(),
    ],
    takes_body=True,
    who=authenticate_machine,
)
@blueprint.arguments(
    DepositBody,
    location="json",
    example={
        "organization": "0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60",
        "amount": "50.00",
        "reference": "payment-4711",
    },
)
@blueprint.replies(200, _EXAMPLE, "The deposit that an earlier request with the reference made.")
@blueprint.replies(201, _EXAMPLE, headers=LOCATION)
def make_deposit(client_id: str, body: dict[str, Any]) -> Response:
    """Book a payment.

    The reference makes it safe to send again: the same one is the same deposit, and with another
    amount it is refused. Only machine-to-machine clients with the scope `deposits`, which is given
    by name, may do this; `X-Organization-Id` is not read. An organization that is suspended is
    paid all the same.
    """
    parts = container()
    organization_id, reference = body["organization"], body["reference"]
    if parts.log.find(Organization, organization_id) is None:
        raise ValidationFailed({"organization": [NO_ORGANIZATION]})
    if parts.log.find(wallets.Wallet, wallets.wallet_id(organization_id)) is None:
        raise BillingNotConfigured
    actor = f"client:{client_id}"
    cause = Cause(parts.clock(), request_context().request_id, actor)
    try:
        deposit, is_new = parts.accounts.book_deposit(
            organization_id, body["amount"], reference, cause
        )
    except NotPossible as error:  # Another amount, or more than a wallet can hold.
        why = str(error)
        raise ValidationFailed({"amount": [f"{why[:1].upper()}{why[1:]}."]}) from None
    shown = Deposit(
        id=deposit.id,
        organization=organization_id,
        amount=format_amount(deposit.amount_micros),
        currency=parts.settings.currency,
        reference=reference,
        transaction_id=deposit.transaction_id,
        created_at=format_time(deposit.last_event_at),
    )
    location = f"{reached(parts.settings.base)}/v1/transactions/{deposit.transaction_id}"
    return success(shown, 201 if is_new else 200, headers={"Location": location} if is_new else {})
