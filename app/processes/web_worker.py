"""One worker of the `web` process, which is spawned."""

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
from app.settings import Settings
from app.watch.logging import configure_logging
from app.watch.web_workers import WorkerGauges
from domain.errors import ServiceUnavailable, WrongCurrency

logger = logging.getLogger(__name__)

FINISH_S = 24.0  # Before the parent kills.


def run(listeners: list[socket.socket], ready: Connection) -> None:
    """Answer on sockets that the parent has made, until SIGTERM; tell it when this begins."""
    # Ctrl-C reaches all processes of a terminal: the parent says what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=end_with_parent, name="parent", daemon=True).start()
    # Flask is for a worker only, and this module is read by the main process too.
    from app.http.application import create_front  # noqa: PLC0415  # As above.
    from app.http.edge.request import current_request_id  # noqa: PLC0415  # As above.

    settings = Settings.load()
    configure_logging(settings.log_format, current_request_id)
    container = Container(settings)
    container.role = "web worker"
    try:
        container.complete()
        _require_currency(container)
        container.time.measure()
        Thread(target=container.time.keep, args=(Event(),), name="time", daemon=True).start()
        container.waker.start()
        Thread(target=container.offline_lookup.warm, name="warm", daemon=True).start()
        if settings.metrics_port:
            WorkerGauges(container.provider).start()
        front = create_front(container, listeners, many=True, finish_s=FINISH_S)
        signal.signal(signal.SIGTERM, lambda *_: front.stop())
        settle_memory()
        ready.send_bytes(b"ready")
        front.run()
    finally:
        container.close()


def _require_currency(container: Container) -> None:
    """End with one line where a wallet was opened in another currency since the parent looked."""
    try:
        container.currency.check()
    except WrongCurrency as error:
        logger.critical("%s", error)
        sys.exit(1)
    except ServiceUnavailable:  # It serves what it can; wallets refuse another currency too.
        logger.warning("CURRENCY could not be compared with the log, which is away")


def end_with_parent() -> None:
    """End this process when the one that made it is gone: nobody would ever end it otherwise.

    Its own word counts, not the present parent's number: it may be gone before this process looks.
    """
    parent = parent_process()
    assert parent is not None, "a worker is made by `web`"
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
