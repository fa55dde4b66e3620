"""One worker process of `web`, which spawns it."""

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from threading import Event, Thread

from app.bootstrap.container import Container
from app.processes.lives import Lives
from app.processes.memory import settle_memory
from app.settings import Settings, WrongSetting
from app.watch.logging import configure_logging
from app.watch.web_workers import WorkerGauges, count_in
from domain.errors import ServiceUnavailable, WrongCurrency
from workers.schedule import keep_time

logger = logging.getLogger(__name__)

FINISH_S = 24.0  # Less than KILL_S of the parent, which then kills this process.


def run(slot: int, listeners: list[socket.socket], ready: Connection) -> None:
    """Answer on the parent's sockets until SIGTERM; tell the parent when ready."""
    # Ctrl-C reaches all processes of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=end_with_parent, name="parent", daemon=True).start()
    # Flask is loaded only in a worker, while the main process imports this module too.
    from app.http.application import Bridge, create_front  # noqa: PLC0415  # As above.
    from app.http.edge.request import current_request_id  # noqa: PLC0415  # As above.

    settings = Settings.load()
    configure_logging(settings.log_format, current_request_id)
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
        front = create_front(bridge, listeners, many=True, finish_s=FINISH_S)
        lives.start(_watch, bridge.begin)
        signal.signal(signal.SIGTERM, lambda *_: front.stop())
        settle_memory()
        ready.send_bytes(b"ready")
        front.run()
    finally:
        lives.stop()


def _watch(container: Container) -> Callable[[], None]:
    """Start the threads that a container needs to answer requests."""
    stop = Event()
    container.clock_check.check()
    runs = {
        "time": lambda: container.clock_check.keep(stop),
        "drains": lambda: container.drains.keep(stop),
        "hold": lambda: keep_time(stop, container.hold.look),
        "warm": container.warm,
    }
    for name, run in runs.items():
        Thread(target=run, name=name, daemon=True).start()
    container.waker.start()
    return stop.set


def _complete(container: Container) -> None:
    """Make all parts; end with one log line if a setting has become wrong since the start."""
    try:
        container.complete()
        _check_currency(container)
    except (WrongSetting, WrongCurrency) as error:
        logger.critical("%s", error)
        sys.exit(1)


def _check_currency(container: Container) -> None:
    try:
        container.currency.check()
    except ServiceUnavailable:  # Serve anyway, because a wallet refuses another currency itself.
        logger.warning("CURRENCY could not be compared with the log, which cannot be reached")


def end_with_parent() -> None:
    """End this process when its parent is gone, because nobody else would end it.

    The parent may end before this function runs; `parent_process` still tells of it then.
    """
    parent = parent_process()
    assert parent is not None, "a worker is made by `web`"
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
