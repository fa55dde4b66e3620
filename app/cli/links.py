"""`links`, `jobs`, `work` and `webhooks`: what partners have bought, and what they are told."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import IO, Any, Final, Literal, get_args
from urllib.parse import urlsplit
from uuid import UUID

import click
from msgspec import to_builtins

from app.bootstrap.container import Container
from app.cli.arguments import Text, id_argument, org_option
from app.cli.import_files import FILE_BYTES_MAX, naming, read_link_file
from app.cli.operation import Subject, misuse
from app.cli.output import Facts, Said, facts_of, warn
from app.cli.session import Session
from domain.accounts.wallet import Wallet
from domain.errors import refuse
from domain.links.bought_plan import Activation
from domain.links.esim import ICCID, holder_of
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.links.requested import Target
from domain.lookups.bulk_job import BulkJob
from domain.money import format_amount
from domain.personal import open_text
from domain.webhooks.commands import Changes
from domain.webhooks.deliveries import Sums
from domain.webhooks.endpoint import WebhookEndpoint
from projections.engine.shape import pick
from projections.models.due import Due
from projections.models.jobs import JobCounts, row_of
from projections.models.links import UNLISTED, LinkRow
from projections.models.webhook_endpoints import WebhookEndpointRow
from projections.stores.counters import SLICES
from projections.timeline import TimelineEntry, timeline_of
from workers.routes import Message, saga_message, slice_message

RETRY_MAX = 10_000  # Of one organization and kind; there cannot be more at once.
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)
CHUNK = 1_000  # Links read at once, because reading all in one go would delay the projector.

DELIVERY = (
    "id type status position attempts response_status error duration_ms created_at next_attempt_at"
)
ENDED: Final = "ended"
SIGNS = {Wallet.Charged.TOPIC: "-", Wallet.Refunded.TOPIC: "+"}

subject = Subject()
links = subject.add("links")
jobs = subject.add("jobs")
work = subject.add("work")
webhooks = subject.add("webhooks")


# How a link is named: by its id, or by the ICCID of its eSIM.
IDENTIFIER = Text(
    "id|iccid",
    lambda value: value if ICCID.fullmatch(value) else UUID(value),
    "{!r} is neither the id of a link nor an ICCID",
)
link_argument = click.argument("identifier", metavar="IDENTIFIER", type=IDENTIFIER)
endpoint_argument = id_argument("endpoint_id", "ENDPOINT")


def load_link(container: Container, identifier: UUID | str) -> Link:
    """Find a link in the log itself, which also knows links that are in no list."""
    link_id: UUID | None
    if isinstance(identifier, UUID):
        link_id = identifier
    else:
        link_id = holder_of(container.log, container.network_names, identifier, or_last=True)
    link = container.log.find(Link, link_id) if link_id is not None else None
    if link is None:
        refuse("there is no link with this id or ICCID")
    return link


@links.command("import", right="money")  # A fee falls due for each of them.
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--skip", is_flag=True, help="Leave out what is wrong, and say why.")
def import_links(session: Session, file: IO[bytes], *, dry_run: bool, skip: bool) -> Facts:
    """Take over the links of a JSON file that were issued elsewhere, all or none; `-` is the input.

    Nothing is charged. Importing the same file again changes nothing. With --skip all are taken
    over of which nothing is wrong.
    """
    data = file.read(FILE_BYTES_MAX + 1)
    cause, container = session.cause, session.container
    with naming(file):
        left: list[str] | None = [] if skip else None
        entries = read_link_file(data, container.networks.names, left)
        done = container.link_import.run(entries, cause, dry_run=dry_run, skip=skip)
    facts = {"created": done.created, "unchanged": done.unchanged}
    return facts if left is None else facts | {"skipped": [*left, *done.skipped]}


@links.command("list", right=None)
@org_option("Of this organization only.")
@click.option("--unfinished", is_flag=True, help="Instead: what has not ended, oldest first.")
def list_links(session: Session, *, organization_id: UUID | None, unfinished: bool) -> list[Facts]:
    """List links, newest first; failed ones are left out.

    With --unfinished it lists links in the making, plan changes, changes of status and lost orders
    that have not ended, with their age and when each is worked on again.
    """
    container = session.container
    session.require_organization(organization_id)
    session.catch_up()
    if not unfinished:
        return [*map(_link_line, _read_all(container, organization_id))]
    work = container.views.read(container.due_list.all)
    found = [_unfinished(container, each) for each in work]
    return [each for each in found if organization_id in {None, each["organization"]}]


@links.command("set", right="money")
@link_argument
@click.option("--status", required=True, type=click.Choice([*get_args(Target), ENDED]))
def change(session: Session, identifier: UUID | str, status: Target | Literal["ended"]) -> Facts:
    """Suspend a link, let it carry traffic again, or end it.

    The plans of a `suspended` link go on to expire; `active` lets it carry traffic again. `ended`
    is for good, at its network too as far as that can; no money goes back.
    """
    container, cause = session.container, session.cause
    link = load_link(container, identifier)
    container.gate.refuse()  # It would only be asked for, and done after a release.
    if status == ENDED:
        changed = container.link_ending.end(link, cause)
    else:
        changed = container.link_status.run(link, status, cause)
    return {"id": changed.id, "status": changed.state}


@links.command("show", right=None)
@link_argument
def show_link(session: Session, identifier: UUID | str) -> Said:
    """Show a link by its id or ICCID, with every event about it in order, and its money.

    By its id a link is also shown if it has failed or is not active yet, and by an ICCID that no
    link has, the one that had it last.
    """
    container = session.container
    link = load_link(container, identifier)
    entries = session.read(container.transactions.about, link.id)
    timeline = timeline_of(container.log, container.vault, link, entries)
    facts = _link_facts(container, link)
    activations = [_activation(each) for each in link.activations.values()]
    shown = [_entry(session, each) for each in timeline]
    rows = [_event_row(session, each) for each in timeline]
    return Said(
        {**facts, "activations": activations, "timeline": shown},
        [facts, *(["", activations] if activations else []), "", rows],
    )


def _link_line(row: LinkRow) -> Facts:
    """Return the facts that fit on one line."""
    plans = [each.plan.name for each in row.current_activations]
    names = "id organization name iccid status plans created_at"
    return pick(names, row, status=ENDED if row.status == UNLISTED else row.status, plans=plans)


def _read_all(container: Container, organization_id: UUID | None) -> Iterator[LinkRow]:
    before: int | None = None
    read, all_links = container.views.read, container.links.all
    while rows := read(all_links, organization_id, before=before, limit=CHUNK):
        yield from rows
        before = rows[-1].position


def _unfinished(container: Container, work: Due) -> Facts:
    """Return what has not ended, as the log has it; `link` is what `links show` takes."""
    log, link_id = container.log, work.id
    if work.kind == "plan_change":
        link_id = log.get(PlanChange, work.id).link_id
    elif work.kind == "lost_order":
        link_id = log.get(LostOrder, work.id).opened.link_id
    link = log.get(Link, link_id)
    age_s = int((container.clock() - work.begun_at).total_seconds())
    names = "kind id link organization stage age_s begun_at due_at"
    return pick(names, work, link, link=link.id, age_s=age_s)


def _link_facts(container: Container, link: Link) -> Facts:
    profile, failure = link.sponsor_profile, link.failure
    reading = container.readings.load([link.id]).get(link.id)
    usage = reading and reading.usage
    return pick(
        "id organization name stage status iccid msisdn network endpoint_id sponsor_profile "
        "failure requested_at deadline created_at installed_at first_used_at open_change",
        link,
        link.requested,
        name=open_text(container.vault, link.organization_id, link.id, link.name),
        status=link.state if link.is_visible else None,
        msisdn=usage and usage.msisdn,
        sponsor_profile=None if profile is None else to_builtins(profile),
        failure=None if failure is None else failure.code,
        requested_at=link.requested.timestamp,
        created_at=link.activated_at,
    )


def _activation(activation: Activation) -> Facts:
    plan = activation.plan
    ids = {"activation": activation.id, "plan": plan.plan_id}
    names = "activation plan name provider_plan_id price mb days addon_id bought_at removed_at"
    return pick(names, plan, activation, mb=plan.data_mb, days=plan.validity_days, **ids)


def _entry(session: Session, entry: TimelineEntry) -> Facts:
    facts = dict(entry.facts)
    if "actor" in facts:
        facts["actor"] = session.named(facts["actor"])
    return {**entry._asdict(), "facts": facts_of(facts)}


def _event_row(session: Session, entry: TimelineEntry) -> Facts:
    """Return an event as a row for people; its money and its actor have columns of their own."""
    facts, money = dict(entry.facts), None
    if entry.what in SIGNS:
        money = f"{SIGNS[entry.what]}{facts.pop('amount')} {facts.pop('currency')}"
    who = session.named(facts.pop("actor", None)).name
    beside = {"money": money, "who": who, "facts": _line(facts)}
    return {"position": entry.position, "at": entry.at, "what": entry.what, **beside}


def _line(facts: Facts) -> str:
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


@work.command("retry", right=None)
def retry(session: Session) -> Mapping[str, int]:
    """Work on all unfinished jobs, links and plan changes now, as workers would do later.

    Without RabbitMQ the queue of a running service is inside its process, so this command does the
    work itself; with RabbitMQ it only asks, and the workers do it. What must wait for the network,
    such as a late endpoint, stays unfinished. A running service may work on the same: nothing is
    charged or refunded twice.
    """
    container = session.container
    container.gate.refuse_held()  # The workers would not.
    container.counters.clear(SLICES, unheld=True)
    due, read = container.due_list, container.views.read
    owners, _ = session.read(due.owners, FOREVER)
    listed = (read(due.first, each, FOREVER, RETRY_MAX) for each in owners)
    found = [each for each in chain.from_iterable(listed) if each.kind != "fee"]
    container.currency.check()  # The work may charge.
    container.gate.require()
    for each in found:
        is_slice, about = each.kind == "slice", (each.id, each.part)
        _request(container, slice_message(*about) if is_slice else saga_message(each.kind, each.id))
    left = len(session.read(container.due_list.all))
    ids = {each.id for each in found if each.kind == "slice"}
    finished = sum(container.log.get(BulkJob, each).finished_at is not None for each in ids)
    return {"sent": len(found), "jobs_finished": finished, "links_unfinished": left}


def _request(container: Container, message: Message) -> None:
    """Ask the workers for work; without RabbitMQ do it here."""
    if not container.settings.has_own_broker:
        container.publisher.publish(message)
        return
    try:
        container.broker.get_actor(message.actor)(*message.arguments)
    except Exception as error:  # noqa: BLE001  # As with workers, the rest is worked on all the same.
        warn(f"{message.actor} failed: {type(error).__name__}")


@jobs.command("list", right=None)
@org_option("Of this one only.")
@click.option("--unfinished", is_flag=True, help="Only what has not ended, the oldest first.")
def list_jobs(session: Session, *, organization_id: UUID | None, unfinished: bool) -> list[Facts]:
    """List jobs, newest first, and of each that has not ended its age and since when it rests."""
    session.require_organization(organization_id)
    container = session.container
    now = container.clock()
    found = session.read(container.jobs.all, organization_id, unfinished=unfinished)
    return [_job(each, now) for each in found]


def _job(job: JobCounts, now: datetime) -> Facts:
    def since(moment: datetime) -> int | None:
        return None if job.finished_at is not None else int((now - moment).total_seconds())

    names = "id organization status total processed created_at finished_at age_s idle_s"
    return pick(names, job, age_s=since(job.created_at), idle_s=since(job.moved_at))


@jobs.command("cancel", right="money")  # It gives money back.
@id_argument("job_id")
def cancel(session: Session, job_id: UUID) -> Facts:
    """End a job as its organization can: what has no outcome is cancelled, and refunded."""
    container, cause = session.container, session.cause
    job = container.log.get(BulkJob, job_id, f"job {job_id}")
    row = row_of(container.bulk_jobs.cancel(job, cause))
    counts = {"cancelled": row.cancelled_count, "refunded": format_amount(row.refunded_micros)}
    return {"id": job_id, "status": "cancelled", **counts}


@webhooks.command("list", right=None)
@org_option("Of this one only.")
@click.option("--failing", is_flag=True, help="Only what fails now, or was disabled for it.")
@click.option("--endpoint", "endpoint_id", metavar="ID", type=click.UUID, help="Its deliveries.")
def list_webhooks(
    session: Session, *, organization_id: UUID | None, failing: bool, endpoint_id: UUID | None
) -> list[Any]:
    """List endpoints, oldest first; with --endpoint its deliveries of 30 days, newest first."""
    if organization_id and endpoint_id:
        misuse("give only one of --org and --endpoint")
    session.require_organization(organization_id)
    session.catch_up()
    container = session.container
    if endpoint_id is not None:
        owner = _endpoint(container, endpoint_id).organization_id
        found, _ = container.webhook_deliveries.page(owner, endpoint_id, None, slice(0, None))
        if failing:  # Now, or for good.
            found = [e for e in found if e.status in {"failed", "pending"} and e.attempts]
        return [pick(DELIVERY, each) for each in found]
    rows = container.views.read(container.webhook_endpoints.all, organization_id)
    known, none = container.webhook_deliveries.sums(), Sums(0, 0, 0, None)
    shown = [(row, known.get(row.id, none)) for row in rows]
    return [
        _endpoint_facts(container, row, sums)
        for row, sums in shown
        if not failing or row.disabled in {"failing", "gone"} or sums.failures
    ]


@webhooks.command("redeliver", right=None)
@endpoint_argument
@id_argument("delivery_id", "[DELIVERY]", required=False)
def redeliver(session: Session, endpoint_id: UUID, delivery_id: UUID | None) -> Facts:
    """Tell an endpoint one delivery again, or all that have failed or were cancelled.

    With the same id and body, so that its receiver knows what it has worked on.
    """
    container = session.container
    endpoint, cause = _endpoint(container, endpoint_id), session.cause
    container.gate.refuse()  # As for the status of a link.
    session.catch_up()
    container.webhook_planner.catch_up()  # Or what was asked for before would seem to have failed.
    owner, store = endpoint.organization_id, container.webhook_deliveries
    wanted = [delivery_id] if delivery_id else store.undelivered(owner, endpoint_id)
    if delivery_id is not None and store.get(owner, endpoint_id, delivery_id) is None:
        refuse(f"there is no delivery {delivery_id} of this endpoint")
    for each in wanted:
        container.webhooks.redeliver(endpoint, each, None, cause)
    return {"endpoint": endpoint_id, "asked": len(wanted)}


@webhooks.command("disable", right="keys")
@endpoint_argument
def disable(session: Session, endpoint_id: UUID) -> Facts:
    """Tell an endpoint nothing from now on; its partner can enable it again."""
    container, cause = session.container, session.cause
    found = _endpoint(container, endpoint_id)
    disabled = container.webhooks.change(found, Changes(enabled=False), cause).disabled
    return {"endpoint": endpoint_id, "disabled_reason": disabled and disabled.reason}


def _endpoint(container: Container, endpoint_id: UUID) -> WebhookEndpoint:
    return container.log.get(WebhookEndpoint, endpoint_id, f"endpoint {endpoint_id}")


def _endpoint_facts(container: Container, row: WebhookEndpointRow, sums: Sums) -> Facts:
    """Only the host of the URL is shown, because the rest may hold a secret of the partner."""
    address = container.webhooks.address(_endpoint(container, row.id))
    return pick(
        "id organization host events enabled disabled_reason pending failed failures_in_a_row "
        "failing_since created_at",
        row,
        sums,
        host=None if address is None else urlsplit(address.url).hostname,
        enabled=row.disabled is None,
        disabled_reason=row.disabled,
        failures_in_a_row=sums.failures,
    )
