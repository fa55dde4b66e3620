"""The `web` process: HTTP by granian, in several worker processes over one socket."""

import logging
import multiprocessing

from granian import Granian
from granian.constants import HTTPModes, Interfaces

from app.container import Container
from app.processes.readiness import wait_until_ready
from app.processes.stopping import stop_on_signals
from app.threads import HTTP_THREADS

BACKLOG = 1024
KILL_S = 25  # A clean end takes at most 30 s.

logger = logging.getLogger(__name__)


def run(container: Container) -> None:
    """Serve until SIGTERM or SIGINT; a worker that dies is replaced."""
    settings = container.settings
    stop = stop_on_signals()
    container.metrics.listen()
    container.keys.ensure()
    if not wait_until_ready(container, stop):
        return
    container.close()  # Each worker opens its own: nothing that is open may cross into another.
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
        backpressure=2 * HTTP_THREADS,
        respawn_failed_workers=True,
        workers_kill_timeout=KILL_S,
        log_enabled=False,  # Our own lines say it better.
    )
    logger.info("serving %s", settings.public)
    server.serve()
