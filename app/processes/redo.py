"""The list of what must be done again when an older copy of the log takes its place.

A backup does not know what was erased, revoked or rotated after it, so its keys and secrets come
back with it. The list is made from the events of the log, but lives in REDO_DIR, a directory apart
from it that no backup holds and that is sent nowhere. It names ids alone.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from uuid import UUID

import msgspec

from app.bootstrap.container import Container
from app.processes.erasing import KINDS
from app.security.key_file import alone, sync, write_file
from domain.accounts.operator_acts import Erasure, OperatorAct
from domain.accounts.operators import Operator
from domain.accounts.organization import ApiClient
from domain.aggregates import topics_but
from domain.links.link import Link
from domain.log.aggregate import Event
from domain.log.log import EventRef
from domain.months import next_month
from domain.webhooks.endpoint import WebhookEndpoint
from projections.engine.read_model import BATCH_EVENTS_MAX
from projections.stores.personal_keys import MONTH_CHARS

LIST = "redo.json"
BATCHES_MAX = 100  # Of one turn; a command must not read a long log.
AGAIN: Mapping[type[Event], str] = {
    ApiClient.Revoked: "client revoke {0.client_id}",
    ApiClient.SecretRotated: "client rotate-secret {0.client_id}",
    Operator.Revoked: "operator revoke {0.originator_id}",
    Operator.KeyRotated: "operator rotate-key {0.originator_id}",
    WebhookEndpoint.SecretRotated: (
        "its organization: POST /v1/webhooks/{0.originator_id}/rotate-secret"
    ),
}
ACTS: tuple[type[Event], ...] = (Erasure.Made, OperatorAct.Done, Link.HandoverSet, *AGAIN)


class Act(msgspec.Struct):
    """An event of the log, and the commands that do again what it says."""

    place: EventRef
    at: datetime
    again: list[str]


class Listed(msgspec.Struct):
    """The list, and up to where it was made of the log."""

    acts: list[Act] = []
    reached: EventRef | None = None


class Undone(msgspec.Struct):
    """What was done at a time that the log does not know, and the command that does it again."""

    at: datetime
    again: str


def collect(container: Container) -> bool:
    """Add what the log has since then; return whether it holds more. OSError: see REDO_DIR."""
    directory = _directory(container)
    if directory is None:
        return False
    with alone(directory / ".lock"):  # The directory must exist, as a mount may be missing.
        listed = _read(directory)
        known = {each.place for each in listed.acts}
        # An older copy of the log has it up to the last act that it has.
        refs = [listed.reached, *(each.place for each in reversed(listed.acts))]
        reached = next((each for each in refs if each and _contains(container, each)), None)
        unused, head = topics_but(ACTS), container.log.head()
        for _ in range(BATCHES_MAX):
            after = reached.position if reached is not None else 0
            stretch = container.log.follow(after, BATCH_EVENTS_MAX, unused, until=head)
            if stretch.last is None:
                return False
            new = [each for each in stretch.events if each.ref not in known]
            acts = [Act(e.ref, e.event.timestamp, [*_again(container, e.event)]) for e in new]
            listed.acts += [each for each in acts if each.again]
            listed.reached = reached = stretch.last
            write_file(directory / LIST, msgspec.json.encode(listed))
            sync(directory)
    return reached is not None and reached.position < head


def undone(container: Container) -> list[Undone] | None:
    """Return what was done and the log does not have, oldest first; None where no list is made.

    What was done again since then is left out. Raises OSError as `collect` does.
    """
    directory = _directory(container)
    if directory is None:
        return None
    collect(container)
    left = dict[str, datetime]()
    for act in sorted(_read(directory).acts, key=lambda act: act.at):
        is_there = _contains(container, act.place)
        for text in act.again:
            left.pop(text, None)
            if not is_there:
                left[text] = act.at
    return [Undone(at, text) for text, at in left.items()]


def _again(container: Container, event: Event) -> Iterator[str]:
    match event:
        case Erasure.Made():
            months = [part.key[:MONTH_CHARS] for part in event.parts if part.streams is None]
            if months:
                before, owner = next_month(max(months)), event.organization_id
                yield f"privacy erase --before {before} --org {owner}"
            for stream in {each for part in event.parts for each in part.streams or ()}:
                yield f"privacy erase --{_kind(container, stream)} {stream}"
        case OperatorAct.Done():
            kind, _, key = event.subject.partition(" ")
            if event.act == "key.renewed":
                yield f"keys rotate {kind}"
            elif event.act == "key.revoked":
                yield f"keys revoke {key}"
        case Link.HandoverSet():
            if event.handover_id is None:
                yield f"its organization: DELETE /v1/links/{event.originator_id}/handover"
        case _:
            yield AGAIN[type(event)].format(event)


def _kind(container: Container, stream: UUID) -> str:
    (first,) = container.log.history(stream, up_to_version=1)
    return next(kind for kind, holder in KINDS.items() if isinstance(first, holder.Event))


def _directory(container: Container) -> Path | None:
    named = container.settings.redo_dir
    return Path(named) if named else None


def _contains(container: Container, ref: EventRef) -> bool:
    rows = container.log.stored(ref.position - 1, 1)
    return bool(rows) and rows[0].ref == ref


def _read(directory: Path) -> Listed:
    path = directory / LIST
    return msgspec.json.decode(path.read_bytes(), type=Listed) if path.exists() else Listed()
