"""The `web` process: HTTP in several worker processes over the same sockets."""

import logging
import multiprocessing
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from threading import Event, Thread
from typing import cast

from app.bootstrap.container import Container
from app.bootstrap.known_keys import ensure_keys, missing_keys, note_keys
from app.http.edge.listening import bind
from app.http.edge.listening import listen as listen_on
from app.processes import web_worker
from app.processes.background import listen
from app.processes.doctor import announce
from app.processes.lives import Lives
from app.processes.readiness import wait_until_ready
from app.processes.stopping import ASKS, call_after, stop_on_signals
from app.watch.web_workers import WorkerFiles
from workers.schedule import keep_time

KILL_S = 25.0  # A clean end takes at most 30 s.
SOON_S = 5.0
CONNECT_S = 1.0

logger = logging.getLogger(__name__)


def run(container: Container) -> None:
    """Serve until SIGTERM or SIGINT; replace workers that die."""
    container.check_settings()  # Here, or each worker would end with a traceback.
    ensure_keys(container)  # First, because `/readyz` asks for the keys.
    if not container.settings.metrics_port:
        _run(container, lambda _: None, None)
        return
    files = WorkerFiles()
    try:
        port = partial(_missing_port, container)
        keys = partial(missing_keys, container)
        lives = Lives(container)
        listen(lives, "web", files, workers=files.missing, http=port, keys=keys)
        _run(container, files.end, lives)
    finally:
        files.close()


def _missing_port(container: Container) -> str | None:
    """Say that nothing accepts connections; None when something does."""
    settings = container.settings
    try:
        socket.create_connection((settings.host, settings.port), CONNECT_S).close()
    except OSError as error:
        return f"HTTP is not served ({type(error).__name__})"
    return None


def _run(container: Container, on_end: Callable[[int], None], lives: Lives | None) -> None:
    settings = container.settings
    stop = stop_on_signals()
    for number in ASKS:  # Ignore a second signal, because it would leave workers behind.
        signal.signal(number, lambda *_: None)
    listeners = bind(settings.host, settings.port)
    announce(container)
    if not wait_until_ready(container, stop):
        return
    container.hold.look()
    for line in note_keys(container):
        logger.warning(line)
    listen_on(listeners, settings.host, settings.port)
    # Workers are spawned, so they inherit nothing that is open here. Metrics need the database.
    if lives is None:
        container.close()
    else:
        lives.start(_watch)
    Workers(listeners, settings.web_workers, on_end).run(
        stop, lambda: logger.info("serving %s", settings.public)
    )


def _watch(container: Container) -> Callable[[], None]:
    """Start the threads that the probes of this process need."""
    stop = Event()
    for name, run in {
        "time": lambda: container.clock_check.keep(stop),
        "hold": lambda: keep_time(stop, container.hold.look),
    }.items():
        Thread(target=run, name=name, daemon=True).start()
    return stop.set


class Workers:
    """The processes that answer requests over one set of sockets; one that dies is replaced.

    Each has a slot, a number from 0, which its replacement takes over. When a worker has died,
    `on_end` is called with its slot before the replacement starts.
    """

    def __init__(
        self, listeners: list[socket.socket], count: int, on_end: Callable[[int], None]
    ) -> None:
        self._listeners = listeners
        self._count = count
        self._on_end = on_end
        self._context = multiprocessing.get_context("spawn")
        self._ready, self._tell = self._context.Pipe(duplex=False)
        self._alive: dict[int, _Worker] = {}

    def run(self, stop: Event, on_ready: Callable[[], None]) -> None:
        """Run the workers until told to end; call `on_ready` once, when the first one is ready.

        Exits with status 1 when a replacement dies within a few seconds.
        """
        asked, ask = self._context.Pipe(duplex=False)
        # A pipe can be waited for together with processes, an event cannot.
        call_after(stop, lambda: ask.send_bytes(b"stop"))
        for slot in range(self._count):
            self._start(slot, replaces=False)
        waiting = True
        while True:
            found = wait([asked, self._ready, *self._alive])
            if asked in found:
                self._end()
                return
            for each in found:
                if each is self._ready:
                    self._ready.recv_bytes()
                    if waiting:
                        on_ready()
                    waiting = False
                else:
                    self._replace(self._alive.pop(cast("int", each)))

    def _start(self, slot: int, *, replaces: bool) -> None:
        process = self._context.Process(
            target=web_worker.run, args=(slot, self._listeners, self._tell), name="web worker"
        )
        process.start()
        self._alive[process.sentinel] = _Worker(process, slot, time.monotonic(), replaces)

    def _replace(self, dead: "_Worker") -> None:
        dead.process.join()
        self._on_end(dead.slot)
        logger.error("a worker has died with status %s", dead.process.exitcode)
        if dead.replaces and time.monotonic() - dead.began_s < SOON_S:
            self._end()
            sys.exit(1)
        self._start(dead.slot, replaces=True)

    def _end(self) -> None:
        processes = [each.process for each in self._alive.values()]
        for each in self._listeners:
            each.close()
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + KILL_S
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                logger.warning("a worker did not end and is killed")
                process.kill()


@dataclass(frozen=True, slots=True)
class _Worker:
    process: SpawnProcess
    slot: int
    began_s: float
    replaces: bool
