"""`org`: organizations."""

from collections.abc import Callable
from typing import Any, Literal
from uuid import UUID

import click

from app.bootstrap.container import Container
from app.cli.arguments import AT_LEAST_ZERO, GENERAL, PriceParameter, Words
from app.cli.installation import catch_up, cause_of, installation
from app.cli.output import as_json_option, show, show_list
from domain.accounts.organization import Organization, Status
from domain.accounts.wallet import Wallet, wallet_id
from domain.cause import Cause
from domain.money import format_amount
from projections.models.organizations import OrganizationRow
from projections.models.wallets import WalletRow

price_option = click.option(
    "--price",
    type=PriceParameter(),
    help="Its own price per lookup; `default` is PRICE_PER_LOOKUP.",
)
id_argument = click.argument("organization_id", metavar="ID", type=click.UUID)


@click.group(name="org")
def command() -> None:
    """Organizations: who may call, and for how much."""


@command.command()
@click.option("--name", required=True, type=Words(), help="How people call it.")
@price_option
@click.option(
    "--monthly-link-fee", "fee_micros", type=AT_LEAST_ZERO, default="0", help="Per active link."
)
@click.option("--no-wallet", is_flag=True, help="Open none; `wallet open` does so later.")
@as_json_option
def create(
    *,
    name: str,
    price: int | Literal["default"] | None,
    fee_micros: int,
    no_wallet: bool,
    as_json: bool,
) -> None:
    """Register an organization, active and with an empty wallet."""
    with installation() as container:
        organization = container.accounts.register_organization(
            cause_of(container),
            name=name,
            price_micros=_own_price(price),
            monthly_link_fee_micros=fee_micros,
            with_wallet=not no_wallet,
        )
        facts = _facts_now(container, organization)
    show(facts, as_json=as_json)


@command.command(name="list")
@as_json_option
def list_all(*, as_json: bool) -> None:
    """List all organizations, oldest first."""
    with installation() as container:
        catch_up(container)
        with container.views.reading() as connection:
            rows = [
                _facts(row, container.wallets.get(connection, row.id))
                for row in container.organizations.all(connection)
            ]
    show_list(rows, as_json=as_json)


@command.command()
@id_argument
@as_json_option
def suspend(*, organization_id: UUID, as_json: bool) -> None:
    """Refuse its requests until it is activated; what was accepted is still finished."""
    _change_status(organization_id, "suspended", as_json=as_json)


@command.command()
@id_argument
@as_json_option
def activate(*, organization_id: UUID, as_json: bool) -> None:
    """Accept its requests again."""
    _change_status(organization_id, "active", as_json=as_json)


@command.command()
@id_argument
@as_json_option
def deactivate(*, organization_id: UUID, as_json: bool) -> None:
    """Refuse its requests, because it is not a customer at present."""
    _change_status(organization_id, "inactive", as_json=as_json)


@command.command(name="set")
@id_argument
@price_option
@click.option("--lookup", type=click.Choice(["on", "off"]), help="Whether it may look up.")
@click.option("--monthly-link-fee", "fee_micros", type=AT_LEAST_ZERO, help="Per active link.")
@as_json_option
def change(
    *,
    organization_id: UUID,
    price: int | Literal["default"] | None,
    lookup: str | None,
    fee_micros: int | None,
    as_json: bool,
) -> None:
    """Change what an organization pays, and whether it may use lookups."""
    if price is None and lookup is None and fee_micros is None:
        message = "give at least one of --price, --lookup and --monthly-link-fee"
        raise click.UsageError(message)

    def apply(organization: Organization, cause: Cause) -> None:
        if price is not None:
            organization.change_price(_own_price(price), cause)
        if lookup is not None:
            organization.switch_lookup(cause, enabled=lookup == "on")
        if fee_micros is not None:
            organization.change_monthly_link_fee(fee_micros, cause)

    _change(organization_id, apply, as_json=as_json)


def _own_price(price: int | Literal["default"] | None) -> int | None:
    return None if price == GENERAL else price


def _change_status(organization_id: UUID, status: Status, *, as_json: bool) -> None:
    def apply(organization: Organization, cause: Cause) -> None:
        organization.change_status(status, cause)

    _change(organization_id, apply, as_json=as_json)


def _change(
    organization_id: UUID, apply: Callable[[Organization, Cause], None], *, as_json: bool
) -> None:
    with installation() as container:
        cause = cause_of(container)
        organization = container.accounts.change_organization(
            organization_id, lambda held: apply(held, cause)
        )
        facts = _facts_now(container, organization)
    show(facts, as_json=as_json)


def _facts_now(container: Container, organization: Organization) -> dict[str, Any]:
    return _facts(organization, container.log.find(Wallet, wallet_id(organization.id)))


def _facts(
    organization: Organization | OrganizationRow, wallet: Wallet | WalletRow | None
) -> dict[str, Any]:
    """`price_per_lookup` is its own price, None for the general one."""
    price = organization.price_micros
    return {
        "id": organization.id,
        "name": organization.name,
        "status": organization.status,
        "price_per_lookup": None if price is None else format_amount(price),
        "monthly_link_fee": format_amount(organization.monthly_link_fee_micros),
        "lookup_enabled": organization.lookup_enabled,
        "wallet": wallet
        and {"balance": format_amount(wallet.balance_micros), "currency": wallet.currency},
    }
