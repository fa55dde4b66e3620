"""A process without HTTP: one role of the runtime, from start to a clean end."""

import logging

from app.container import Container
from app.processes.readiness import wait_until_ready
from app.processes.stopping import stop_on_signals
from app.runtime import Role, Runtime

logger = logging.getLogger(__name__)


def run(container: Container, role: Role) -> None:
    """Work until SIGTERM or SIGINT; what is begun is finished, what waits stays in its queue."""
    stop = stop_on_signals()
    container.metrics.listen()
    if not wait_until_ready(container, stop):
        return
    container.complete()
    runtime = Runtime(container, {role})
    try:
        runtime.start()
        logger.info("%s is at work", role)
        stop.wait()
    finally:
        logger.info("stopping")
        runtime.stop()
