"""The `web` process: HTTP in one or more processes of its own over the same sockets.

The main process supervises: a process that dies is started again, and the probes answer meanwhile.
"""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from threading import Event, Thread
from typing import cast

from app.bootstrap.container import Container
from app.bootstrap.known_keys import ensure_keys, missing_keys, note_keys
from app.processes import background
from app.processes.doctor import announce
from app.processes.listening import bind, listen
from app.processes.lives import Lives
from app.processes.memory import settle_memory
from app.processes.readiness import wait_until_ready
from app.processes.stopping import ALIVE, ALIVE_S, ASKS, READY, call_after, notify, stop_on_signals
from app.settings import Settings, WrongSetting, notify_socket
from app.watch import tracing
from app.watch.logging import configure_logging
from app.watch.web_workers import WorkerFiles, WorkerGauges, count_in
from domain.errors import ServiceUnavailable, WrongCurrency
from workers.schedule import keep_time

KILL_S = 25.0  # A clean end takes at most 30 s.
FINISH_S = 24.0  # A worker ends by itself before it is killed.
SOON_S = 5.0
CONNECT_S = 1.0

logger = logging.getLogger(__name__)


def run(container: Container) -> None:
    """Serve until SIGTERM or SIGINT; replace workers that die."""
    container.check_settings()  # Here, or each worker would end with a traceback.
    tracing.check(container.settings)  # As above.
    ensure_keys(container)  # First, because `/readyz` asks for the keys.
    if not container.settings.metrics_port:
        _run(container, lambda _: None, None)
        return
    files = WorkerFiles()
    try:
        port = partial(_missing_port, container)
        keys = partial(missing_keys, container)
        lives = Lives(container)
        background.listen(lives, "web", files, workers=files.missing, http=port, keys=keys)
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
    notify(READY)
    if not wait_until_ready(container, stop):
        return
    container.hold.look()
    for line in note_keys(container):
        logger.warning(line)
    listen(listeners, settings.host, settings.port)
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
    _spawn(
        time=lambda: container.clock_check.keep(stop),
        hold=lambda: keep_time(stop, container.hold.look),
    )
    return stop.set


def _spawn(**runs: Callable[[], object]) -> None:
    for name, run in runs.items():
        Thread(target=run, name=name, daemon=True).start()


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
        # Slots whose loops have begun, and those of them that have been silent since the last sign.
        self._loops, self._silent = set[int](), set[int]()

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
            found = wait([asked, self._ready, *self._alive], ALIVE_S if notify_socket() else None)
            if asked in found:
                self._end()
                return
            for each in found:
                if each is self._ready:
                    self._hear(self._ready.recv_bytes()[0])
                    if waiting:
                        on_ready()
                    waiting = False
                else:
                    self._replace(self._alive.pop(cast("int", each)))
            if not self._silent:
                notify(ALIVE)
                self._silent = {*self._loops}

    def _hear(self, slot: int) -> None:
        """Take a sign of life of a loop, the first when it begins."""
        self._loops.add(slot)
        self._silent.discard(slot)

    def _start(self, slot: int, *, replaces: bool) -> None:
        process = self._context.Process(
            target=work, args=(slot, self._listeners, self._tell), name="web worker"
        )
        process.start()
        self._alive[process.sentinel] = _Worker(process, slot, time.monotonic(), replaces)

    def _replace(self, dead: "_Worker") -> None:
        dead.process.join()
        self._on_end(dead.slot)
        self._loops.discard(dead.slot)
        self._silent.discard(dead.slot)
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


def work(slot: int, listeners: list[socket.socket], ready: Connection) -> None:
    """Answer on the parent's sockets until SIGTERM, in a worker; tell the parent of the loop."""
    # Ctrl-C reaches all processes of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _spawn(parent=_end_with_parent)
    # Flask is loaded only in a worker, while the main process imports this module too.
    from app.http.application import Bridge, create_server  # noqa: PLC0415  # As above.
    from app.http.edge.request import current_request_id  # noqa: PLC0415  # As above.

    settings = Settings.load()
    configure_logging(settings.log_format, current_request_id)
    tracing.begin(settings, "web")
    if settings.metrics_port:
        count_in(slot)
    container = Container(settings)
    container.role = "web worker"
    lives = Lives(container)
    try:
        _complete(container)
        if settings.metrics_port:
            WorkerGauges(container.observed.providers_up).start()
        bridge = Bridge(container, many=True)
        server = create_server(bridge, listeners, many=True, finish_s=FINISH_S)
        lives.start(_serve, bridge.begin)
        signal.signal(signal.SIGTERM, lambda *_: server.stop())
        settle_memory()
        ready.send_bytes(bytes([slot]))
        if notify_socket():
            os.set_blocking(ready.fileno(), False)  # The loop waits for no supervisor.
            server.on_tick = partial(_tell_alive, ready, slot)
        server.run()
    finally:
        lives.stop()


def _tell_alive(ready: Connection, slot: int) -> None:
    with suppress(OSError):
        ready.send_bytes(bytes([slot]))


def _serve(container: Container) -> Callable[[], None]:
    """Start the threads that a container needs to answer requests."""
    stop = Event()
    container.clock_check.check()
    _spawn(
        time=lambda: container.clock_check.keep(stop),
        drains=lambda: container.drains.keep(stop),
        hold=lambda: keep_time(stop, container.hold.look),
        prices=lambda: keep_time(stop, container.prices.look),
        warm=container.warm,
    )
    container.waker.start()
    return stop.set


def _complete(container: Container) -> None:
    """Make all parts; end with one log line if a setting has become wrong since the start."""
    try:
        container.complete()
        try:
            container.currency.check()
        except ServiceUnavailable:  # Serve anyway: a wallet refuses another currency itself.
            logger.warning("CURRENCY could not be compared with the log, which cannot be reached")
    except (WrongSetting, WrongCurrency) as error:
        logger.critical("%s", error)
        sys.exit(1)


def _end_with_parent() -> None:
    """End this process when its parent is gone, because nobody else would end it.

    The parent may end before this function runs; `parent_process` still tells of it then.
    """
    parent = parent_process()
    assert parent is not None, "a worker is made by `web`"
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
