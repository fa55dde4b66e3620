"""`links`: the eSIMs that partners have bought, and what has happened to each."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import IO, Any
from uuid import UUID

import click
from msgspec import to_builtins

from app.bootstrap.container import Container
from app.cli.import_files import FILE_BYTES_MAX, read_link_file
from app.cli.installation import catch_up, cause_of, installation, require_organization
from app.cli.output import Refusals, as_json_option, named, show, show_list
from app.cli.working import working
from domain.accounts.wallet import Wallet
from domain.catalogue.file_errors import FileRefused
from domain.errors import NotFound
from domain.links.bought_plan import Activation
from domain.links.esim import ICCID, holder_of
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.links.status import Target
from domain.money import format_amount
from projections.models.links import LinkRow
from projections.models.timelines import TimelineEntry
from projections.models.unfinished import ListedWork
from workers.sweep import FOREVER

RETRY_MAX = 10_000  # There cannot be more at once.
CHUNK = 1_000  # Links read at once, because reading all in one go would delay the projector.

SIGNS = {Wallet.Charged.TOPIC: "-", Wallet.Refunded.TOPIC: "+"}


class Identifier(click.ParamType[UUID | str, str]):
    """How a link is named: by its id, or by the ICCID of its eSIM."""

    name = "id|iccid"

    def convert(
        self, value: UUID | str, param: click.Parameter | None, ctx: click.Context | None
    ) -> UUID | str:
        if isinstance(value, UUID) or ICCID.fullmatch(value):
            return value
        try:
            return UUID(value)
        except ValueError:
            self.fail(f"{value!r} is neither the id of a link nor an ICCID", param, ctx)


@click.group(name="links")
def command() -> None:
    """Links: the eSIMs that partners have bought."""


@command.command()
@as_json_option
def retry(*, as_json: bool) -> None:
    """Work on all unfinished links and plan changes now, as the clock would do later.

    What must wait for the network, such as a late endpoint, stays unfinished. A running service may
    work on the same links: nothing is charged or refunded twice.
    """
    with installation() as container:
        catch_up(container)
        with working(container) as drain:
            sent = container.provisioning_sweep.run(everything=True, work_max=RETRY_MAX)
            drain()
        catch_up(container)
        with container.views.reading() as connection:
            left = len(container.unfinished.due(connection, FOREVER, RETRY_MAX))
    show({"sent": sent, "unfinished": left}, as_json=as_json)


@command.command(name="import")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@as_json_option
def import_file(*, file: IO[bytes], dry_run: bool, as_json: bool) -> None:
    """Take over the links of a JSON file that were issued elsewhere, all or none; `-` is the input.

    Nothing is charged. Importing the same file again changes nothing.
    """
    data = file.read(FILE_BYTES_MAX + 1)
    with installation() as container:
        cause = cause_of(container)
        try:
            entries = read_link_file(data, container.networks.names)
            done = container.link_import.run(entries, cause, dry_run=dry_run)
        except FileRefused as refused:
            raise Refusals(refused.lines) from refused
    show(asdict(done), as_json=as_json)


@command.command(name="list")
@click.option(
    "--org", "organization_id", metavar="ID", type=click.UUID, help="Of this organization only."
)
@click.option("--unfinished", is_flag=True, help="Instead: what has not ended, oldest first.")
@as_json_option
def list_all(*, organization_id: UUID | None, unfinished: bool, as_json: bool) -> None:
    """List links, newest first; failed ones are left out.

    With --unfinished it lists links in the making, plan changes, changes of status and lost orders
    that have not ended, with their age and when each is worked on again.
    """
    with installation() as container:
        require_organization(container, organization_id)
        catch_up(container)
        if unfinished:
            found = [_unfinished(container, each) for each in _work(container)]
            rows = [e for e in found if organization_id in {None, e["organization"]}]
        else:
            rows = [_short_facts(row) for row in _read_all(container, organization_id)]
    show_list(rows, as_json=as_json)


def _switching(name: str, target: Target, doc: str) -> None:
    """Make a command that brings a link to a status."""

    @command.command(name=name, help=doc)
    @click.argument("identifier", metavar="IDENTIFIER", type=Identifier())
    @as_json_option
    def switch(*, identifier: UUID | str, as_json: bool) -> None:
        with installation() as container:
            cause, link = cause_of(container), find_link(container, identifier)
            container.rest.refuse()  # It would only be asked for, and done after a release.
            changed = container.link_status.run(link, target, cause)
        show({"id": changed.id, "status": changed.state}, as_json=as_json)


_switching("suspend", "suspended", "Stop the traffic of a link; its plans go on to expire.")
_switching("reactivate", "active", "Let a link carry traffic again.")


@command.command()
@click.argument("identifier", metavar="IDENTIFIER", type=Identifier())
@as_json_option
def end(*, identifier: UUID | str, as_json: bool) -> None:
    """End a link for good, at its network too as far as that can; no money goes back."""
    with installation() as container:
        cause, link = cause_of(container), find_link(container, identifier)
        container.rest.refuse()  # It would only be asked for, and done after a release.
        ended = container.link_ending.end(link, cause)
    show({"id": ended.id, "status": ended.state}, as_json=as_json)


@command.command(name="show")
@click.argument("identifier", metavar="IDENTIFIER", type=Identifier())
@as_json_option
def show_one(*, identifier: UUID | str, as_json: bool) -> None:
    """Show a link by its id or ICCID, with every event about it in order, and its money.

    By its id a link is also shown if it has failed or is not active yet, and by an ICCID that no
    link has, the one that had it last.
    """
    with installation() as container:
        link = find_link(container, identifier)
        catch_up(container)
        with container.views.reading() as connection:
            timeline = container.timelines.of_link(connection, link.id)
        name = container.link_readings.open_text(link.organization_id, link.id, link.name)
        facts = _facts(link, name, _msisdn(container, link.id))
        names = container.operators.names()
    activations = [_activation(each) for each in link.activations.values()]
    if as_json:
        told = [_entry(each, names) for each in timeline]
        show({**facts, "activations": activations, "timeline": told}, as_json=True)
        return
    show(facts, as_json=False)
    if activations:
        click.echo()
        show_list(activations, as_json=False)
    click.echo()
    show_list([_told(each, names) for each in timeline], as_json=False)


def _read_all(container: Container, organization_id: UUID | None) -> Iterator[LinkRow]:
    before = None
    while True:
        with container.views.reading() as connection:
            rows = container.links.all(connection, organization_id, before=before, limit=CHUNK)
        yield from rows
        if len(rows) < CHUNK:
            return
        before = rows[-1].position


def find_link(container: Container, identifier: UUID | str) -> Link:
    """Find a link in the log itself, which also knows links that are in no list."""
    link_id: UUID | None
    if isinstance(identifier, UUID):
        link_id = identifier
    else:
        link_id = holder_of(container.log, container.network_names, identifier, or_last=True)
    link = container.log.find(Link, link_id) if link_id is not None else None
    if link is None:
        message = "there is no link with this id or ICCID"
        raise NotFound(message)
    return link


def _msisdn(container: Container, link_id: UUID) -> str | None:
    reading = container.readings.find([link_id]).get(link_id)
    return reading.usage.msisdn if reading is not None and reading.usage is not None else None


def _work(container: Container) -> list[ListedWork]:
    with container.views.reading() as connection:
        return container.unfinished.all(connection)


def _unfinished(container: Container, work: ListedWork) -> dict[str, Any]:
    """Return what has not ended, as the log has it; `link` is what `links show` takes."""
    log, link_id = container.log, work.id
    if work.kind == "plan_change":
        link_id = log.get(PlanChange, work.id).link_id
    elif work.kind == "lost_order":
        link_id = log.get(LostOrder, work.id).opened.link_id
    link = log.get(Link, link_id)
    return {
        "kind": work.kind,
        "id": work.id,
        "link": link.id,
        "organization": link.organization_id,
        "stage": link.stage,
        "age_s": int((container.clock() - work.begun_at).total_seconds()),
        "begun_at": work.begun_at,
        "due_at": work.due_at,
    }


def _short_facts(row: LinkRow) -> dict[str, Any]:
    """Return the facts that fit on one line."""
    return {
        "id": row.id,
        "organization": row.organization_id,
        "name": row.name,
        "iccid": row.iccid,
        "status": row.status,
        "plans": [each.plan.name for each in row.current_activations],
        "created_at": row.created_at,
    }


def _facts(link: Link, name: str | None, msisdn: str | None) -> dict[str, Any]:
    profile, failure = link.sponsor_profile, link.failure
    return {
        "id": link.id,
        "organization": link.organization_id,
        "name": name,
        "stage": link.stage,
        "status": link.state if link.is_visible else None,
        "iccid": link.iccid,
        "msisdn": msisdn,
        "network": link.network,
        "endpoint_id": link.endpoint_id,
        "sponsor_profile": None if profile is None else to_builtins(profile),
        "failure": None if failure is None else failure.code,
        "requested_at": link.requested.timestamp,
        "deadline": link.requested.deadline,
        "created_at": link.activated_at,
        "installed_at": link.installed_at,
        "first_used_at": link.first_used_at,
        "open_change": link.open_change,
    }


def _activation(activation: Activation) -> dict[str, Any]:
    plan = activation.plan
    return {
        "activation": activation.id,
        "plan": plan.plan_id,
        "name": plan.name,
        "provider_plan_id": plan.provider_plan_id,
        "price": format_amount(plan.price_micros),
        "mb": plan.data_mb,
        "days": plan.validity_days,
        "addon_id": activation.addon_id,
        "bought_at": activation.bought_at,
        "removed_at": activation.removed_at,
    }


def _entry(entry: TimelineEntry, names: Mapping[str, str]) -> dict[str, Any]:
    by = "actor" in entry.facts
    facts = named(entry.facts, "actor", names, as_json=True) if by else entry.facts
    return {"position": entry.position, "at": entry.at, "what": entry.what, "facts": facts}


def _told(entry: TimelineEntry, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an event as a row for people; its money and its actor have columns of their own."""
    facts, money = dict(entry.facts), None
    if entry.what in SIGNS:
        money = f"{SIGNS[entry.what]}{facts.pop('amount')} {facts.pop('currency')}"
    who = facts.pop("actor", None)
    beside = {"money": money, "who": names.get(who, who), "facts": _line(facts)}
    return {"position": entry.position, "at": entry.at, "what": entry.what, **beside}


def _line(facts: Mapping[str, Any]) -> str:
    """Format the facts of an event on one line, each with its name."""
    return ", ".join(f"{name} {_words(value)}" for name, value in facts.items())


def _words(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return f"[{'; '.join(map(_words, value))}]"
        case Mapping():
            return _line(value)
        case _:
            return str(value)
