"""The threads of one process apart from HTTP: projector, dispatcher, worker and clock."""

import logging
import time
from collections.abc import Callable, Collection
from functools import partial
from queue import Empty, PriorityQueue
from threading import Event, Thread
from typing import Any, Literal

from dramatiq import Broker, Worker

from app.bootstrap.container import Container
from app.processes import redo
from app.processes.erasing import erase_again
from app.processes.memory import settle_memory
from app.processes.providers import update_balances
from app.settings import BILLING_THREADS, LOOKUP_THREADS, PROVISION_THREADS, WEBHOOK_THREADS
from domain.errors import NotPossible
from projections.engine.consumer import Consumer
from projections.engine.follower import IDLE_S, Follower, LockedStep, Step
from projections.engine.in_parts import PART_ROWS
from projections.stores.counters import SLICES
from workers.checkpoints import NotAccepted
from workers.fees import request_round
from workers.reading import READERS
from workers.schedule import TICK_S, Schedule, Task, run_schedule
from workers.webhooks import RETENTION

Role = Literal["projector", "dispatcher", "worker", "clock"]
ROLES: tuple[Role, ...] = ("projector", "dispatcher", "worker", "clock")

# How often an idle dispatcher polls if its process makes all commits, which then wake it anyway.
ALONE_S = 2.0
ALIVE_S = 60.0  # Between two signs of life of a process.
MONTHLY_FEES_S = 60.0
MONTH_END_S = 60.0
# Often, because some rows, such as counts of wrong secrets, lapse after a minute.
PURGE_S = 60.0
PURGE_FIRST_S = 5.0  # After the busy start, but soon, because a clock process may not live long.
# Parts of the cache per purge: they take a second or two, and the other tasks wait meanwhile.
PURGE_PARTS = 20
FOLLOW_S = 1.0  # Nothing waits for the tree: a checkpoint signs older events.
FOLLOW_FIRST_S = 5.0  # As for the first purge.
CHECKPOINT_S = 5.0  # The longest delay of a checkpoint that is due.
DELIVER_S = 15.0  # Also the pause after the sink has not accepted a checkpoint.
AUDIT_S = 60.0  # How often to check whether the nightly audit is due.
BALANCES_S = 300.0  # Often enough for an alert, seldom enough for a provider's limits.
BALANCES_FIRST_S = 5.0  # As for the first purge.
ERASE_S = 600.0  # Only for a command that was killed between its event and the keys.
REDO_S = 60.0  # Commands add to the list by themselves.
ERASURES_MAX = 100  # The newest.
RESTART_S = 1.0
# Time-out of a queue's consumer: how late it notices a stop, or that a delayed message is due.
POLL_MS = 1_000
PAUSE_S = 1.0  # How soon a worker with messages notices that its clock is right again.
STOP_S = 20.0  # A clean end takes at most 30 s in all; who starts next asks for unfinished work.

logger = logging.getLogger(__name__)


def runs(roles: Collection[Role]) -> Callable[[Container], Callable[[], None]]:
    """Return what starts these roles with a container, and returns what stops them."""

    def start(container: Container) -> Callable[[], None]:
        runtime = Runtime(container, roles)
        runtime.start()
        return runtime.stop

    return start


