"""The position of each follower, how far it is behind, and which read models must be rebuilt.

A position moves in the same transaction as its effects.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Connection, Integer, MetaData, Table, select

from domain.cause import Clock
from domain.log.log import EventRef, Log
from projections.engine.database import Database, to_micros
from projections.engine.hot_reads import HotStatement
from projections.engine.inserting import driver_of, upsert
from projections.engine.read_model import ReadModel
from projections.engine.shape import Stored

_ADVANCE = (
    "UPDATE follower_positions SET position = $2, stream_id = $3, stream_version = $4, "
    "caught_up_at = coalesce($5, caught_up_at), failure = NULL, failed_at = NULL"
)
_CAUGHT_UP = "UPDATE follower_positions SET caught_up_at = $2"
_FAIL = "UPDATE follower_positions SET failure = $2, failed_at = $3"
LAG_EVENTS_MAX = 100_000  # As many are counted at each scrape.
# Two statements on several rows may lock them in different orders, and deadlock: one at a time.
_LOCK = "WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(4985371)) "


class Position(Struct, frozen=True):
    """A position in the log and the event that stood there, by which a restored log is noticed.

    `caught_up_at` is when the follower last saw that nothing was left to read.
    """

    name: str
    version: int
    position: int
    stream_id: UUID | None
    stream_version: int
    caught_up_at: datetime | None
    failure: str | None
    failed_at: datetime | None

    @property
    def ref(self) -> EventRef | None:
        """The event that stood there, None before the first one."""
        if self.stream_id is None:
            return None
        return EventRef(self.position, self.stream_id, self.stream_version)


STORED = Stored(Position, version=Integer, stream_version=Integer)


class Fenced(Exception):
    """Raised when another process has moved a position: roll back and read it again."""


class Positions:
    """One row per follower, beside the read models."""

    def __init__(self) -> None:
        self.metadata = MetaData()
        self.rows = Table("follower_positions", self.metadata, *STORED.columns("name"))
        self._all = HotStatement(select(self.rows).order_by(self.rows.c.name))

    def all(self, database: Database) -> dict[str, Position]:
        """Read every position, in the order of names."""
        return {row[0]: STORED.read(row) for row in database.rows(self._all)}

    def get(self, connection: Connection, name: str, *, locked: bool = False) -> Position | None:
        """Read one position, perhaps `locked` until the end of the transaction.

        It is None for a follower that has never run.
        """
        statement = select(self.rows).where(self.rows.c.name == name)
        row = connection.execute(statement.with_for_update() if locked else statement)
        found = row.one_or_none()
        return STORED.read(found) if found else None

    def start(self, connection: Connection, name: str, version: int, last: EventRef | None) -> None:
        """Start or restart a follower behind an event; None means before the first event.

        The row is updated, not replaced, so a process that waits for its lock sees the new values.
        """
        fresh = {"caught_up_at": None, "failure": None, "failed_at": None}
        position, stream_id, stream_version = last or (0, None, 0)
        ref = {"position": position, "stream_id": stream_id, "stream_version": stream_version}
        row = {"name": name, "version": version, **ref, **fresh}
        upsert(connection, self.rows, [row])

    def advance(
        self,
        connection: Connection,
        known: Sequence[Position],
        last: EventRef,
        caught_up_at: datetime | None = None,
    ) -> None:
        """Move followers from the positions that were read to the position of `last`.

        Raises Fenced when one has since been moved, or was rebuilt for another version.
        """
        now = None if caught_up_at is None else to_micros(caught_up_at)
        _update(connection, _ADVANCE, known, *last, now, is_fenced=True)

    def caught_up(self, connection: Connection, known: Sequence[Position], at: datetime) -> None:
        """Note that now these have nothing left to read; ignored for one that has moved on."""
        _update(connection, _CAUGHT_UP, known, to_micros(at))

    def fail(
        self, connection: Connection, known: Sequence[Position], failure: str, at: datetime
    ) -> None:
        """Note why these have stopped; ignored for one that has moved on since."""
        _update(connection, _FAIL, known, failure, to_micros(at))


class Source(NamedTuple):
    """The log, and where the positions of its consumers are, beside what they store."""

    log: Log
    database: Database
    positions: Positions
    clock: Clock


def by_position(known: Iterable[Position]) -> Mapping[int, Sequence[Position]]:
    """Group followers by position; nearly always all stand at the same one."""
    groups = defaultdict[int, list[Position]](list)
    for each in known:
        groups[each.position].append(each)
    return groups


def _update(
    connection: Connection,
    change: str,
    positions: Sequence[Position],
    *values: Any,
    is_fenced: bool = False,
) -> None:
    """Change the rows that still stand where they were read, or raise Fenced if not all do."""
    for old, members in by_position(positions).items():

        def check(moved: int, members: Sequence[Position] = members) -> None:
            if is_fenced and moved != len(members):
                raise Fenced(members[0].name)

        known = ", ".join(f"('{each.name}', {each.version})" for each in members)
        where = f"WHERE (name, version) IN (VALUES {known}) AND position = $1"
        with driver_of(connection) as driver:
            if connection.dialect.name == "sqlite":
                bound = [each.hex if isinstance(each, UUID) else each for each in (old, *values)]
                check(driver.execute(f"{change} {where}".replace("$", "?"), bound).rowcount)
            elif len(members) == 1:
                driver.write(f"{change} {where}", (old, *values), check)
            else:
                driver.write(f"{_LOCK}{change} FROM turn {where}", (old, *values), check)


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one follower is behind: `behind` counts events, up to LAG_EVENTS_MAX of them."""

    name: str
    position: int
    behind: int
    caught_up_at: datetime | None
    failure: str | None


def lags(source: Source) -> list[Lag]:
    log, known = source.log, source.positions.all(source.database).values()
    head = log.head()
    behind = {
        at: log.count(at, head, LAG_EVENTS_MAX) if at < head else 0
        for at in {each.position for each in known}
    }
    return [
        Lag(each.name, at := each.position, behind[at], each.caught_up_at, each.failure)
        for each in known
    ]


def models_to_rebuild(source: Source, models: Sequence[ReadModel]) -> list[ReadModel]:
    """Return the models to rebuild: never built, of another version, or built from another log."""
    known = source.positions.all(source.database)
    holds = cache(partial(belongs, source.log))  # Nearly all stand at the same event.

    def is_current(at: Position | None, version: int) -> bool:
        return at is not None and at.version == version and holds(at.ref)

    return [it for it in models if not is_current(known.get(it.name), it.version)]


def belongs(log: Log, seen: EventRef | None) -> bool:
    """Tell whether the log still holds the event that a follower saw; None: it saw none."""
    rows = log.stored(seen.position - 1, 1) if seen is not None else []
    return seen is None or [each.ref for each in rows] == [seen]
