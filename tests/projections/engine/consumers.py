"""A consumer of each mode, for what holds in all: decoded, as stored, and publishing."""

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import BigInteger, Column, MetaData, Table, select

from domain.accounts.organization import Organization
from domain.log.log import EventRef, Recorded, Stretch
from projections.engine.consumer import Consumer
from projections.engine.positions import Position
from projections.engine.read_model import Batch
from tests.installation import Process

TABLE = Table("taken", MetaData(), Column("position", BigInteger, nullable=False))


class Noting(Consumer):
    """Stores the position of each event that it takes, and fails at one of them."""

    name = "noting"
    uses = (Organization.Event,)
    batch_max = 3

    def __init__(self, process: Process) -> None:
        super().__init__(process.source)
        self.broken_at, self.lost = 0, list[int | None]()

    def start(self, lost: Position | None) -> EventRef | None:
        self.lost.append(None if lost is None else lost.position)
        return None

    def follow(self, connection: Any, batch: Batch) -> None:
        rows = [{"position": row.position} for row in batch.rows]
        if rows:
            connection.execute(TABLE.insert(), rows)
        self.fail_at(batch.rows)

    def fail_at(self, rows: Sequence[Any]) -> None:
        if any(row.position == self.broken_at for row in rows):
            message = "a bug"
            raise RuntimeError(message)


class NotingRows(Noting):
    """The same of rows as they are stored, whatever they are."""

    name = "noting_rows"

    def read(self, after: int) -> Stretch:
        rows = self._log.stored(after, self.batch_max)
        return Stretch(cast("Any", rows), len(rows), rows[-1].ref if rows else None, True)  # noqa: FBT003  # Of a tuple.


class Publishing(Noting):
    """Publishes into a list, which outlives the process."""

    name = "publishing"
    queue: list[int]

    def prepare(self, rows: Sequence[Recorded]) -> bool:
        self.fail_at(rows)
        self.queue += [row.position for row in rows]
        return bool(rows)

    def follow(self, connection: Any, batch: Batch) -> None:
        """Store nothing."""


MODES = (Noting, NotingRows, Publishing)


def taken(process: Process, consumer: Noting) -> list[int]:
    """Return the positions of the events that were taken, in their order."""
    if isinstance(consumer, Publishing):
        return consumer.queue
    with process.views.reading() as connection:
        return [*connection.execute(select(TABLE.c.position)).scalars()]
