"""`plans sync`: what a network supplies, brought into the catalogue."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

import click

from app.bootstrap.container import Container
from app.cli.arguments import ABOVE_ZERO
from app.cli.installation import cause_of, installation
from app.cli.output import as_json_option, show_parts
from app.processes.providers import supplied_by
from domain.catalogue.plan import Plan, PlanTerms
from domain.catalogue.supplied import Supplied
from domain.catalogue.syncing import Markup, Synced, SyncRules, Updated
from domain.errors import NotPossible
from domain.money import format_amount

CENT_MICROS = 10_000

Row = Mapping[str, Any]


class Share(click.ParamType[Fraction, str]):
    """A share of the cost in percent."""

    name = "percent"
    _form = re.compile(r"(?P<number>[0-9]{1,4}(?:\.[0-9]{1,4})?)%", re.ASCII)

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        match = self._form.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is not a share such as 30%", param, ctx)
        return Fraction(match["number"]) / 100


class Rate(click.ParamType[tuple[str, Fraction], str]):
    """What one unit of a currency is in that of the installation."""

    name = "currency=rate"
    _form = re.compile(r"(?P<currency>[A-Z]{3})=(?P<rate>[0-9]{1,9}(?:\.[0-9]{1,9})?)", re.ASCII)

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Fraction]:
        match = self._form.fullmatch(value)
        if match is None or not (rate := Fraction(match["rate"])):
            self.fail(f"{value!r} is not a currency and a rate such as USD=0.92", param, ctx)
        return match["currency"], rate


@click.command()
@click.argument("network", metavar="NETWORK")
@click.option("--markup", type=Share(), help="Price plans that have none: cost and so much more.")
@click.option("--round", "step_micros", type=ABOVE_ZERO, help="Up to a multiple; default: 0.01.")
@click.option("--rate", "rates", type=Rate(), multiple=True, help="Of costs in that currency.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@as_json_option
def sync(  # noqa: PLR0913  # Each argument is an option of the command.
    *,
    network: str,
    markup: Fraction | None,
    step_micros: int | None,
    rates: Sequence[tuple[str, Fraction]],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Bring the plans of a network, with their coverage and cost, in one commit.

    What cannot be read or sold is skipped, with the reason. New plans are disabled until they have
    a price, by `plans price` or by --markup. Prices that there are never change here. Plans that
    the network no longer has are told, and stay.
    """
    if markup is None and (step_micros is not None or rates):
        message = "--round and --rate are for prices that --markup makes"
        raise click.UsageError(message)
    rule = None if markup is None else Markup(markup, step_micros or CENT_MICROS, dict(rates))
    with installation() as container:
        cause = cause_of(container)
        rules = SyncRules(network, container.settings.currency, rule)
        supplied = _supplied(container, network)
        synced = container.catalogue.sync(supplied, rules, cause, dry_run=dry_run)
    _show(synced, cause.at, dry_run=dry_run, as_json=as_json)


def _supplied(container: Container, name: str) -> Sequence[Supplied]:
    networks = container.networks
    if name not in networks.names:
        message = f"NETWORK_PROVIDER names no {name}, but: {', '.join(networks.names)}"
        raise NotPossible(message)
    return supplied_by(networks.of(name))


def _show(synced: Synced, now: datetime, *, dry_run: bool, as_json: bool) -> None:
    rows: Mapping[str, list[Row]] = {
        "created": _plans(synced.created, now),
        "updated": _plans((each.plan for each in synced.updated), now),
        "costs": [_cost(each, now) for each in synced.updated if each.has_other_cost],
        "below_cost": _plans(synced.below_cost, now),
        "withdrawn": _plans(synced.withdrawn, now),
        "skipped": [
            {"provider_plan_id": each.provider_plan_id, "name": each.name, "reason": each.reason}
            for each in synced.skipped
        ],
    }
    show_parts({"dry_run": dry_run, "unchanged": synced.unchanged}, rows, as_json=as_json)


def _plans(plans: Iterable[Plan], now: datetime) -> list[Row]:
    return [_facts(plan, now) for plan in plans]


def _facts(plan: Plan, now: datetime) -> Row:
    terms = plan.terms.at(now)
    return {
        "id": plan.id,
        "provider_plan_id": terms.provider_plan_id,
        "name": terms.name,
        "cost": cost_of(terms),
        "price": (price := price_of(terms)) and f"{price} {terms.currency}",
        "enabled": plan.enabled,
    }


def _cost(updated: Updated, now: datetime) -> Row:
    return {**_facts(updated.plan, now), "cost_before": cost_of(updated.before)}


def price_of(terms: PlanTerms) -> str | None:
    """Return the price of a plan; None while it has none."""
    return None if terms.unpriced else format_amount(terms.retail_price_micros)


def cost_of(terms: PlanTerms) -> str | None:
    """Return what the network takes for a plan, with its currency; None if it is not known."""
    cost = terms.cost
    return None if cost is None else f"{format_amount(cost.amount_micros)} {cost.currency}"
