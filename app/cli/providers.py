"""`providers`: lookup providers and networks, and what works at them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from app.bootstrap.container import Container
from app.bootstrap.providers import LOOKUPS, NETWORKS
from app.cli.arguments import ABOVE_ZERO
from app.cli.installation import catch_up, cause_of, installation
from app.cli.output import as_json_option, show, show_list, written
from app.processes import providers as checks
from app.processes.smoke import Smoked, Step, smoke
from domain.errors import NotPossible
from domain.money import format_amount

NUMBER = "+14155552671"  # Of the examples of E.164; it belongs to nobody.

name_argument = click.argument("name", metavar="NAME", type=click.Choice([*LOOKUPS, *NETWORKS]))
transcripts_option = click.option(
    "--transcripts",
    type=click.Path(file_okay=False, path_type=Path),
    default=checks.TRANSCRIPTS,
    help="The directory of the transcripts, instead of that of the code.",
)


@click.group(name="providers")
def command() -> None:
    """Lookup providers and networks: what works there, and which of them get new work."""


@command.command()
@click.argument("name", metavar="[NAME]", required=False)
@transcripts_option
@as_json_option
@click.pass_context
def check(context: click.Context, *, name: str | None, transcripts: Path, as_json: bool) -> None:
    """Ask the configured providers, read-only, and say what works.

    Each is asked for a sign of life and for what we have left there. Exits with 1 if one of them
    does not answer. The circuit is that of this process: metrics show those of the others.
    """
    with installation() as container:
        _require_configured(container, name)
        rows = [asdict(each) for each in checks.check(container, name, transcripts)]
    show_list(rows, as_json=as_json)
    if not all(each["up"] for each in rows):
        context.exit(1)


@command.command(name="smoke")
@click.argument("name", metavar="NAME")
@click.option("--spend-max", type=ABOVE_ZERO, required=True, help="In the provider's currency.")
@click.option("--number", default=NUMBER, show_default=True, help="Which to look up (E.164).")
@click.option("--plan", "plan_id", help="The provider's id of the plan to buy; else the cheapest.")
@transcripts_option
@as_json_option
@click.pass_context
def smoke_one(  # noqa: PLR0913  # Each is an option.
    context: click.Context,
    *,
    name: str,
    spend_max: int,
    number: str,
    plan_id: str | None,
    transcripts: Path,
    as_json: bool,
) -> None:
    """Buy one thing for real, read all about it and give it back; it costs money.

    Of a lookup provider one lookup, of a network an eSIM with the cheapest plan. Nobody is charged,
    and the log does not hold it. The exchanges are kept in a file, without numbers and secrets.
    """
    with installation() as container:
        exchanges = container.record_calls()
        cause = cause_of(container)
        catch_up(container)
        done = smoke(container, name, spend_max, number, plan_id)
        kept = _keep(exchanges, name, done, cause.at, transcripts)
    facts = {
        "provider": name,
        "ok": done.ok,
        "spent": done.cost and format_amount(done.cost.amount_micros),
        "currency": done.cost and done.cost.currency,
        "reference": done.cost and done.cost.reference,
        "given_back": done.given_back,
        "transcript": str(kept) if kept else None,
    }
    steps = [asdict(each) for each in done.steps]
    if as_json:
        show(facts | {"steps": steps}, as_json=True)
    else:
        show_list(steps, as_json=False)
        click.echo()
        show(facts, as_json=False)
    if not done.ok:
        context.exit(1)


@command.command()
@name_argument
@as_json_option
def drain(*, name: str, as_json: bool) -> None:
    """Give a provider no new work; what is open is finished.

    Lookups go to the next provider of LOOKUP_PROVIDER; without one they are answered 503. Plans of
    a network cannot be bought, and its links are read and switched as ever. Every process knows
    within a second or two.
    """
    _switch(name, drained=True, as_json=as_json)


@command.command()
@name_argument
@as_json_option
def resume(*, name: str, as_json: bool) -> None:
    """Give a provider new work again."""
    _switch(name, drained=False, as_json=as_json)


def _switch(name: str, *, drained: bool, as_json: bool) -> None:
    with installation() as container:
        known = container.drains.switch(name, cause_of(container), drained=drained)
        names = container.operators.names()
    by = known.drained
    actor = by and by.actor
    told = {"since": by and by.timestamp, "by": actor if as_json else names.get(actor or "", actor)}
    show({"provider": name, "drained": by is not None, **told}, as_json=as_json)


def _require_configured(container: Container, name: str | None) -> None:
    known = [*container.settings.lookup_providers, *container.settings.networks]
    if name is not None and name not in known:
        message = f"{name} is not configured; there are: {', '.join(known)}"
        raise NotPossible(message)


def _keep(
    exchanges: Sequence[Mapping[str, Any]], name: str, done: Smoked, at: datetime, directory: Path
) -> Path | None:
    """Write the transcript, if a provider was called at all; one of the same day is replaced.

    If that fails it is one more step, because what was bought must be told all the same.
    """
    if not exchanges:
        return None
    path = directory / f"{name}-{at:%Y-%m-%d}.json"
    steps = [{"step": each.step, "ok": each.ok} for each in done.steps]
    told = {"provider": name, "ok": done.ok, "steps": steps, "exchanges": exchanges}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with written(path) as file:
            file.write(json.dumps(told, indent=1, ensure_ascii=False).encode() + b"\n")
    except OSError as error:
        done.steps.append(Step("keep the transcript", ok=False, ms=0, told=error.strerror))
        return None
    return path
