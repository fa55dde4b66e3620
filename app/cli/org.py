"""`org`: organizations."""

from typing import Any
from uuid import UUID

import click

from app.bootstrap.container import Container
from app.cli.arguments import AT_LEAST_ZERO, OrWord, Words
from app.cli.installation import catch_up, cause_of, installation
from app.cli.output import as_json_option, show, show_list
from app.settings import RATE_LIMIT_MAX
from domain.accounts.organization import Organization, Status
from domain.accounts.wallet import Wallet, wallet_id
from domain.cause import Cause
from domain.money import format_amount
from projections.models.organizations import OrganizationRow
from projections.models.wallets import WalletRow

price_option = click.option(
    "--price",
    type=OrWord(AT_LEAST_ZERO, "default"),
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
    price: int | str | None,
    fee_micros: int,
    no_wallet: bool,
    as_json: bool,
) -> None:
    """Register an organization, active and with an empty wallet."""
    with installation() as container:
        organization = container.accounts.register_organization(
            cause_of(container),
            name=name,
            price_micros=_or_none(price),
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
@click.option(
    "--rate-limit",
    "per_minute",
    type=OrWord(click.IntRange(0, RATE_LIMIT_MAX), "default"),
    help="Requests a minute; 0: any number, `default`: RATE_LIMIT_PER_MINUTE.",
)
@click.option(
    "--spending-limit",
    "limit_micros",
    type=OrWord(AT_LEAST_ZERO, "none"),
    help="What it may spend in a calendar month (UTC).",
)
@as_json_option
def change(  # noqa: PLR0913  # One for each option.
    *,
    organization_id: UUID,
    price: int | str | None,
    lookup: str | None,
    fee_micros: int | None,
    per_minute: int | str | None,
    limit_micros: int | str | None,
    as_json: bool,
) -> None:
    """Change what an organization pays, whether it may use lookups, and its limits."""
    if {price, lookup, fee_micros, per_minute, limit_micros} == {None}:
        message = (
            "give at least one of --price, --lookup, --monthly-link-fee, --rate-limit and "
            "--spending-limit"
        )
        raise click.UsageError(message)

    def apply(organization: Organization, cause: Cause) -> None:
        if price is not None:
            organization.change_price(_or_none(price), cause)
        if per_minute is not None:
            organization.set_rate_limit(_or_none(per_minute), cause)
        if lookup is not None:
            organization.switch_lookup(cause, enabled=lookup == "on")
        if fee_micros is not None:
            organization.change_monthly_link_fee(fee_micros, cause)

    with installation() as container:
        cause, accounts = cause_of(container), container.accounts
        organization = accounts.change_organization(organization_id, lambda it: apply(it, cause))
        if limit_micros is not None:
            organization = accounts.set_spending_limit(
                organization_id, _or_none(limit_micros), cause
            )
        facts = _facts_now(container, organization)
    show(facts, as_json=as_json)


def _or_none(value: int | str | None) -> int | None:
    """Return a number; None for the word in its place, which removes the setting."""
    return None if isinstance(value, str) else value


def _change_status(organization_id: UUID, status: Status, *, as_json: bool) -> None:
    with installation() as container:
        cause = cause_of(container)
        organization = container.accounts.change_organization(
            organization_id, lambda held: held.change_status(status, cause)
        )
        facts = _facts_now(container, organization)
    show(facts, as_json=as_json)


def _facts_now(container: Container, organization: Organization) -> dict[str, Any]:
    return _facts(organization, container.log.find(Wallet, wallet_id(organization.id)))


def _facts(
    organization: Organization | OrganizationRow, wallet: Wallet | WalletRow | None
) -> dict[str, Any]:
    """`price_per_lookup` and `rate_limit` are its own, None for the general one."""
    price, limit = organization.price_micros, organization.spending_limit_micros
    return {
        "id": organization.id,
        "name": organization.name,
        "status": organization.status,
        "price_per_lookup": None if price is None else format_amount(price),
        "monthly_link_fee": format_amount(organization.monthly_link_fee_micros),
        "lookup_enabled": organization.lookup_enabled,
        "rate_limit": organization.rate_limit_per_minute,
        "spending_limit": None if limit is None else format_amount(limit),
        "wallet": wallet
        and {"balance": format_amount(wallet.balance_micros), "currency": wallet.currency},
    }
