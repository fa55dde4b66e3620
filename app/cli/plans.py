"""`plans`: the catalogue."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import IO, Any
from uuid import UUID

import click
import msgspec

from app.cli.arguments import AT_LEAST_ZERO, Moment, organization_argument
from app.cli.import_files import FILE_BYTES_MAX, read_plan_file
from app.cli.installation import catch_up, cause_of, installation
from app.cli.output import Refusals, as_json_option, show, show_list
from app.cli.plans_sync import cost_of, price_of, sync
from domain.catalogue.commands import Catalogue
from domain.catalogue.file_errors import FileRefused
from domain.catalogue.plan import SIMULATED, Plan
from domain.cause import Cause
from domain.money import format_amount
from projections.models.plans import PlanRow

Change = Callable[[Catalogue, Cause], Plan]

id_argument = click.argument("plan_id", metavar="ID", type=click.UUID)


@click.group(name="plans")
def command() -> None:
    """The catalogue: data plans, and who may see them."""


command.add_command(sync)


@command.command(name="import")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--below-cost", is_flag=True, help="Also take plans that cost more than they bring.")
@as_json_option
def import_file(*, file: IO[bytes], below_cost: bool, as_json: bool) -> None:
    """Create or change the plans of a JSON file, all or none; `-` is the standard input.

    Plans that are not in the file stay as they are. Importing the same file again changes nothing.
    """
    data = file.read(FILE_BYTES_MAX + 1)
    with installation() as container:
        cause, settings = cause_of(container), container.settings
        currency, networks = settings.currency, settings.networks
        try:
            entries = read_plan_file(data, currency, networks, below_cost=below_cost)
            imported = container.catalogue.import_plans(entries, cause)
        except FileRefused as refused:
            raise Refusals(refused.lines) from refused
    show(asdict(imported), as_json=as_json)


@command.command(name="list")
@as_json_option
def list_all(*, as_json: bool) -> None:
    """List all plans by name; with --json in the form of a plan file."""
    with installation() as container:
        catch_up(container)
        with container.views.reading() as connection:
            rows = [row.at(container.clock()) for row in container.plans.all(connection)]
    facts = _facts if as_json else _short_facts
    show_list([facts(row) for row in rows], as_json=as_json)


@command.command()
@id_argument
@click.argument("price_micros", metavar="AMOUNT", type=AT_LEAST_ZERO)
@click.option("--from", "starts_at", type=Moment(), help="When it takes effect; default: now.")
@click.option("--below-cost", is_flag=True, help="Also if the network takes more.")
@as_json_option
def price(
    *,
    plan_id: UUID,
    price_micros: int,
    starts_at: datetime | None,
    below_cost: bool,
    as_json: bool,
) -> None:
    """Set the price of a plan; what was bought keeps its own.

    With --from it takes effect then, by the clock of the database, and prices of other moments
    stay. Without, it holds from now on, prices that were to come are dropped, and a plan that had
    no price yet is enabled.
    """

    def change(plans: Catalogue, cause: Cause) -> Plan:
        return plans.price(plan_id, price_micros, cause, starts_at=starts_at, below_cost=below_cost)

    _change(change, as_json=as_json)


@command.command()
@id_argument
@as_json_option
def enable(*, plan_id: UUID, as_json: bool) -> None:
    """Offer a plan to the organizations that may see it."""
    _change(lambda plans, cause: plans.switch(plan_id, cause, enabled=True), as_json=as_json)


@command.command()
@id_argument
@as_json_option
def disable(*, plan_id: UUID, as_json: bool) -> None:
    """Stop offering a plan; links that have it keep it."""
    _change(lambda plans, cause: plans.switch(plan_id, cause, enabled=False), as_json=as_json)


@command.command()
@id_argument
@organization_argument
@as_json_option
def exclude(*, plan_id: UUID, organization_id: UUID, as_json: bool) -> None:
    """Hide a global plan from an organization."""
    _change(lambda plans, cause: plans.exclude(plan_id, organization_id, cause), as_json=as_json)


@command.command()
@id_argument
@organization_argument
@as_json_option
def include(*, plan_id: UUID, organization_id: UUID, as_json: bool) -> None:
    """Show a global plan to an organization again."""
    _change(lambda plans, cause: plans.include(plan_id, organization_id, cause), as_json=as_json)


def _change(change: Change, *, as_json: bool) -> None:
    with installation() as container:
        cause = cause_of(container)
        plan = change(container.catalogue, cause)
    row = PlanRow(
        id=plan.id,
        organization_id=plan.organization_id,
        terms=plan.terms.at(cause.at),
        enabled=plan.enabled,
        excluded=sorted(plan.excluded, key=str),
    )
    show(_facts(row) if as_json else _short_facts(row), as_json=as_json)


def _facts(row: PlanRow) -> dict[str, Any]:
    """Return a plan in the words of a plan file, so that the whole list can be imported again."""
    terms, cost, later = msgspec.to_builtins(row.terms), row.terms.cost, row.terms.later_prices
    for name in ("retail_price_micros", "unpriced"):
        terms.pop(name, None)
    return {
        "id": row.id,
        "organization_id": row.organization_id,
        "enabled": row.enabled,
        "excluded_organizations": row.excluded,
        "retail_price": price_of(row.terms),
        **terms,
        "later_prices": [
            {"from": each.starts_at, "retail_price": format_amount(each.retail_price_micros)}
            for each in later or ()
        ],
        "cost": cost and format_amount(cost.amount_micros),
        "cost_currency": cost and cost.currency,
        "network": row.terms.network or SIMULATED,
    }


def _short_facts(row: PlanRow) -> dict[str, Any]:
    """Return the facts that fit on one line."""
    terms = row.terms
    return {
        "id": row.id,
        "name": terms.name,
        "provider_plan_id": terms.provider_plan_id,
        "price": (price := price_of(terms)) and f"{price} {terms.currency}",
        "later": [
            f"{format_amount(each.retail_price_micros)} from {each.starts_at:%Y-%m-%dT%H:%M:%SZ}"
            for each in terms.later_prices or ()
        ],
        "cost": cost_of(terms),
        "mb": terms.data_mb,
        "days": terms.validity_days,
        "coverage": terms.coverage_type,
        "countries": len(terms.coverage),
        "organization": row.organization_id,
        "enabled": row.enabled,
        "excluded": row.excluded,
    }
