"""The database system of an installation (log, read models, own stores): SQLite or PostgreSQL.

Also the table of the log, as both systems read it.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from eventsourcing.persistence import IntegrityError, OperationalError, StoredEvent
from sqlalchemy import (
    BigInteger,
    Column,
    LargeBinary,
    MetaData,
    String,
    Table,
    Uuid,
    bindparam,
    case,
    func,
    null,
    select,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from domain.errors import NotPossible
from domain.ids import as_id
from domain.log.log import LogRow, NothingInserted, Recorder
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement, OneOf

if TYPE_CHECKING:
    from app.adapters.postgres.database import PostgresDatabase
    from app.adapters.sqlite.database import SqliteFiles


class LogEnd(NamedTuple):
    """The newest event of a log (position 0: none), by which two logs are compared."""

    position: int
    stream_id: str
    stream_version: int
    state_sha256: str  # Needed because the first events have the same place in every log.


class Databases(NamedTuple):
    """The databases of a process besides that of the log. Two of them may be the same one."""

    views: Database  # The read models.
    stores: Database  # Own stores that cost little to lose.
    keys: Database  # The keys of personal data, as durable as the log.


def find_gap(table: str) -> str:
    """Return the statement that finds a stream of a log that lacks a version."""
    return (
        f"SELECT originator_id FROM {table} GROUP BY originator_id "  # noqa: S608  # Our names.
        "HAVING min(originator_version) <> 1 OR max(originator_version) <> count(*) LIMIT 1"
    )


def end_of(row: Sequence[Any] | None) -> LogEnd:
    """Return the end of a log by its newest event: position, stream, version and bytes."""
    if row is None:
        return LogEnd(0, "", 0, "")
    return LogEnd(row[0], str(as_id(row[1])), row[2], sha256(row[3]).hexdigest())


def not_empty(where: str) -> NotPossible:
    return NotPossible(f"{where}: the log holds events already; import into an empty place")


def not_whole(stream_id: UUID | None = None) -> NotPossible:
    if stream_id is None:
        return NotPossible("an event of the export comes twice")
    return NotPossible(
        f"the export lacks events of stream {stream_id}: it is a part, or lines are missing"
    )


def persistence_at(url: str, role: str, service_role: str = "") -> "SqliteFiles | PostgresDatabase":
    """Return the system of a DATABASE_URL; PostgreSQL shows `role` for each connection.

    Both have the same methods, and mypy checks each call against both.
    """
    if url.startswith("sqlite:///"):
        from app.adapters.sqlite.database import SqliteFiles  # noqa: PLC0415  # Each loads only its own driver.

        return SqliteFiles(url)
    from app.adapters.postgres.database import PostgresDatabase  # noqa: PLC0415  # As above.

    return PostgresDatabase(url, role, service_role)


EVERY = 1 << 62  # More than any version, position or number of rows.


class SqlRecorder(Recorder):
    """Everything but inserts, and what depends on how a server is called."""

    def __init__(self, database: Database, table: str, position: str) -> None:
        self.database = database
        log = Table(
            table,
            MetaData(),
            Column(position, BigInteger, key="position"),
            Column("originator_id", Uuid),
            Column("originator_version", BigInteger),
            Column("topic", String),
            Column("state", LargeBinary),
        ).c
        at, stream, version = log.position, log.originator_id, log.originator_version
        row, limit = (at, stream, version, log.topic), bindparam("limit", type_=BigInteger)
        span = (at > bindparam("after"), at <= bindparam("until"))
        of_stream = (
            select(stream, version, log.topic, log.state)
            .where(stream == bindparam("stream"))
            .where(version > bindparam("gt"), version <= bindparam("lte"))
            .limit(limit)
        )
        self._events = HotStatement(of_stream.order_by(version))
        self._events_newest_first = HotStatement(of_stream.order_by(version.desc()))
        used = case((OneOf(log.topic, "unused"), null()), else_=log.state)
        self._rows = HotStatement(select(*row, used).where(span[0]).order_by(at).limit(limit))
        of_streams = select(*row, log.state).where(OneOf(stream, "streams")).order_by(at)
        self._streams = HotStatement(of_streams)
        of_topics = select(*row, log.state).where(*span, OneOf(log.topic, "topics"))
        self._first = HotStatement(of_topics.order_by(at).limit(1))
        counted = select(at).where(*span).order_by(at).limit(limit).subquery()
        self._count = HotStatement(select(func.count()).select_from(counted))
        self._last = HotStatement(select(func.max(at)).where(span[1]))

    def select_events(
        self,
        stream_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        hot = self._events_newest_first if desc else self._events
        span = {"gt": gt or 0, "lte": lte or EVERY, "limit": limit or EVERY}
        return events_of(self.query(hot, stream=as_id(stream_id), **span))

    def select_rows(self, after: int, limit: int, unused: frozenset[str]) -> Sequence[LogRow]:
        return self.query(self._rows, after=after, limit=limit, unused=sorted(unused))

    def select_streams(self, streams: Collection[UUID]) -> Sequence[LogRow]:
        return self.query(self._streams, streams=[*streams])

    def select_first(self, topics: Collection[str], after: int, until: int) -> Sequence[LogRow]:
        return self.query(self._first, topics=[*topics], after=after, until=until)

    def count_rows(self, after: int, until: int, most: int) -> int:
        return int(self.query(self._count, after=after, until=until, limit=most)[0][0])

    def max_notification_id(self) -> int:
        return self.newest_up_to(EVERY)

    def newest_up_to(self, position: int) -> int:
        return self.query(self._last, until=position)[0][0] or 0

    def query(self, hot: HotStatement, **values: Any) -> Sequence[LogRow]:
        with self.translated():
            return self.database.rows(hot, **values)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise the errors of the database as those of a recorder."""
        driver = self.database.engine.dialect.loaded_dbapi
        try:
            yield
        except (SQLAlchemyError, driver.Error) as error:
            cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
            if isinstance(cause, driver.IntegrityError):
                raise IntegrityError(str(cause)) from cause
            kind = NothingInserted if self.wrote_nothing(cause) else OperationalError
            raise kind(str(cause)) from cause

    @abstractmethod
    def wrote_nothing(self, error: BaseException) -> bool:
        """Tell whether an insert with this error of the driver is certain to have done nothing."""

    def close(self) -> None:
        self.database.close()


def events_of(rows: Sequence[LogRow]) -> Sequence[StoredEvent]:
    return [StoredEvent(as_id(row[0]), *row[1:]) for row in rows]
