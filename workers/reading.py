"""The background reading of links: partners are notified of usage even if they read no link.

The clock feeds the lane of each network with links that are due. Threads of the lane read them from
the network, slowly enough to leave it to partners. A network that hangs delays only its own lane.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Lock
from typing import Final
from uuid import UUID

from domain.cause import Cause, Clock
from domain.errors import Conflict, ServiceUnavailable
from domain.links.link import Link
from domain.links.network import NetworkReading, Usage
from domain.links.readings import LinkReadings, PlanStage, plans_of, record_plans
from domain.provider_errors import NotAnswered, ProviderError, Rejected
from projections.engine.complaint import Complaint
from projections.engine.database import Database
from projections.models.links import Links
from projections.stores.reading_schedule import DueReading, ReadingSchedule

READERS: Final = 4  # Threads of a network; each call may take seconds.
FEED_LINKS: Final = 200
ENTER_LINKS: Final = 1_000
ENDING_LINKS: Final = 100  # Per tick, because the lanes are not fed meanwhile.
IDLE_S: Final = 0.5
# After this number of calls in a row without an answer a network is left alone for PAUSE_S.
UNANSWERED_MAX: Final = 3
PAUSE_S: Final = 30.0
# A link whose plans have all ended is read this much less often.
ENDED_SHARE: Final = 4


@dataclass
class Lane:
    """The links of one network that are to be read now, given out at its pace."""

    per_s: float
    _links: deque[tuple[UUID, NetworkReading]] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)
    _busy: int = 0
    _unanswered: int = 0
    _next_s: float = 0.0

    @property
    def is_empty(self) -> bool:
        """Tell whether all fed links have been read, and the network is not left alone."""
        return not self._links and not self._busy and time.monotonic() >= self._next_s

    def feed(self, links: Mapping[UUID, NetworkReading]) -> None:
        with self._lock:
            self._links += links.items()

    def claim(self) -> tuple[UUID, NetworkReading] | None:
        """Return a link with what was last read of it; `done` must follow."""
        with self._lock:
            if not self._links:
                return None
            self._busy += 1
            return self._links.popleft()

    def wait_s(self) -> float:
        """Reserve the next call of the network; return in how many seconds it may be made."""
        with self._lock:
            now_s = time.monotonic()
            at_s = max(self._next_s, now_s)
            self._next_s = at_s + 1 / self.per_s
            return at_s - now_s

    def done(self, *, answered: bool | None) -> None:
        """Note whether the network answered, None without a call; let a silent network rest."""
        with self._lock:
            self._busy -= 1
            if answered is not None:
                self._unanswered = 0 if answered else self._unanswered + 1
            if self._unanswered >= UNANSWERED_MAX:
                self._unanswered = 0
                self._links.clear()  # They are still due.
                self._next_s = time.monotonic() + PAUSE_S


@dataclass
class BackgroundReading:
    """Reads each link again after `every`, and records what its partner is notified of.

    Several processes at once are harmless: they read links twice, but the version of a link lets
    only one of them record a fact.
    """

    link_readings: LinkReadings
    reading_schedule: ReadingSchedule
    database: Database
    links: Links
    clock: Clock
    every: timedelta
    lanes: Mapping[str, Lane]
    _entered: int | None = None
    _untold: Complaint = field(default_factory=lambda: Complaint("telling of the end of a plan"))

    def tick(self) -> None:
        """Do what needs no network: find new links, record ends, feed the lanes that are empty."""
        self.enter()
        now = self.clock()
        for link_id in self.reading_schedule.ending(now, ENDING_LINKS):
            try:
                self._announce_end(link_id)
            except ServiceUnavailable:
                raise
            except Exception as error:  # noqa: BLE001  # Whatever the error, others have their turn.
                self._untold.of(error)
                self.reading_schedule.set_next_end(link_id, now + self.every)
        for network, lane in self.lanes.items():
            if lane.is_empty:
                due = self.reading_schedule.due(network, now, FEED_LINKS)
                known = [each for each, requested in due.items() if not requested]
                seen = self.link_readings.readings.load(known) if known else {}
                lane.feed({each: seen.get(each, NetworkReading()) for each in due})

    def work(self, network: str, stop: Event) -> None:
        """Read links of a network until the end; runs in several threads."""
        lane, complaint = self.lanes[network], Complaint(f"the reading of links of {network}")
        while not stop.is_set():
            if (claimed := lane.claim()) is None:
                stop.wait(IDLE_S)
                continue
            link_id, seen = claimed
            answered = None
            try:
                answered = self.read(link_id, seen.usage, lambda: not stop.wait(lane.wait_s()))
                complaint.over()
            except Exception as error:  # noqa: BLE001  # Whatever the error, others have their turn.
                complaint.of(error)
            finally:
                lane.done(answered=answered)

    def read(
        self, link_id: UUID, last: Usage | None, may_call: Callable[[], bool] = lambda: True
    ) -> bool | None:
        """Read one link unless it was read lately; return whether the network has answered.

        `may_call` waits for the turn of a call. Without a call, None is returned.
        """
        link, now = self.link_readings.log.find(Link, link_id), self.clock()
        if link is None or not link.is_live:
            self.reading_schedule.drop(link_id)
            return None
        if last is not None and last.as_of <= now < last.as_of + self.every:  # Read lately.
            self._move(link, last, last.as_of)
            return None
        if not may_call():
            return None
        if last is None:
            self.reading_schedule.claim(link_id)
        try:
            link, usage = self.link_readings.refresh(link, Cause(now, "readings"))
        except Rejected:  # An unknown endpoint is an answer too.
            self._move(link, last, now)
            return True
        except ProviderError as error:
            self.reading_schedule.move(link_id, now + self.every, self._next_end(link, last), None)
            # A network that says oddly of one link what it knows is not away for the others.
            return isinstance(error, NotAnswered)
        self._move(link, usage, now)
        return True

    def _move(self, link: Link, usage: Usage | None, answered_at: datetime) -> None:
        plans = plans_of(link, usage, self.clock())
        is_over = all(each.stage is PlanStage.EXPIRED for each in plans)
        wait = ENDED_SHARE * self.every if is_over else self.every
        self.reading_schedule.move(
            link.id, answered_at + wait, self._next_end(link, usage), answered_at
        )

    def _next_end(self, link: Link, usage: Usage | None) -> datetime | None:
        """Return when an end is to be recorded; if now, it stays due until it is in the log."""
        now = self.clock()
        pending = len(link.pending_events)
        after = record_plans(link, usage, now, Cause(now, "readings"))
        return now if len(link.pending_events) > pending else after

    def enter(self) -> None:
        """Give links that have become active their turn."""
        if self._entered is None:
            self._entered = self.reading_schedule.newest()
        while True:
            new = self.database.read(self.links.activated_after, self._entered, ENTER_LINKS)
            if new:  # They were read at their activation.
                new_rows = [DueReading(*each[:4], each[4] + self.every) for each in new]
                self.reading_schedule.enter(new_rows, self.clock())
                self._entered = new_rows[-1].position
            if len(new) < ENTER_LINKS:
                return

    def _announce_end(self, link_id: UUID) -> None:
        """Record that a plan ends soon by the last reading, even if the network is silent now."""
        link, now = self.link_readings.log.find(Link, link_id), self.clock()
        if link is None or not link.is_live:
            self.reading_schedule.drop(link_id)
            return
        if self.link_readings.must_wait(link):
            return  # It is still due.
        seen = self.link_readings.readings.load([link_id]).get(link_id, NetworkReading())
        after = record_plans(link, seen.usage, now, Cause(now, "readings"))
        if link.pending_events:
            try:
                self.link_readings.log.append(link)
            except Conflict:
                return  # It is still due, and the next tick sees what the other writer did.
        self.reading_schedule.set_next_end(link_id, after)
