"""Everything but HTTP in one process: projector, dispatcher, worker and clock, as threads."""

import gc
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread

from dramatiq import Worker

from app.container import Container
from app.threads import WAITING_MAX
from projections.follower import Follower
from workers.schedule import Schedule, Task

LOOKUP_THREADS = 4
PROVISION_THREADS = WAITING_MAX  # Who may wait for the network is never behind one that hangs.
SWEEP_S = 10.0
PROVISIONING_SWEEP_S = 1.0
BOOT_JOBS_MAX = 10_000  # Their messages died with the queue: at boot all are asked for.
MONTHLY_FEES_S = 60.0
PURGE_S = 600.0
RESTART_S = 1.0
STOP_S = 20.0  # A clean end takes at most 30 s; what is cut off is swept at the next start.

logger = logging.getLogger(__name__)


class Runtime:
    """Starts and stops the threads of one installation; its tables must be there."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._stop = Event()
        self._threads: list[Thread] = []
        self._workers: list[Worker] = []

    def start(self) -> None:
        """Start all threads, then ask again for the work that died with an earlier process."""
        container = self._container
        projector = Follower("projector", container.projector.step, container.waker)
        dispatcher = Follower("dispatcher", container.dispatcher.step, container.waker)
        self._workers = [
            self._worker("lookup", LOOKUP_THREADS),
            self._worker("provision", PROVISION_THREADS),
        ]
        for worker in self._workers:
            worker.start()
        self._spawn("projector", lambda: projector.run(self._stop))
        self._sweep_boot()
        self._spawn("dispatcher", lambda: dispatcher.run(self._stop))
        self._spawn("clock", lambda: self._schedule().run(self._stop))
        self._spawn("fees", lambda: self._fees().run(self._stop))
        self._spawn("warm", container.offline_lookup.warm)
        _settle_memory()

    def stop(self) -> None:
        """End all threads; messages that nobody took are swept at the next start."""
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
        self._container.close()

    def _sweep_boot(self) -> None:
        """The queue of this process began empty, so whatever is unfinished has no message."""
        self._container.projector.catch_up()
        self._container.sweep.run(idle=timedelta(0), jobs_max=BOOT_JOBS_MAX)
        self._container.provisioning_sweep.run(everything=True, work_max=BOOT_JOBS_MAX)

    def _schedule(self) -> Schedule:
        container = self._container
        return Schedule(
            [
                Task("sweep", SWEEP_S, container.sweep.run),
                Task("provisioning", PROVISIONING_SWEEP_S, container.provisioning_sweep.run),
                Task("purge", PURGE_S, self._purge),
            ]
        )

    def _fees(self) -> Schedule:
        """A clock of its own: hundreds of charges wait for the disk, and no sweep for them."""
        run = self._container.monthly_fees.run
        return Schedule([Task("monthly fees", MONTHLY_FEES_S, run, at_once=True)])

    def _purge(self) -> None:
        """Drop what own stores no longer need."""
        container = self._container
        container.leases.forget_lapsed()
        container.throttle.forget_lapsed()
        container.lookup_cache.forget(container.clock() - container.settings.lookup_cache_ttl)
        container.stores.wipe()

    def _worker(self, queue: str, threads: int) -> Worker:
        broker = self._container.broker
        return Worker(broker, queues={queue}, worker_threads=threads, worker_timeout=100)

    def _guard(self, name: str, run: Callable[[], None]) -> None:
        """Start a thread's work again if it ends by an error that nobody expected."""
        while not self._stop.is_set():
            try:
                run()
            except Exception:
                logger.critical("thread %s failed and starts again", name, exc_info=True)
                self._stop.wait(RESTART_S)
            else:
                return

    def _spawn(self, name: str, run: Callable[[], None]) -> None:
        thread = Thread(target=self._guard, args=(name, run), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)


def _settle_memory() -> None:
    """Look at what is here to stay no more: collecting it again took a tenth of all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
