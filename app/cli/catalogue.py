"""`plans`, `prices` and `providers`: what is sold, and those who supply it."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import IO
from uuid import UUID

import click
import msgspec

from app.bootstrap.providers import LOOKUPS, NETWORKS
from app.cli.arguments import ABOVE_ZERO, AT_LEAST_ZERO, MOMENT, Text, id_argument, matched
from app.cli.import_files import FILE_BYTES_MAX, naming, read_plan_file
from app.cli.operation import Subject, misuse
from app.cli.output import Facts, Said, in_parts, warn, written
from app.cli.session import Session
from app.processes import providers as checks
from app.processes.readiness import wrong_price
from app.processes.smoke import Smoked, Step, smoke
from domain.accounts.providers import switch_provider
from domain.catalogue.commands import Imported
from domain.catalogue.plan import SIMULATED, Plan, PlanTerms
from domain.catalogue.supplied import Supplied
from domain.catalogue.syncing import Markup, Synced, SyncRules
from domain.errors import refuse
from domain.money import format_amount
from projections.engine.shape import pick
from projections.models.plans import PlanRow

CENT_MICROS = 10_000
NUMBER = "+14155552671"  # Of the examples of E.164; it belongs to nobody.
SHARE = re.compile(r"(?P<number>[0-9]{1,4}(?:\.[0-9]{1,4})?)%", re.ASCII)
RATE = re.compile(r"(?P<currency>[A-Z]{3})=(?P<rate>[0-9]{1,9}(?:\.[0-9]{1,9})?)", re.ASCII)

subject = Subject()
plans = subject.add("plans")
prices = subject.add("prices")
providers = subject.add("providers")


def _line_of(entry: Facts) -> Facts:
    """Return what of a plan fits on one line."""
    later = entry["later_prices"]
    return {
        **{name: entry[name] for name in ("id", "name", "provider_plan_id")},
        "price": _in_full(entry["retail_price"], entry["currency"]),
        "later": [f"{it['retail_price']} from {it['from']:%Y-%m-%dT%H:%M:%SZ}" for it in later],
        "cost": _in_full(entry["cost"], entry["cost_currency"]),
        "mb": entry["data_mb"],
        "days": entry["validity_days"],
        "coverage": entry["coverage_type"],
        "countries": len(entry["coverage"]),
        "organization": entry["organization_id"],
        "enabled": entry["enabled"],
        "excluded": entry["excluded_organizations"],
    }


def _entry_of(row: PlanRow) -> Facts:
    """Return a plan in the words of a plan file, so that the whole list can be imported again."""
    terms, cost, later = msgspec.to_builtins(row.terms), row.terms.cost, row.terms.later_prices
    for name in ("retail_price_micros", "unpriced"):
        terms.pop(name, None)
    return {
        **pick("id organization_id enabled", row),
        "excluded_organizations": sorted(row.excluded, key=str),
        "retail_price": _price_of(row.terms),
        **terms,
        "later_prices": [
            {"from": each.starts_at, "retail_price": format_amount(each.retail_price_micros)}
            for each in later or ()
        ],
        "cost": cost and format_amount(cost.amount_micros),
        "cost_currency": cost and cost.currency,
        "network": row.terms.network or SIMULATED,
    }


def _price_of(terms: PlanTerms) -> str | None:
    """Return the price of a plan; None while it has none."""
    return None if terms.unpriced else format_amount(terms.retail_price_micros)


def _cost_in_full(terms: PlanTerms) -> str | None:
    """Return what the network takes for a plan, with its currency; None if it is not known."""
    cost = terms.cost
    return None if cost is None else _in_full(format_amount(cost.amount_micros), cost.currency)


def _in_full(amount: str | None, currency: str) -> str | None:
    return amount and f"{amount} {currency}"


@plans.command("import", right="catalogue")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--below-cost", is_flag=True, help="Also take plans that cost more than they bring.")
def import_plans(session: Session, file: IO[bytes], *, below_cost: bool) -> Imported:
    """Create or change the plans of a JSON file, all or none; `-` is the standard input.

    Plans that are not in the file stay as they are. Importing the same file again changes nothing.
    """
    data = file.read(FILE_BYTES_MAX + 1)
    cause, settings = session.cause, session.container.settings
    with naming(file):
        entries = read_plan_file(data, settings.currency, settings.networks, below_cost=below_cost)
        return session.container.catalogue.import_plans(entries, cause)


@plans.command("list", right=None)
def list_plans(session: Session) -> Said:
    """List all plans by name; with --json in the form of a plan file."""
    container = session.container
    rows = [row.at(container.clock()) for row in session.read(container.plans.all)]
    entries = [*map(_entry_of, rows)]
    return Said(entries, [[*map(_line_of, entries)]])


@plans.command("set", right="catalogue")
@id_argument("plan_id")
@click.option("--price", "price_micros", type=AT_LEAST_ZERO, help="What it costs from now on.")
@click.option("--from", "starts_at", type=MOMENT, help="When the price takes effect instead.")
@click.option("--below-cost", is_flag=True, help="Also a price below what the network takes.")
@click.option("--enable/--disable", "enabled", default=None, help="Whether it is offered.")
@click.option("--exclude", type=click.UUID, multiple=True, metavar="ORG", help="Hide it from ORG.")
@click.option("--include", type=click.UUID, multiple=True, metavar="ORG", help="Show it again.")
def change(  # noqa: PLR0913  # Each is an option.
    session: Session,
    plan_id: UUID,
    *,
    price_micros: int | None,
    starts_at: datetime | None,
    below_cost: bool,
    enabled: bool | None,
    exclude: Sequence[UUID],
    include: Sequence[UUID],
) -> Said:
    """Change a plan: its price, whether it is offered, and to whom; all of it or nothing.

    What was bought keeps its price, and links that have a disabled plan keep it. With --from a
    price takes effect then, by the clock of the database, and prices of other moments stay.
    Without, it holds from now on, prices that were to come are dropped, and a plan that had no
    price yet is enabled. Only a global plan can be hidden.
    """
    if price_micros is None and (starts_at is not None or below_cost):
        misuse("--from and --below-cost are for a --price")
    if price_micros is None and enabled is None and not (exclude or include):
        misuse("give at least one option: there is nothing to change")
    if not {*exclude}.isdisjoint(include):
        misuse("give an organization to --exclude or to --include")
    for organization_id in (*exclude, *include):
        session.require_organization(organization_id)
    cause = session.cause

    def apply(plan: Plan) -> None:
        if price_micros is not None:
            plan.price(price_micros, cause, starts_at=starts_at, below_cost=below_cost)
        if enabled is not None:
            plan.switch(cause, enabled=enabled)
        plan.hide_from({*plan.excluded, *exclude} - {*include}, cause)

    plan = session.container.catalogue.change(plan_id, apply)
    terms = plan.terms.at(cause.at)
    entry = _entry_of(PlanRow(plan.id, plan.organization_id, terms, plan.enabled, plan.excluded))
    return Said(entry, [_line_of(entry)])


def _read_rate(value: str) -> tuple[str, Fraction]:
    match = matched(RATE, value)
    if not (rate := Fraction(match["rate"])):
        raise ValueError
    return match["currency"], rate


@plans.command("sync", right="catalogue")
@click.argument("network", metavar="NETWORK")
@click.option(
    "--markup",
    type=Text(
        "percent",
        lambda value: Fraction(matched(SHARE, value)["number"]) / 100,
        "{!r} is not a share such as 30%",
    ),
    help="Price plans that have none: cost and so much more.",
)
@click.option("--round", "step_micros", type=ABOVE_ZERO, help="Up to a multiple; default: 0.01.")
@click.option(
    "--rate",
    "rates",
    type=Text("currency=rate", _read_rate, "{!r} is not a currency and a rate such as USD=0.92"),
    multiple=True,
    help="Of costs in that currency.",
)
@click.option("--with-conditions", is_flag=True, help="Enable plans that have notices, too.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def sync(  # noqa: PLR0913  # Each argument is an option of the command.
    session: Session,
    *,
    network: str,
    markup: Fraction | None,
    step_micros: int | None,
    rates: Sequence[tuple[str, Fraction]],
    with_conditions: bool,
    dry_run: bool,
) -> Said:
    """Bring the plans of a network, with their coverage and cost, in one commit.

    What cannot be read or sold is skipped, with the reason. New plans are disabled until they have
    a price, by `plans set` or by --markup; those whose traveller must know something, such as an
    identity check (`notices`), only by --with-conditions or `plans set`. Prices that there are
    never change here. Plans that the network no longer has are told, and stay.
    """
    if markup is None and (step_micros is not None or rates or with_conditions):
        misuse("--round, --rate and --with-conditions are for prices that --markup makes")
    rule = None if markup is None else Markup(markup, step_micros or CENT_MICROS, dict(rates))
    container, supplied = session.container, _supplied(session, network)
    rules = SyncRules(network, container.settings.currency, rule, with_conditions)
    done = container.catalogue.sync(supplied, rules, session.cause, dry_run=dry_run)
    return _synced(done, session.cause.at, dry_run=dry_run)


def _synced(done: Synced, now: datetime, *, dry_run: bool) -> Said:
    def rows(plans: Iterable[Plan]) -> list[Facts]:
        return [_supplied_plan(plan, now) for plan in plans]

    return in_parts(
        {"dry_run": dry_run, "unchanged": done.unchanged},
        {
            "created": rows(done.created),
            "updated": rows(done.updated),
            "costs": [
                _supplied_plan(plan, now, cost_before=_cost_in_full(before))
                for plan, before in done.other_costs
            ],
            "below_cost": rows(done.below_cost),
            "withdrawn": rows(done.withdrawn),
            "skipped": done.skipped,
        },
    )


def _supplied(session: Session, name: str) -> Sequence[Supplied]:
    networks = session.container.networks
    session.container.gate.refuse()
    if name not in networks.names:
        refuse(f"NETWORK_PROVIDER names no {name}, but: {', '.join(networks.names)}")
    return checks.supplied_by(networks.of(name))


def _supplied_plan(plan: Plan, now: datetime, **given: str | None) -> Facts:
    terms = plan.terms.at(now)
    cost, price = _cost_in_full(terms), _in_full(_price_of(terms), terms.currency)
    facts = {"cost": cost, "price": price, "notices": terms.notices or msgspec.UNSET, **given}
    return pick("id provider_plan_id name cost price enabled", terms, plan, **facts)


@prices.command("lookup", right="catalogue", when=lambda given: given["amount_micros"] is not None)
@click.argument("amount_micros", metavar="[AMOUNT]", type=AT_LEAST_ZERO, required=False)
def price_lookups(session: Session, amount_micros: int | None) -> Facts:
    """Set what a lookup costs each organization without a price of its own (`org set --price`).

    Every process charges it within a second or two; jobs keep the price of their creation. Without
    AMOUNT the price is shown. PRICE_PER_LOOKUP, where it is set, has to be the same at each start.
    Once there is an approval limit, a new price waits for another operator.
    """
    container, waits = session.container, None
    if amount_micros is not None:
        waits = container.accounts.set_lookup_price(amount_micros, session.cause)
        if (wrong := wrong_price(container)) is not None:
            warn(f"no process starts again here: {wrong}")
    known = container.prices.refresh()
    return {
        "price": format_amount(container.prices.of_lookup(None)),
        "currency": container.currency.code,
        "since": known and known.modified_on,
        **({} if waits is None else {"proposal": waits.id}),
    }


transcripts_option = click.option(
    "--transcripts",
    type=click.Path(file_okay=False, path_type=Path),
    default=checks.TRANSCRIPTS,
    help="The directory of the transcripts, instead of that of the code.",
)


@providers.command("check", right=None)
@click.argument("name", metavar="[NAME]", required=False)
@transcripts_option
def check(session: Session, name: str | None, transcripts: Path) -> list[checks.Checked]:
    """Ask the configured providers, read-only, and say what works.

    Each is asked for a sign of life and for what we have left there. Exits with 1 if one of them
    does not answer. The circuit is that of this process: metrics show those of the others.
    """
    settings = session.container.settings
    known = [*settings.lookup_providers, *settings.networks]
    if name is not None and name not in known:
        refuse(f"{name} is not configured; there are: {', '.join(known)}")
    done = checks.check(session.container, name, transcripts)
    session.ok = all(each.up for each in done)
    return done


@providers.command("smoke", right="money")  # It spends our money at the provider.
@click.argument("name", metavar="NAME")
@click.option("--spend-max", type=ABOVE_ZERO, required=True, help="In the provider's currency.")
@click.option("--number", default=NUMBER, show_default=True, help="Which to look up (E.164).")
@click.option("--plan", "plan_id", help="The provider's id of the plan to buy; else the cheapest.")
@transcripts_option
def smoke_one(  # noqa: PLR0913  # Each is an option.
    session: Session,
    *,
    name: str,
    spend_max: int,
    number: str,
    plan_id: str | None,
    transcripts: Path,
) -> Said:
    """Buy one thing for real, read all about it and give it back; it costs money.

    Of a lookup provider one lookup, of a network an eSIM with the cheapest plan. Nobody is charged,
    and the log does not hold it. The exchanges are kept in a file, without numbers and secrets.
    """
    exchanges = session.container.record_calls()
    at = session.container.gate.require()
    session.catch_up()
    done = smoke(session.container, name, spend_max, number, plan_id)
    saved = _save_transcript(exchanges, name, done, at, transcripts)
    cost, session.ok = done.cost, done.ok
    facts = {
        "provider": name,
        "ok": done.ok,
        "spent": cost and format_amount(cost.amount_micros),
        "currency": cost and cost.currency,
        "reference": cost and cost.reference,
        "given_back": done.given_back,
        "transcript": saved,
    }
    return Said({**facts, "steps": done.steps}, [done.steps, "", facts])


@providers.command("drain", right="catalogue")
@click.argument("name", metavar="NAME", type=click.Choice([*LOOKUPS, *NETWORKS]))
@click.option("--end", is_flag=True, help="Give it new work again.")
def drain(session: Session, name: str, *, end: bool) -> Facts:
    """Give a provider no new work, until --end; what is open is finished.

    Lookups go to the next provider of LOOKUP_PROVIDER; without one they are answered 503. Plans of
    a network cannot be bought, and its links are read and switched as ever. Every process knows
    within a second or two.
    """
    by = switch_provider(session.container.log, name, session.cause, drained=not end).drained
    who = by and (by.actor if session.as_json else session.named(by.actor).name)
    return {"provider": name, "drained": by is not None, "since": by and by.timestamp, "by": who}


def _save_transcript(
    exchanges: Sequence[Facts], name: str, done: Smoked, at: datetime, directory: Path
) -> Path | None:
    """Write the transcript, if a provider was called at all; one of the same day is replaced.

    If that fails it is one more step, because what was bought must be told all the same.
    """
    if not exchanges:
        return None
    path = directory / f"{name}-{at:%Y-%m-%d}.json"
    steps = [{"step": each.step, "ok": each.ok} for each in done.steps]
    facts = {"provider": name, "ok": done.ok, "steps": steps, "exchanges": exchanges}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with written(path) as file:
            file.write(json.dumps(facts, indent=1, ensure_ascii=False).encode() + b"\n")
    except OSError as error:
        done.steps.append(Step("keep the transcript", ok=False, ms=0, told=error.strerror))
        return None
    return path
