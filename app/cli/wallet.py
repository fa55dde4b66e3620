"""`wallet`: what organizations have paid in."""

from collections.abc import Callable
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
from app.cli.installation import cause_of, installation
from app.cli.output import as_json_option, show
from domain.accounts.wallet import Wallet
from domain.money import format_amount


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

    The same reference twice is one correction; with another amount or reason it is refused.
    """

    def correct(own: Container) -> Wallet:
        cause = cause_of(own)
        return own.accounts.adjust(organization_id, amount, reason, cause, reference=reference)

    _show(correct, as_json=as_json)


@command.command(name="show")
@organization_argument
@as_json_option
def show_one(*, organization_id: UUID, as_json: bool) -> None:
    """Show a balance as the log has it now."""
    _show(lambda own: own.accounts.wallet(organization_id), as_json=as_json)


def _show(ask: Callable[[Container], Wallet], *, as_json: bool) -> None:
    with installation() as container:
        wallet = ask(container)
    facts = {
        "organization": wallet.organization_id,
        "balance": format_amount(wallet.balance_micros),
        "currency": wallet.currency,
    }
    show(facts, as_json=as_json)
