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
from app.cli.output import as_json_option, named, show, show_list
from domain.accounts.approvals import Proposal, WaitsForApproval
from domain.accounts.refund_by_hand import HandRefund
from domain.accounts.wallet import Adjustment, Metadata, Wallet
from domain.cause import Cause
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

    Above the approval limit it is only proposed, and waits for another operator.

    The same reference twice is one deposit; with another amount it is refused.
    """

    def pay_in(own: Container) -> tuple[Wallet, dict[str, Any]]:
        return own.accounts.deposit(organization_id, amount, reference, _cause_of(own)), {}

    with installation() as container:
        facts = _moved(container, pay_in)
    show(facts, as_json=as_json)


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

    Above the approval limit it is only proposed, and waits for another operator.

    The same reference twice is one correction; with another amount or reason it is refused.
    """
    with installation() as container:
        cause, accounts = _cause_of(container), container.accounts
        made = accounts.adjust(organization_id, amount, reason, cause, reference=reference)
        wallet = accounts.wallet(organization_id)
    show({**_facts(wallet), "adjustment": made.id, "state": made.state}, as_json=as_json)


@command.group()
def adjustments() -> None:
    """Adjustments that wait for another operator; deposits, refunds and limits, too."""


@adjustments.command(name="list")
@as_json_option
def list_waiting(*, as_json: bool) -> None:
    """List what waits, the oldest first."""
    with installation() as container:
        catch_up(container)
        with container.views.reading() as connection:
            waiting = container.proposals.all(connection)
        found = [container.accounts.waiting(each) for each in waiting]
        rows = [_proposal(container, each, as_json=as_json) for each in found]
    show_list(rows, as_json=as_json)


@adjustments.command()
@adjustment_argument
@as_json_option
def approve(*, adjustment_id: UUID, as_json: bool) -> None:
    """Do what another operator has proposed, who did not make your key."""
    with installation() as container:
        decided = container.accounts.approve(adjustment_id, _cause_of(container))
        facts = _proposal(container, decided, as_json=as_json)
    show(facts, as_json=as_json)


@adjustments.command()
@adjustment_argument
@as_json_option
def reject(*, adjustment_id: UUID, as_json: bool) -> None:
    """Refuse what was proposed for ever; its reference cannot be used again."""
    with installation() as container:
        decided = container.accounts.reject(adjustment_id, cause_of(container))
        facts = _proposal(container, decided, as_json=as_json)
    show(facts, as_json=as_json)


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

    Above the approval limit it is only proposed, and waits for another operator.

    The same reference twice is one refund; with another amount or reason it is refused. A job must
    have ended, and no change of a link's plans may be open.
    """

    def give_back(own: Container) -> tuple[Wallet, dict[str, Any]]:
        cause = _cause_of(own)
        stream_id, metadata = _charged_for(own, transaction_id)
        asked = HandRefund(transaction_id, reference, reason, amount, metadata)
        done = own.accounts.refund(stream_id, asked, cause)
        told = {
            "transaction_id": done.refund.transaction_id,
            "amount": format_amount(done.refund.amount_micros),
        }
        return own.accounts.wallet(done.organization_id), told

    with installation() as container:
        facts = _moved(container, give_back)
    show(facts, as_json=as_json)


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


def _cause_of(container: Container) -> Cause:
    """Return the cause of a command that moves money.

    Raises NotPossible while the limit of the environment, which one operator could take away for
    a command, would have to hold.
    """
    cause = cause_of(container)
    above_micros = container.settings.adjustment_approval_above_micros
    if above_micros and container.accounts.approvals.above_micros() is None:
        message = (
            "ADJUSTMENT_APPROVAL_ABOVE is set, but the limit belongs in the log, where nobody can "
            f"take it away alone: run `operator approvals {format_amount(above_micros)}` first"
        )
        raise NotPossible(message)
    return cause


def _moved(
    container: Container, move: Callable[[Container], tuple[Wallet, dict[str, Any]]]
) -> dict[str, Any]:
    """Move money and return the wallet with what was done; or else what waits for approval."""
    try:
        wallet, told = move(container)
    except WaitsForApproval as waits:
        owner = waits.proposal.organization_id
        assert owner is not None
        wallet = container.accounts.wallet(owner)
        told = {"proposal": waits.proposal.id, "state": waits.proposal.state}
    return {**_facts(wallet), **told}


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


def _proposal(
    container: Container, waiting: Adjustment | Proposal, *, as_json: bool
) -> dict[str, Any]:
    made = waiting.made if isinstance(waiting, Proposal) else None
    amount_micros = waiting.amount_micros
    facts = {
        "id": waiting.id,
        "kind": "adjustment" if made is None else made.kind,
        "organization": waiting.organization_id,
        "amount": None if amount_micros is None else format_amount(amount_micros),
        "reference": waiting.reference,
        "reason": waiting.reason,
        "transaction": None if made is None else made.transaction_id,
        "proposed_by": waiting.proposed_by,
        "proposed_at": waiting.created_on,
        "state": waiting.state,
    }
    return named(facts, "proposed_by", container.operators.names(), as_json=as_json)
