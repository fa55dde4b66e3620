"""`wallet`: what organizations have paid in."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import click

from app.bootstrap.container import Container
from app.cli.arguments import (
    ABOVE_ZERO,
    AMOUNTS_MAY_BE_NEGATIVE,
    NOT_ZERO,
    Words,
    organization_argument,
)
from app.cli.installation import catch_up, cause_of, installation
from app.cli.output import as_json_option, show, show_list
from domain.accounts.refund_by_hand import HandRefund
from domain.accounts.wallet import Adjustment, Metadata, Wallet
from domain.errors import NotFound, NotPossible
from domain.money import format_amount

adjustment_argument = click.argument("adjustment_id", metavar="ID", type=click.UUID)
NO_CHARGES = {"refund", "deposit", "adjustment"}


@click.group(name="wallet")
def command() -> None:
    """Wallets: what organizations have paid in."""


@command.command(name="open")
@organization_argument
@as_json_option
def open_empty(*, organization_id: UUID, as_json: bool) -> None:
    """Open the wallet of an organization that has none."""

    def open_one(own: Container) -> Wallet:
        return own.accounts.open_wallet(organization_id, cause_of(own))

    _show(open_one, as_json=as_json)


@command.command(context_settings=AMOUNTS_MAY_BE_NEGATIVE)
@organization_argument
@click.argument("amount", type=ABOVE_ZERO, metavar="AMOUNT")
@click.option("--reference", required=True, type=Words(), help="Of the payment; once for each.")
@as_json_option
def deposit(*, organization_id: UUID, amount: int, reference: str, as_json: bool) -> None:
    """Take in a payment.

    The same reference twice is one deposit; with another amount it is refused.
    """

    def pay_in(own: Container) -> Wallet:
        return own.accounts.deposit(organization_id, amount, reference, cause_of(own))

    _show(pay_in, as_json=as_json)


@command.command(context_settings=AMOUNTS_MAY_BE_NEGATIVE)
@organization_argument
@click.argument("amount", type=NOT_ZERO, metavar="AMOUNT")
@click.option("--reference", required=True, type=Words(), help="Of the correction; once for each.")
@click.option("--reason", required=True, type=Words(), help="Shown to the organization.")
@as_json_option
def adjust(
    *, organization_id: UUID, amount: int, reference: str, reason: str, as_json: bool
) -> None:
    """Correct a balance; a negative AMOUNT takes money away, but never below zero.

    Above ADJUSTMENT_APPROVAL_ABOVE it is only proposed, and waits for another operator.

    The same reference twice is one correction; with another amount or reason it is refused.
    """
    with installation() as container:
        cause, accounts = cause_of(container), container.accounts
        made = accounts.adjust(organization_id, amount, reason, cause, reference=reference)
        wallet = accounts.wallet(organization_id)
    show({**_facts(wallet), "adjustment": made.id, "state": made.state}, as_json=as_json)


@command.group()
def adjustments() -> None:
    """Adjustments that wait for another operator."""


@adjustments.command(name="list")
@as_json_option
def list_waiting(*, as_json: bool) -> None:
    """List the adjustments that wait, the oldest first."""
    with installation() as container:
        catch_up(container)
        with container.views.reading() as connection:
            waiting = container.proposals.all(connection)
        rows = [_proposal(container.log.get(Adjustment, each)) for each in waiting]
    show_list(rows, as_json=as_json)


@adjustments.command()
@adjustment_argument
@as_json_option
def approve(*, adjustment_id: UUID, as_json: bool) -> None:
    """Move the money of an adjustment that another operator has proposed."""
    with installation() as container:
        decided = container.accounts.approve(adjustment_id, cause_of(container))
    show(_proposal(decided), as_json=as_json)


@adjustments.command()
@adjustment_argument
@as_json_option
def reject(*, adjustment_id: UUID, as_json: bool) -> None:
    """Refuse an adjustment for ever; its reference cannot be used again."""
    with installation() as container:
        decided = container.accounts.reject(adjustment_id, cause_of(container))
    show(_proposal(decided), as_json=as_json)


@command.command()
@click.argument("transaction_id", metavar="TRANSACTION", type=click.UUID)
@click.option("--reference", required=True, type=Words(), help="Of the refund; once per charge.")
@click.option("--reason", required=True, type=Words(), help="Shown to the organization.")
@click.option("--amount", type=ABOVE_ZERO, help="A part; else all that is left of the charge.")
@as_json_option
def refund(
    *, transaction_id: UUID, reference: str, reason: str, amount: int | None, as_json: bool
) -> None:
    """Give back the charge TRANSACTION, or what is left of it; never more than that.

    The same reference twice is one refund; with another amount or reason it is refused. A job must
    have ended, and no change of a link's plans may be open.
    """
    with installation() as container:
        cause = cause_of(container)
        stream_id, metadata = _charged_for(container, transaction_id)
        asked = HandRefund(transaction_id, reference, reason, amount, metadata)
        done = container.accounts.refund(stream_id, asked, cause)
        wallet = container.accounts.wallet(done.organization_id)
    facts = {
        "transaction_id": done.refund.transaction_id,
        "amount": format_amount(done.refund.amount_micros),
    }
    show({**_facts(wallet), **facts}, as_json=as_json)


@command.command(name="show")
@organization_argument
@as_json_option
def show_one(*, organization_id: UUID, as_json: bool) -> None:
    """Show a balance as the log has it now."""
    _show(lambda own: own.accounts.wallet(organization_id), as_json=as_json)


def _charged_for(container: Container, transaction_id: UUID) -> tuple[UUID, Metadata]:
    """Return the stream of what a charge was for, and what the charge says about it."""
    catch_up(container)
    with container.views.reading() as connection:
        found = container.transactions.of_any(connection, transaction_id)
    if found is None:
        message = f"there is no transaction {transaction_id}"
        raise NotFound(message)
    if found.kind in NO_CHARGES:
        message = f"this transaction is no charge but a {found.kind}"
        raise NotPossible(message)
    return UUID(found.reference.id), found.metadata


def _show(ask: Callable[[Container], Wallet], *, as_json: bool) -> None:
    with installation() as container:
        wallet = ask(container)
    show(_facts(wallet), as_json=as_json)


def _facts(wallet: Wallet) -> dict[str, Any]:
    return {
        "organization": wallet.organization_id,
        "balance": format_amount(wallet.balance_micros),
        "currency": wallet.currency,
    }


def _proposal(adjustment: Adjustment) -> dict[str, Any]:
    return {
        "id": adjustment.id,
        "organization": adjustment.organization_id,
        "amount": format_amount(adjustment.amount_micros),
        "reference": adjustment.reference,
        "reason": adjustment.reason,
        "proposed_by": adjustment.proposed_by,
        "proposed_at": adjustment.created_on,
        "state": adjustment.state,
    }
