"""Serves everything in one process: HTTP and the threads of the runtime."""

import logging
from collections.abc import Callable
from functools import partial

from app.bootstrap.container import Container
from app.bootstrap.known_keys import ensure_keys, missing_keys, note_keys
from app.http.application import Bridge, create_server
from app.processes import background
from app.processes.listening import bind, listen
from app.processes.lives import Lives
from app.processes.readiness import wait_until_ready
from app.processes.runtime import ROLES, runs
from app.processes.stopping import ALIVE, READY, call_after, notify, stop_on_signals

FINISH_S = 18.0  # Long enough for the creation of a link; the whole end takes at most 30 s.

logger = logging.getLogger(__name__)


def serve(container: Container, on_listening: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT. The tables must exist; `on_listening` is called once.

    Raises WrongSetting when a port is not available.
    """
    stop = stop_on_signals()  # First, because a signal may come as soon as the port is open.
    notify(READY)
    if not wait_until_ready(container, stop):  # For a right clock; the tables are there.
        return
    ensure_keys(container)
    for line in note_keys(container):
        logger.warning(line)
    settings, lives = container.settings, Lives(container)
    listeners = bind(settings.host, settings.port)
    listen(listeners, settings.host, settings.port)
    background.listen(lives, "serve", keys=partial(missing_keys, container))
    try:
        container.complete()
        bridge = Bridge(container, many=False)
        server = create_server(bridge, listeners, many=False, finish_s=FINISH_S)
        server.on_tick = partial(notify, ALIVE)
        call_after(stop, server.stop)
        lives.start(bridge.begin, runs(ROLES))
        logger.info("serving %s", settings.public)
        on_listening()
        server.run()
    finally:
        logger.info("stopping")
        lives.stop()
