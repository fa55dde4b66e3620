"""One run of faults under load: inflict, wait for recovery, look for what is wrong at the end."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import text

from domain.errors import ServiceUnavailable
from tests.faults.debtors import months_owed
from tests.faults.failpoints import Failpoint
from tests.faults.ledger import Kind
from tests.faults.load import Load
from tests.faults.observer import Observer
from tests.faults.report import Report
from tests.faults.system import System
from tests.faults.truth import Truth
from tests.installation import wait_until

RECOVERY_S_MAX = 60.0
REACH_S_MAX = 300.0  # Few changes of plans fail, and a crowded machine is slow to come to one.
LEVEL_S_MAX = 20.0
SHOWN = 5  # The first of what is wrong.
ENDPOINTS = "SELECT endpoint_id FROM simulated_endpoints WHERE NOT is_removed"
ENDPOINT = "SELECT is_removed, document FROM simulated_endpoints WHERE endpoint_id = :endpoint"
NEEDED: frozenset[Kind] = frozenset({"lookup", "job", "link"})


class Programme:
    """A system under load, and whether it has recovered."""

    def __init__(self, system: System, load: Load, observer: Observer, report: Report) -> None:
        self.system = system
        self.load = load
        self.observer = observer
        self.report = report
        self._orphans = self._endpoints() - observer.endpoints  # Of a log that was restored.

    def is_recovered(self, since: float) -> bool:
        """Tell whether what was open at a moment is done, and each kind of new work gets done."""
        if self.load.ledger.since(since, NEEDED) != NEEDED or self.observer.open_since(since):
            return False
        jobs = [job for job in self.load.ledger.of("job") if job.began_at >= since]
        return any(job.id in self.observer.settled_at for job in jobs)

    def inflict(self, fault: str, blow: Callable[[], object]) -> float:
        """Let a fault happen and be repaired by `blow`; return the seconds until recovery."""
        began_at = time.monotonic()
        row = self.report.row(fault)
        row.moments.append(began_at)
        blow()
        wait_until(lambda: self.is_recovered(began_at), RECOVERY_S_MAX, f"recovery from {fault}")
        row.recovery_s.append(time.monotonic() - began_at)
        assert self.observer.failures == [], self.observer.failures[:SHOWN]
        return row.recovery_s[-1]

    def reach_all(self, lanes: Sequence["Lane"]) -> None:
        """Kill at each failpoint of each lane, lane beside lane, one after the other in each."""

        def all_done() -> bool:
            for lane in lanes:
                lane.look(self)
            return all(lane.is_done for lane in lanes)

        deadline = sum(map(len, (lane.waiting for lane in lanes))) * RECOVERY_S_MAX
        wait_until(all_done, deadline, "the end of the failpoints")
        assert self.observer.failures == [], self.observer.failures[:SHOWN]

    def settle(self) -> None:
        """Check that everything has ended and everything is true; the load has stopped."""
        try:
            wait_until(lambda: self._open() == [], RECOVERY_S_MAX, "the end of every job and link")
        except AssertionError as error:
            raise AssertionError(error, self._open()) from None
        wait_until(self.observer.is_level, LEVEL_S_MAX, "an observer that has seen the whole log")
        outside = self.system.outside
        outside.projector.catch_up()
        audit = outside.audit()
        assert audit.failures == [], audit.failures[:SHOWN]
        assert self.observer.failures == [], self.observer.failures[:SHOWN]
        broken = self.observer.broken_promises()
        assert broken == [], broken[:SHOWN]
        strange = (self._endpoints() - self._orphans) ^ self.observer.endpoints
        assert strange == set(), [self._story(each) for each in sorted(strange)[:SHOWN]]
        found = Truth(self.load, self.observer).check()
        self.report.blame(found.lost, found.doubled)
        assert found.all() == [], found.all()[:SHOWN]
        assert self.load.ledger.surprises == [], self.load.ledger.surprises[:SHOWN]
        assert found.asked > len(self.load.ledger.of("lookup", "job", "link"))

    def _endpoints(self) -> set[str]:
        """Return what the network says that it has: nothing twice, nothing that nobody knows of."""
        with self.system.outside.stores.reading() as connection:
            return set(connection.execute(text(ENDPOINTS)).scalars())

    def _story(self, endpoint_id: str) -> object:
        """Return what the network has of an endpoint, and what has happened to its link."""
        with self.system.outside.stores.reading() as connection:
            row = connection.execute(text(ENDPOINT), {"endpoint": endpoint_id}).one_or_none()
        if row is None:
            return endpoint_id, "the network does not know it"
        link_id = json.loads(row.document)["reference"]
        return endpoint_id, row.is_removed, self.system.outside.log.history(UUID(link_id))

    def has_late_work(self) -> bool:
        """Tell whether a link or a change waits for a moment to come."""
        outside = self.system.outside
        due = outside.read(outside.due_list.all)
        return any(self.observer.is_slow(str(work.id)) for work in due)

    def _open(self) -> list[object]:
        """Return some of what is open: links and changes, with their last event, jobs, fees."""
        outside = self.system.outside
        try:
            outside.projector.catch_up()
            with outside.views.reading() as connection:
                works = outside.due_list.all(connection)[:SHOWN]
                jobs = outside.jobs.all(connection, None, unfinished=True)[:SHOWN]
            last = [(work, outside.log.history(work.id)[-1]) for work in works]
        except ServiceUnavailable as error:
            return [error]
        return [*last, *jobs, *self._debts()]

    def _debts(self) -> list[object]:
        """Return who owes a monthly fee that is due by now."""
        charged, owed = self.observer.fees_charged, set(months_owed())
        return [each for each in self.load.ledger.of("fees") if not owed <= charged[each.id]]


@contextmanager
def under_load(
    system: System, observer: Observer, report: Report, seed: int
) -> Iterator[Programme]:
    """Run a load; when the block has ended well, check everything that it was promised."""
    wait_until(observer.is_level, LEVEL_S_MAX, "an observer that has seen the whole log")
    began_at = time.monotonic()
    load = Load(system, seed)
    programme = Programme(system, load, observer, report)
    with load:
        wait_until(
            lambda: programme.is_recovered(began_at), RECOVERY_S_MAX, "a load that is at work"
        )
        yield programme
    programme.settle()


@dataclass
class Lane:
    """Failpoints that are reached one after the other."""

    waiting: deque[tuple[Failpoint, int]]
    current: Failpoint | None = None
    since: float = 0.0
    reached: bool = False
    log: list[str] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return self.current is None and not self.waiting

    def look(self, programme: Programme) -> None:
        """Arm the next one when the system has recovered from the one before."""
        now = time.monotonic()
        if self.current is None:
            self._arm(programme, now)
        elif not self.reached:
            self._look_whether_reached(programme, now)
        elif programme.is_recovered(self.since):
            programme.report.row(_fault_of(self.current)).recovery_s.append(now - self.since)
            self.current = None
        else:
            assert now < self.since + RECOVERY_S_MAX, f"no recovery from {self.current}"

    def _arm(self, programme: Programme, now: float) -> None:
        if self.waiting:
            self.current, passage = self.waiting.popleft()
            self.since, self.reached = now, False
            programme.system.failpoints.arm(self.current, passage)

    def _look_whether_reached(self, programme: Programme, now: float) -> None:
        assert self.current is not None
        if programme.system.failpoints.is_armed(self.current):
            assert now < self.since + REACH_S_MAX, f"nobody has come to {self.current}"
            return
        self.since, self.reached = now, True
        programme.report.row(_fault_of(self.current)).moments.append(now)


def _fault_of(failpoint: Failpoint) -> str:
    return f"{failpoint.role} killed before and after {failpoint.place}"
