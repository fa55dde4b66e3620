"""Rebuild: new tables are filled beside the live ones, then swapped in one transaction."""

import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from secrets import token_hex
from threading import Event

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from domain.log.log import EventRef, Log
from projections.engine.database import Database, is_outage
from projections.engine.positions import Source
from projections.engine.read_model import BATCH_EVENTS_MAX, Batch, ReadModel, unused_by
from projections.engine.sql_views import detached

# Each pass is shorter than the one before, unless events come faster than they are read.
ROUNDS_MAX = 10
LOCK_MS = 500  # A swap may make others wait for the tables for this long at most.
# Ten minutes in all, because a backup may hold the tables for so long.
SWAP_PAUSES_S = (0.5, 1.0, *[2.0] * 300)
# What PostgreSQL says when a lock was not free or deadlocked, or when reading the log took too
# long.
LOCKED_OUT = {"55P03", "40P01", "25P03"}
ORPHAN_S = 86_400  # No rebuild lasts so long; older tables were left behind by a killed one.
# Of earlier releases; on SQLite the first has pieces of the links' names.
FORMER_TABLES = (
    *("link_texts", "link_activations", "link_plan_names", "link_timelines"),
    *("job_counts", "link_counts", "link_spans", "refund_reasons"),
)
# The tables of the last three stay for the processes of 1.0.0 that still read them.
FORMER_MODELS = ("timelines", "link_spans", "unfinished", "open_slices", "monthly_fees")

_GENERATION = re.compile(r".+__(?P<made>[0-9a-f]{8})[0-9a-f]{8}\Z")

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]  # The position reached, and the position aimed at.


def ignore_progress(_position: int, _goal: int) -> None:
    """Ignore the progress."""


class Filling:
    """New tables of several read models, filled together so that the log is read once.

    A model whose handler raises is left out and its error kept; the others go on. What is not
    swapped in must be discarded.
    """

    def __init__(self, database: Database, models: Sequence[ReadModel]) -> None:
        self.fresh: dict[str, ReadModel] = {}
        self.failures: list[Exception] = []
        self.last: EventRef | None = None
        self._database = database
        made = f"{int(time.time()):08x}"
        with database.writing() as connection:
            for model in models:
                fresh = self.fresh[model.name] = model.of(f"{made}{token_hex(4)}")
                fresh.metadata.create_all(connection, checkfirst=False)

    def run(self, log: Log, until: int, progress: Progress) -> None:
        """Fill all tables up to a position; if that fails, drop them all."""
        try:
            while self.fresh and (self.last is None or self.last.position < until):
                if (found := _read(log, self.last, until, self.fresh.values())) is None:
                    break
                batch, self.last = found
                self._follow(batch)
                progress(batch.until, until)
        except BaseException:
            self.discard()
            raise

    def _follow(self, batch: Batch) -> None:
        for name, fresh in [*self.fresh.items()]:
            try:
                self._database.write(fresh.follow, batch)
            except Exception as error:
                if is_outage(error):
                    raise
                self.discard(name)
                self.failures.append(error)

    def discard(self, *names: str) -> None:
        """Drop the tables of these models, or all that are left."""
        for name in names or [*self.fresh]:
            self._database.write(self.fresh.pop(name).metadata.drop_all)


def drop_orphans(database: Database) -> None:
    """Drop the tables that killed rebuilds have left behind."""
    oldest = time.time() - ORPHAN_S
    with database.writing() as connection:
        for name in inspect(connection).get_table_names():
            match = _GENERATION.match(name)
            if match and int(match["made"], 16) < oldest:
                connection.execute(text(f'DROP TABLE IF EXISTS "{name}"'))


def drop_former(database: Database) -> None:
    """Drop the read models of earlier releases; as in `_replace`, the positions first."""
    with database.writing() as connection:
        for name in FORMER_MODELS:
            gone = text("DELETE FROM follower_positions WHERE name = :name")
            connection.execute(gone, {"name": name})
        for name in FORMER_TABLES:
            connection.execute(text(f"DROP TABLE IF EXISTS {name}"))


def rebuild_all(
    source: Source, models: Sequence[ReadModel], progress: Progress = ignore_progress
) -> dict[str, int]:
    """Replace several read models, reading the log once; return their positions by name.

    A model whose handler raises stays as it was. The others are replaced, then its error is raised.
    """
    drop_orphans(source.database)
    filling, reached = Filling(source.database, models), dict[str, int]()
    _fill_up(filling, source.log, progress)
    try:
        for model in models:
            if model.name in filling.fresh:
                fresh = filling.fresh[model.name]
                take_over = partial(_replace, source, model, fresh)
                reached[model.name] = _patiently(take_over, filling.last)
                del filling.fresh[model.name]
    except BaseException:
        filling.discard()
        raise
    for failure in filling.failures:
        raise failure
    return reached


def _fill_up(filling: Filling, log: Log, progress: Progress) -> None:
    """Fill in passes until little is left, because the swap reads the rest while others wait."""
    reached = 0
    for _ in range(ROUNDS_MAX):
        goal = log.head()
        if reached and goal <= reached + BATCH_EVENTS_MAX:
            return
        filling.run(log, goal, progress)
        reached = goal


def _patiently(take_over: Callable[[EventRef | None], int], last: EventRef | None) -> int:
    """Swap, and try again later while a reader such as a backup holds the tables.

    Waiting in the queue for a table would make every later reader wait as well.
    """
    for pause_s in SWAP_PAUSES_S:
        try:
            return take_over(last)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in LOCKED_OUT:
                raise
            logger.info("a rebuild waits for a process that reads the tables, such as a backup")
            Event().wait(pause_s)
    return take_over(last)


def _replace(source: Source, model: ReadModel, fresh: ReadModel, last: EventRef | None) -> int:
    with source.database.writing() as connection:
        if connection.dialect.name != "sqlite":
            connection.execute(text(f"SET LOCAL lock_timeout = {LOCK_MS}"))
        # Lock the position first and the tables next, as the projector does; else they could
        # deadlock.
        live = source.positions.get(connection, model.name, locked=True)
        goal = live.position if live is not None and live.failure is None else 0
        while last is None or last.position < goal:  # What the live model has read meanwhile.
            if (found := _read(source.log, last, goal, [fresh])) is None:
                break
            batch, last = found
            fresh.follow(connection, batch)
        _swap(connection, fresh)
        source.positions.start(connection, model.name, model.version, last)
    return last.position if last is not None else 0


def _swap(connection: Connection, fresh: ReadModel) -> None:
    names = {new.name.removesuffix(fresh.named("")): new.name for new in fresh.tables}
    with detached(connection, [*names]):
        for old, new in names.items():
            connection.execute(text(f'DROP TABLE IF EXISTS "{old}"'))
            connection.execute(text(f'ALTER TABLE "{new}" RENAME TO "{old}"'))


def _read(
    log: Log, last: EventRef | None, until: int, models: Iterable[ReadModel]
) -> tuple[Batch, EventRef] | None:
    after = last.position if last is not None else 0
    stretch = log.follow(after, BATCH_EVENTS_MAX, unused_by(models), until)
    if stretch.last is None:
        return None
    return Batch(stretch.events, after, stretch.last.position), stretch.last
