"""One worker process of `web`, which spawns it."""

import logging
import os
import signal
import socket
import sys
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from threading import Event, Thread

from app.bootstrap.container import Container
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
    from app.http.application import create_front  # noqa: PLC0415  # As above.
    from app.http.edge.request import current_request_id  # noqa: PLC0415  # As above.

    settings = Settings.load()
    configure_logging(settings.log_format, current_request_id)
    if settings.metrics_port:
        count_in(slot)
    container = Container(settings)
    container.role = "web worker"
    try:
        _complete(container)
        container.clock_check.check()
        Thread(target=container.clock_check.keep, args=(Event(),), name="time", daemon=True).start()
        Thread(target=container.drains.keep, args=(Event(),), name="drains", daemon=True).start()
        held = (Event(), container.hold.look)
        Thread(target=keep_time, args=held, name="hold", daemon=True).start()
        container.waker.start()
        Thread(target=container.warm, name="warm", daemon=True).start()
        if settings.metrics_port:
            WorkerGauges(container.observed.providers_up).start()
        front = create_front(container, listeners, many=True, finish_s=FINISH_S)
        signal.signal(signal.SIGTERM, lambda *_: front.stop())
        settle_memory()
        ready.send_bytes(b"ready")
        front.run()
    finally:
        container.close()


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
