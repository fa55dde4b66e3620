"""Runs a call on the simulator's tables: its moment, its time-out, and the port's errors."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from domain.cause import Clock
from domain.provider_errors import OutcomeUnknown, Unavailable
from projections.engine.database import Database

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """A call under way; everything in it happens at the moment at which it began, by our clock."""

    connection: Connection
    now: datetime
    deadline: datetime


class Calls:
    """Begins calls; a call that the database delays past its time-out has no effect."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @contextmanager
    def reading(self, timeout_s: float) -> Iterator[Call]:
        """Lend a connection for single statements; every failure becomes Unavailable."""
        now, deadline = self._start_call(timeout_s)
        try:
            with self._database.reading() as connection:
                yield Call(connection, now, deadline)
        except SQLAlchemyError as error:
            raise Unavailable(_trouble(error)) from None
        if self._clock() > deadline:
            raise Unavailable("the simulated network has met its time-out")

    @contextmanager
    def changing(self, timeout_s: float) -> Iterator[Call]:
        """Lend a durable transaction; raises OutcomeUnknown if its commit fails.

        Durable, because the caller's log may soon name what the call has made, and a crash must not
        make this database forget it.
        """
        now, deadline = self._start_call(timeout_s)
        committing = False
        try:
            with self._database.writing(durable=True) as connection:
                yield Call(connection, now, deadline)
                if self._clock() > deadline:
                    raise OutcomeUnknown("the simulated network has met its time-out")
                committing = True
        except SQLAlchemyError as error:
            kind = OutcomeUnknown if committing else Unavailable
            raise kind(_trouble(error)) from None

    def left_s(self, call: Call) -> float:
        """Return how many seconds of the call's time-out are left."""
        return max(0.0, (call.deadline - self._clock()).total_seconds())

    def _start_call(self, timeout_s: float) -> tuple[datetime, datetime]:
        if timeout_s <= 0:
            raise Unavailable("no time is left to ask the simulated network")
        now = self._clock()
        return now, now + timedelta(seconds=timeout_s)


def _trouble(error: SQLAlchemyError) -> str:
    # Only the type, because the text of an unknown error may hold the ICCID in the statement.
    kind = type(error).__name__
    _log.warning("the tables of the simulated network: %s", kind)
    return f"the tables of the simulated network cannot be used: {kind}"
