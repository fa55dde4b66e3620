"""The `web` process: HTTP by granian, in several worker processes over one socket."""

import logging
import multiprocessing
import socket
from functools import partial
from threading import Event, Thread
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces

from app.container import Container
from app.metrics.several import WorkerFiles
from app.processes.background import listen
from app.processes.readiness import wait_until_ready
from app.processes.stopping import stop_on_signals
from app.threads import HTTP_THREADS

BACKLOG = 1024
CONNECTIONS_MAX = 4096  # Of one worker; idle ones and slow ones hold no thread.
KILL_S = 25  # A clean end takes at most 30 s.
CONNECT_S = 1.0

logger = logging.getLogger(__name__)


def run(container: Container) -> None:
    """Serve until SIGTERM or SIGINT; a worker that dies is replaced."""
    if not container.settings.metrics_port:
        _run(container)
        return
    files = WorkerFiles()
    try:
        port = partial(_missing_port, container)
        listen(container, "web", files, workers=files.missing, http=port)
        _run(container)
    finally:
        files.close()


def _missing_port(container: Container) -> str | None:
    """Say that nobody takes connections; None when somebody does."""
    settings = container.settings
    try:
        socket.create_connection((settings.host, settings.port), CONNECT_S).close()
    except OSError as error:
        return f"HTTP is not served ({type(error).__name__})"
    return None


def _run(container: Container) -> None:
    settings = container.settings
    stop = stop_on_signals()
    container.keys.ensure()
    if not wait_until_ready(container, stop):
        return
    # Workers are spawned, so nothing that is open here crosses into them; metrics still ask.
    if not settings.metrics_port:
        container.close()
    multiprocessing.set_start_method("spawn")
    server = Granian(
        "app.processes.web_worker:create",
        factory=True,
        address=settings.host,
        port=settings.port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=settings.web_workers,
        blocking_threads=HTTP_THREADS,
        backlog=BACKLOG,
        backpressure=CONNECTIONS_MAX,
        respawn_failed_workers=True,
        workers_kill_timeout=KILL_S,
        log_enabled=False,  # Our own lines say it better.
    )
    _take_signals(server, stop)
    logger.info("serving %s", settings.public)
    server.serve()


def _take_signals(server: Any, stop: Event) -> None:
    """Let a thread tell granian to end, also when it was asked before granian has started.

    Its own handler sets an event inside the main thread, which waits for that event: of two
    signals one after the other the second could find it locked, and wait for itself for ever.
    """
    interrupt = server.signal_handler_interrupt
    server.signal_handler_interrupt = lambda *_: None

    def end_when_asked() -> None:
        stop.wait()
        interrupt()

    Thread(target=end_when_asked, name="stop", daemon=True).start()
