"""Failpoints: places in the work of a process where it can be killed, before and after each.

They are armed by files in a directory that all processes look at; nothing of the product knows
them. Whoever is the first to come to an armed place takes the file and dies by SIGKILL.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from eventsourcing.utils import resolve_topic

from domain.log.log import Log
from projections.engine.database import Database
from projections.engine.positions import Positions

When = Literal["before", "after"]
ARMED = "armed"  # The directory of the armed places, within that of all faults.
CLOCK = "clock"  # The file beside it that says by how many seconds the clock is wrong.
PASSAGES_MAX = 100_000
WHENS: tuple[When, When] = ("before", "after")


@dataclass(frozen=True)
class Failpoint:
    """One place in the processes of one role."""

    role: str
    place: str
    when: When

    def __str__(self) -> str:
        return f"{self.role}: {self.when} {self.place}"


class Failpoints:
    """The armed places, in files that are shared by all processes of a system."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def arm(self, failpoint: Failpoint, passage: int = 1) -> None:
        """Kill the process that makes the n-th passage from now on, counted over all processes.

        In each by itself nobody may ever come so far: some places are rare, and lives short.
        """
        file = self._file(failpoint)
        fresh = file.with_name(f"fresh {file.name}")
        fresh.write_text(f"{passage}\n")
        fresh.rename(file)

    def is_armed(self, failpoint: Failpoint) -> bool:
        """Tell whether no process has come to the place yet."""
        return self._file(failpoint).exists()

    def reach(self, failpoint: Failpoint) -> None:
        """Pass a place; this does not return where the place is armed for this passage."""
        file = self._file(failpoint)
        with suppress(FileNotFoundError):
            wanted, passages = _count_another(file)
            if passages >= wanted:
                file.unlink()  # Of several who come here at once, one alone can do so.
                die()

    def _file(self, failpoint: Failpoint) -> Path:
        return self._directory / str(failpoint)


def _count_another(file: Path) -> tuple[int, int]:
    """Note a passage; return which one is wanted, and how many there have been."""
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND)
    try:
        os.write(descriptor, b".")
        return _passages(os.pread(descriptor, PASSAGES_MAX, 0))
    finally:
        os.close(descriptor)


def _passages(content: bytes) -> tuple[int, int]:
    wanted, _, passages = content.partition(b"\n")
    return int(wanted), len(passages)


def die() -> NoReturn:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@dataclass(frozen=True)
class Passing:
    """The places of one role in this process."""

    failpoints: Failpoints
    role: str

    @contextmanager
    def through(self, *places: str) -> Iterator[None]:
        """Pass the `before` of each place now and the `after` when the work is done."""
        for place in places:
            self.failpoints.reach(Failpoint(self.role, place, "before"))
        yield
        for place in places:
            self.failpoints.reach(Failpoint(self.role, place, "after"))

    def wrap(self, call: Callable[..., Any], place: str) -> Callable[..., Any]:
        """Return a call with a place around it."""

        def passing(*args: Any, **kwargs: Any) -> Any:
            with self.through(place):
                return call(*args, **kwargs)

        return passing

    def watch(self, log: Log) -> Log:
        """Put `commit <topic>` around the insertion of each event."""
        insert = log.recorder.insert_events

        def inserting(stored: Any, **options: Any) -> Any:
            topics = sorted({resolve_topic(event.topic).TOPIC for event in stored})
            with self.through(*(f"commit {topic}" for topic in topics)):
                return insert(stored, **options)

        log.recorder.insert_events = inserting  # type: ignore[assignment,method-assign]  # Of this one object.
        return log


class Around:
    """An object some of whose calls have places around them; to its users it is what it was."""

    def __init__(self, inner: object, passing: Passing, places: Mapping[str, str]) -> None:
        self._inner = inner
        self._passing = passing
        self._places = places

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        place = self._places.get(name)
        return found if place is None else self._passing.wrap(found, place)


class MovingPositions(Positions):
    """Positions that remember whether the present transaction has moved one."""

    moved = False

    def advance(self, *args: Any, **kwargs: Any) -> None:
        super().advance(*args, **kwargs)
        self.moved = True


class MovingDatabase(Database):
    """A database whose commits have a place around them when they move a position."""

    def __init__(self, inner: Database, positions: MovingPositions, passing: Passing) -> None:
        super().__init__(inner.engine)
        self._positions = positions
        self._passing = passing

    @contextmanager
    def writing(self, **options: Any) -> Iterator[Any]:
        self._positions.moved = False
        with super().writing(**options) as connection:
            yield connection
            if self._positions.moved:
                self._passing.failpoints.reach(self._failpoint("before"))
        if self._positions.moved:
            self._positions.moved = False
            self._passing.failpoints.reach(self._failpoint("after"))

    def _failpoint(self, when: When) -> Failpoint:
        return Failpoint(self._passing.role, "position", when)