class Runtime:
    """Starts and stops the threads of one process; the tables must be there."""

    def __init__(self, container: Container, roles: Collection[Role] = ROLES) -> None:
        self._container = container
        self._roles = roles
        self._stop = Event()
        self._threads: list[Thread] = []
        self._workers: list[WaitingWorker] = []
        self._standbys: list[LockedStep] = []
        self._set_at: object = None  # The `began` of the latest `put_right`.

    def start(self) -> None:
        """Start all threads; beats ask for work that was lost with an earlier process."""
        container, roles = self._container, self._roles
        container.cut_off.live()  # Before the followers of this process leave signs of their own.
        gate = partial(container.gate.refresh, drains="worker" in roles)
        gate()
        watch = [Task("gate", TICK_S, gate), Task("sign of life", ALIVE_S, container.cut_off.live)]
        if "worker" in roles:  # For `serve`, which answers lookups too.
            watch.append(Task("prices", TICK_S, container.prices.refresh))
            self._start_workers()
        self._repeat("watch", Schedule(watch).tick)
        if "projector" in roles:
            self._follow(container.projector)
        if "dispatcher" in roles:
            idle_s = IDLE_S
            if container.settings.has_own_broker:
                idle_s = ALONE_S
                # There is no other process, so what is held was held by an earlier run.
                container.counters.clear(SLICES)
                container.webhook_deliveries.release()
            self._follow(container.dispatcher, idle_s)
            self._follow(container.webhook_planner, acts=True)
        if "clock" in roles:
            self._repeat("clock", self._standby("clock", self._schedule().tick))
            self._repeat("auditor", self._standby("auditor", self._auditing().tick))
            if container.settings.readings_refresh_s:
                self._read_links()
        settle_memory()

    def stop(self) -> None:
        """Stop all threads; what nobody took is asked for after the next start."""
        self._stop.set()
        self._container.log.appended.call()
        deadline = time.monotonic() + STOP_S
        stops = [Thread(target=each.stop, args=(int(STOP_S * 1000),)) for each in self._workers]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for standby in self._standbys:
            standby.release()
        self._container.close()

    def _start_workers(self) -> None:
        broker = self._container.broker
        threads = {
            "lookup": LOOKUP_THREADS,
            "provision": PROVISION_THREADS,
            "billing": BILLING_THREADS,
            "webhook": WEBHOOK_THREADS,
        }
        paused = self._container.gate.is_off
        self._workers = [WaitingWorker(broker, *each, paused) for each in threads.items()]
        for worker in self._workers:
            worker.start()
        self._spawn("warm", self._container.warm)
        self._repeat("work due", self._acting(self._container.due_work.beat))
        self._repeat("webhooks due", self._acting(self._container.webhook_work.beat))

    def _read_links(self) -> None:
        reading = self._container.background_reading
        self._repeat("readings", self._standby("readings", self._acting(reading.tick)))
        for network in reading.lanes:
            for number in range(READERS):
                name = f"reads {network} {number}"
                self._spawn(name, partial(reading.work, network, self._stop))

    def _follow(self, consumer: Consumer, idle_s: float = IDLE_S, *, acts: bool = False) -> None:
        """Start the thread of a consumer; one that `acts` does nothing while the process rests."""
        name, appended = consumer.name, self._container.log.appended
        self._container.listen()
        standby = self._standby(name, self._acting(consumer.step) if acts else consumer.step)
        follower = Follower(name, standby, appended, consumer.pace_s, consumer.batch_max, idle_s)
        self._spawn(name, lambda: follower.run(self._stop))

    def _acting(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Return work that acts on the world, so that it does nothing while the process rests."""
        return lambda: 0 if self._container.gate.is_shut() else run()

    def _standby(self, name: str, step: Step) -> LockedStep:
        parts = self._container
        lock, report = parts.persistence.lock(name), parts.metrics.activity(name)
        standby = LockedStep(lock, step, parts.gate.is_off, report)
        self._standbys.append(standby)
        return standby

    def _schedule(self) -> Schedule:
        container, acting = self._container, self._acting
        fees = acting(partial(request_round, container.publisher))
        return Schedule(
            [
                Task("monthly fees", MONTHLY_FEES_S, fees, first_s=0),
                Task("month end", MONTH_END_S, acting(container.month_end.run), first_s=0),
                Task("purge", PURGE_S, self._purge, first_s=PURGE_FIRST_S),
            ]
        )

    def _auditing(self) -> Schedule:
        """Schedule the tasks that may take long apart from the others, which must not wait."""
        container, acting = self._container, self._acting
        checkpoints, deliver = container.checkpoints, acting(container.checkpoints.deliver)
        redoing = acting(partial(redo.collect, container))
        balances = acting(partial(update_balances, container))
        return Schedule(
            [
                Task("audit tree", FOLLOW_S, checkpoints.follow, FOLLOW_FIRST_S),
                Task("checkpoints", CHECKPOINT_S, acting(checkpoints.run), expected=NotPossible),
                Task("delivery of checkpoints", DELIVER_S, deliver, expected=NotAccepted),
                Task("erasures", ERASE_S, partial(erase_again, container, ERASURES_MAX)),
                Task("redo", REDO_S, redoing, expected=OSError),
                Task("nightly audit", AUDIT_S, container.nightly_audit.run),
                Task("balances", BALANCES_S, balances, first_s=BALANCES_FIRST_S),
            ]
        )

    def _purge(self) -> bool:
        """Delete expired rows of own stores, of many a part; return whether more are left."""
        container = self._container
        if container.cut_off.is_doubted():  # What lapses only by a wrong clock must not be lost.
            return False
        oldest = container.clock() - container.answer_rules().oldest
        container.counters.forget_lapsed()
        purged = container.webhook_deliveries.forget(container.clock() - RETENTION, PURGE_PARTS)
        forgotten = container.lookup_cache.forget(oldest, parts_max=PURGE_PARTS)
        if forgotten:
            container.stores.wipe()
        if (set_at := container.cut_off.started) != self._set_at:  # Since then no clock was set.
            container.webhook_deliveries.put_right(container.clock())
            container.reading_schedule.put_right(container.clock())
            self._set_at = set_at
        return max(purged, forgotten) >= PURGE_PARTS * PART_ROWS

    def _guard(self, name: str, run: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                run()
            except Exception:
                logger.critical("thread %s failed and starts again", name, exc_info=True)
                self._stop.wait(RESTART_S)
            else:
                return

    def _repeat(self, name: str, tick: Callable[[], Any]) -> None:
        self._spawn(name, lambda: run_schedule(self._stop, tick))

    def _spawn(self, name: str, run: Callable[[], None]) -> None:
        thread = Thread(target=self._guard, args=(name, run), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)


class WaitingWorker(Worker):
    """Dramatiq's worker, whose idle threads sleep here; Dramatiq's poll ten times a second."""

    def __init__(
        self, broker: Broker, queue: str, threads: int, paused: Callable[[], bool] = lambda: False
    ) -> None:
        """`paused` says whether to take no message now; it must not raise."""
        super().__init__(broker, queues={queue}, worker_threads=threads, worker_timeout=POLL_MS)
        self._messages = self.work_queue = Messages(paused)

    def stop(self, timeout: int = 600_000) -> None:
        """Stop when the work in hand is done."""
        self._messages.end()
        super().stop(timeout)


class Messages(PriorityQueue[Any]):
    """A queue of messages that wakes its readers for a message, and at the end."""

    def __init__(self, paused: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self._paused = paused
        self._has_ended = False

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: ARG002, FBT001, FBT002  # The signature is the library's.
        """Return the next message, however long that takes; raises Empty at the end."""
        with self.not_empty:
            while block and not self._has_ended and (self._paused() or not self._qsize()):
                self.not_empty.wait(PAUSE_S if self._qsize() else None)
            if self._paused() or not self._qsize():
                raise Empty
            return self._get()

    def end(self) -> None:
        """Wake all readers, because there will be no more messages."""
        with self.not_empty:
            self._has_ended = True
            self.not_empty.notify_all()
