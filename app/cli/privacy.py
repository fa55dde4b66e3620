"""`privacy`: erases personal data."""

from collections.abc import Sequence
from typing import Any, Literal, get_args
from uuid import UUID

import click

from app.bootstrap.container import Container
from app.cli.arguments import Month
from app.cli.installation import cause_of, installation, require_organization
from app.cli.links import Identifier, find_link
from app.cli.output import as_json_option, show, show_list
from app.http.lookups.input import is_e164
from app.processes.erasing import Wanted, erase, find_months, find_number, find_stream
from domain.errors import NotPossible
from domain.months import month_of, next_month

Choice = Literal["before", "number", "link", "lookup", "job"]
CHOICES: Sequence[Choice] = get_args(Choice)


@click.group(name="privacy")
def command() -> None:
    """Personal data and its end."""


@command.command(name="erase")
@click.option("--before", type=Month(), help="All months before this one, the present one too.")
@click.option("--number", metavar="E164", help="What holds this number; needs --org.")
@click.option("--link", type=Identifier(), help="Names and activation codes of this link.")
@click.option("--lookup", type=click.UUID, metavar="ID", help="This lookup.")
@click.option("--job", type=click.UUID, metavar="ID", help="All numbers and results of this job.")
@click.option(
    "--org", "organization_id", metavar="ID", type=click.UUID, help="Of this organization only."
)
@click.option(
    "--whole-months",
    is_flag=True,
    help="Erase all of a month of the organization where an earlier release sealed it as one.",
)
@click.option("--dry-run", is_flag=True, help="Only list what goes.")
@as_json_option
def erase_data(
    *,
    organization_id: UUID | None,
    whole_months: bool,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Make numbers, results, activation codes and names of links unreadable for ever.

    Jobs and lookups then answer 404; money stays. This cannot be undone, except from a copy of the
    keys. Names of links that earlier releases wrote stand in the log in clear, and stay there.
    """
    chosen, before = _chosen(given, organization_id), given["before"]
    with installation() as container:
        cause = cause_of(container)
        require_organization(container, organization_id)
        found = _find(container, chosen, given, organization_id, begin_anew=not dry_run)
        if whole_months:
            for each in found:
                each.take_whole_months()
        keys = answers = 0
        if not dry_run:
            _require_separable(found)
            keys, answers = erase(container, found, cause, before, organization_id)
    if dry_run:
        show_list([*_rows(found)], as_json=as_json)
        return
    facts: dict[str, Any] = {"names_in_clear": sum(each.names_in_clear for each in found)}
    if before is not None:
        facts = {"before": month_of(before)}
    show(
        {
            **facts,
            "organization": organization_id,
            "erased_keys": keys,
            "forgotten_answers": answers,
        },
        as_json=as_json,
    )


def _chosen(given: dict[str, Any], organization_id: UUID | None) -> Choice:
    chosen = [name for name in CHOICES if given[name] is not None]
    if len(chosen) != 1 or (chosen == ["number"] and organization_id is None):
        message = "name one of --before, --number (with --org), --link, --lookup and --job"
        raise click.UsageError(message)
    if chosen == ["number"] and not is_e164(given["number"]):
        message = "--number is none such as +14155550100"
        raise click.UsageError(message)
    return chosen[0]


def _find(
    container: Container,
    chosen: Choice,
    given: dict[str, Any],
    organization_id: UUID | None,
    *,
    begin_anew: bool,
) -> list[Wanted]:
    wanted = given[chosen]
    match chosen:
        case "before":
            end, present = month_of(wanted), month_of(container.clock())
            if end > next_month(present):
                message = f"--before {end} is after the month that follows the present one"
                raise NotPossible(message)
            return find_months(container, end, organization_id, begin_anew=begin_anew)
        case "number":
            assert organization_id is not None
            return [find_number(container, organization_id, wanted)]
        case "link":
            wanted = find_link(container, wanted).id
    return [find_stream(container, chosen, wanted, organization_id)]


def _require_separable(found: list[Wanted]) -> None:
    """Refuse before anything is erased, if something of it goes with its whole month only."""
    months = sorted({each.key for one in found for each in one.pieces if each.is_inseparable})
    if months:
        message = (
            f"an earlier release sealed all of a month with one key, so this goes only with all "
            f"that the organization has in {', '.join(months)}: add --whole-months for that"
        )
        raise NotPossible(message)


def _rows(found: list[Wanted]) -> Any:
    for one in found:
        for each in one.pieces:
            yield {
                "organization": one.organization_id,
                "kind": each.kind,
                "id": each.id,
                "key": each.key,
                "whole_month": each.id is None or each.is_inseparable,
            }
