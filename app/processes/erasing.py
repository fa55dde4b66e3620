"""Erases personal data: finds what goes, records it, deletes what is kept in clear, then its keys.

In this order, so that whatever is killed in between is finished by the next run, which finds by the
keys what is in clear, or by `migrate` or the clock. The event says who did it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from app.bootstrap.container import Container
from domain.accounts.operator_acts import Erasure, Part
from domain.cause import Cause
from domain.errors import ServiceUnavailable, refuse
from domain.links.handover import Handover
from domain.links.link import Link, named
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from domain.months import month_of
from domain.personal import NUMBERED, open_text, seals_of
from projections.engine.database import READER_BUSY
from projections.engine.reader import read_events

PIECES_MAX = 500  # Of one event.

Kind = Literal["month", "lookup", "job", "link"]
Holder = NumberLookup | BulkJob | Link
KINDS: dict[Kind, type[Holder]] = {"lookup": NumberLookup, "job": BulkJob, "link": Link}
HOLDERS = (NumberLookup.Answered, BulkJob.Created, Link.Began, Link.Renamed, Handover.Made)

_NUMBER = re.compile(rb'"(\+[1-9][0-9]{1,14})"')
_NO_DIGIT = re.compile(r"[^0-9]")


class Piece(NamedTuple):
    """What one key sealed: of one stream, or all of a month where `id` is None."""

    kind: Kind
    id: UUID | None
    key: str

    @property
    def is_inseparable(self) -> bool:
        """Tell whether an earlier release sealed it, so that it goes with its whole month only."""
        return self.id is not None and NUMBERED not in self.key


@dataclass
class Wanted:
    """What to erase of an organization, links and numbers also from where they are in clear."""

    organization_id: UUID
    pieces: list[Piece] = field(default_factory=list)
    links: set[UUID] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    names_in_clear: int = 0  # In the log, where they stay.

    def add_whole_months(self) -> None:
        """Take all of each month that has a piece which goes with it only."""
        whole = {each.key for each in self.pieces if each.is_inseparable}
        alone = [each for each in self.pieces if each.key not in whole]
        self.pieces = [*(Piece("month", None, key) for key in sorted(whole)), *alone]


def keys_of_months(
    container: Container, before: str, organization_id: UUID | None, *, begin_anew: bool
) -> list[Wanted]:
    """Return the keys of all months before `YYYY-MM`.

    With `begin_anew` the present month goes on with new keys, which are not among them.
    """
    found = container.vault.keys_before(before, organization_id)
    if begin_anew:
        present = month_of(container.clock())
        newest = [(owner, keys[-1]) for owner, keys in found.items()]
        container.vault.rotate(each for each in newest if each[1].startswith(present))
    return [
        Wanted(owner, [Piece("month", None, key) for key in keys]) for owner, keys in found.items()
    ]


def keys_of_stream(
    container: Container, kind: Kind, stream_id: UUID, organization_id: UUID | None
) -> Wanted:
    """Return what is sealed of a lookup, a job or a link; raises NotFound."""
    found = container.log.get(KINDS[kind], stream_id, f"{kind} {stream_id}")
    owner = found.organization_id
    if organization_id not in {None, owner}:
        refuse(f"there is no {kind} {stream_id}")
    wanted = Wanted(owner)
    _add(container, wanted, kind, stream_id)
    return wanted


def keys_of_number(container: Container, organization_id: UUID, number: str) -> Wanted:
    """Return the lookups, jobs and links of an organization that hold a number, also in a name.

    Opens one after the other, because nothing says in clear which numbers they hold.
    """
    found = dict[UUID, Kind]()
    for recorded in read_events(container.log, HOLDERS):
        if (kind := _kind_if_of_number(container, recorded, organization_id, number)) is not None:
            event = recorded.event
            found[event.link_id if isinstance(event, Handover.Made) else event.originator_id] = kind
    wanted = Wanted(organization_id)
    for stream_id, kind in found.items():
        _add(container, wanted, kind, stream_id)
    wanted.links |= container.readings.links_of(organization_id, number)
    wanted.numbers = {number}  # What else its jobs held was asked for others.
    return wanted


def _kind_if_of_number(
    container: Container, recorded: Recorded, organization_id: UUID, number: str
) -> Kind | None:
    event, vault = recorded.event, container.vault
    assert isinstance(event, HOLDERS)
    if event.organization_id != organization_id:
        return None
    if isinstance(event, Link.Began | Link.Renamed):
        name = open_text(vault, organization_id, event.originator_id, named(event)) or ""
        return "link" if number[1:] in _NO_DIGIT.sub("", name) else None
    if isinstance(event, Handover.Made):
        url = open_text(vault, organization_id, event.link_id, event.top_up_url) or ""
        return "link" if number[1:] in _NO_DIGIT.sub("", url) else None
    clear = vault.open(organization_id, event.originator_id, event.personal) or b""
    if f'"{number}"'.encode() not in clear:
        return None
    return "job" if isinstance(event, BulkJob.Created) else "lookup"


def _add(container: Container, wanted: Wanted, kind: Kind, stream_id: UUID) -> None:
    """Add all that is sealed of a stream and still there."""
    vault, owner = container.vault, wanted.organization_id
    history = [*container.log.history(stream_id)]
    handovers = (each.handover_id for each in history if isinstance(each, Link.HandoverSet))
    history += [event for each in handovers if each for event in container.log.history(each)]
    sealed = [each for event in history for each in seals_of(event)]
    keys = sorted({each.month for each in sealed})
    wanted.pieces += [
        Piece(kind, stream_id, key) for key in keys if vault.has(owner, key, stream_id)
    ]
    if kind == "link":
        wanted.links.add(stream_id)
        wanted.names_in_clear += sum(bool(vars(event).get("name")) for event in history)
    else:
        opened = (vault.open(owner, stream_id, each) or b"" for each in sealed)
        wanted.numbers |= {number.decode() for clear in opened for number in _NUMBER.findall(clear)}


def erase(
    container: Container,
    found: Sequence[Wanted],
    cause: Cause,
    before: datetime | None = None,
    owner: UUID | None = None,
) -> tuple[int, int]:
    """Erase it; return how many keys there were, and how many answers were cached.

    `before` is a moment up to which stores forget the links and numbers of an `owner`, or of all.
    """
    parts = [(each.organization_id, some) for each in found for some in _parts(each.pieces)]
    for its in parts:
        container.log.append(Erasure.make(*its, cause))
    for link_id in {link_id for each in found for link_id in each.links}:
        link = container.log.get(Link, link_id)
        container.log.update(link, lambda newest: newest.forget_name(cause))
    if before is not None:
        container.readings.forget(before, owner)  # They hold phone numbers (MSISDNs).
        answers = container.lookup_cache.forget(before, owner)
    else:
        answers = sum(_forget_stored(container, each) for each in found)
    keys = sum(container.vault.erase(*its) for its in parts)
    container.counters.forget_lapsed()
    container.projector.catch_up()
    databases = (container.vault.database, container.stores, container.views)
    wiped = [each.wipe() for each in databases]
    if not all(wiped):
        raise ServiceUnavailable(READER_BUSY)
    return keys, answers


def _forget_stored(container: Container, wanted: Wanted) -> int:
    owner, cache = wanted.organization_id, container.lookup_cache
    container.readings.forget_links(owner, wanted.links)
    if any(each.kind == "month" for each in wanted.pieces):  # Which numbers it held is not known.
        return cache.forget(container.clock(), owner)
    return cache.forget_numbers(owner, sorted(wanted.numbers))


def _parts(pieces: Sequence[Piece]) -> Iterator[list[Part]]:
    """Yield what one event names, and the next."""
    for start in range(0, len(pieces), PIECES_MAX):
        streams: dict[str, list[UUID]] = {}
        for piece in pieces[start : start + PIECES_MAX]:
            streams.setdefault(piece.key, []).extend([piece.id] if piece.id else [])
        yield [Part(key, mine or None) for key, mine in streams.items()]


def erase_again(container: Container, newest: int | None = None) -> None:
    """Delete again what the log says was erased: a command was killed, or older keys came back."""
    erasures = container.views.read(container.erasures.newest, newest)
    for owner, parts in erasures:
        if container.vault.erase(owner, parts):
            container.lookup_cache.forget(container.clock(), owner)
