"""HTTP in this process: `serve` does all the other work too, `web` only answers."""

import logging
import socket
from collections.abc import Callable
from functools import partial
from threading import Event, Thread

from app.bootstrap.container import Container
from app.bootstrap.known_keys import ensure_keys, missing_keys, record_keys
from app.http.application import Bridge
from app.http.edge.request import current_request_id
from app.http.server.listening import Server, bind, listen
from app.processes import background
from app.processes.doctor import announce
from app.processes.lives import Lives, Start
from app.processes.memory import settle_memory
from app.processes.readiness import wait_until_ready
from app.processes.runtime import ROLES, runs
from app.processes.stopping import ALIVE, READY, notify, stop_on_signals
from app.watch.logging import configure_logging
from workers.schedule import run_schedule

FINISH_S = 18.0  # Long enough for the creation of a link; the whole end takes at most 30 s.
FINISH_ALONE_S = 24.0  # Of `web`, where no other work ends after the requests.

logger = logging.getLogger(__name__)


def serve(container: Container, on_listening: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT. The tables must exist; `on_listening` is called once.

    Raises WrongSetting when a port is not available.
    """
    stop = stop_on_signals()  # First, because a signal may come as soon as the port is open.
    notify(READY)
    if not wait_until_ready(container, stop, sets_price=True):  # For a right clock, with tables.
        return
    ensure_keys(container)
    settings, lives = container.settings, Lives(container)
    listeners = bind(settings.host, settings.port)
    listen(listeners, settings.host, settings.port)  # First, or a second one would begin to work.
    background.listen(lives, "serve", keys=partial(missing_keys, container))
    _answer(lives, listeners, stop, runs(ROLES), on_listening)


def serve_alone(container: Container) -> None:
    """Answer requests until SIGTERM or SIGINT, as `web`, of which several may run."""
    configure_logging(container.settings.log_format, current_request_id)
    container.check_settings()  # Before it waits for its servers.
    ensure_keys(container)  # First, because `/readyz` asks for the keys.
    stop, serving = stop_on_signals(), Event()
    settings, lives = container.settings, Lives(container)

    def missing() -> str | None:
        return None if serving.is_set() and not stop.is_set() else "HTTP is not served"

    background.listen(lives, "web", http=missing, keys=partial(missing_keys, container))
    listeners = bind(settings.host, settings.port, shared=settings.share_port)
    announce(container)
    notify(READY)
    if wait_until_ready(container, stop):
        _answer(lives, listeners, stop, _run_beside, serving.set)


def _answer(
    lives: Lives,
    listeners: list[socket.socket],
    stop: Event,
    work: Start,
    on_listening: Callable[[], object],
) -> None:
    """Answer requests until told to end, with this work beside."""
    container, settings = lives.now, lives.now.settings
    many = container.role == "web"  # Other processes may answer too.
    finish_s = FINISH_ALONE_S if many else FINISH_S
    for line in record_keys(container):
        logger.warning(line)
    try:
        container.complete()
        bridge = Bridge(many=many)
        lives.start(work, bridge.use)
        server = Server(listeners, lambda: bridge.loop, settings, finish_s)
        server.on_second = partial(notify, ALIVE)
        settle_memory()
        # Only now, because who shares the port with another process would get requests.
        listen(listeners, settings.host, settings.port)
        logger.info("serving %s", settings.public)
        on_listening()
        server.run(stop.is_set)
    finally:
        logger.info("stopping")
        lives.stop()


def _run_beside(container: Container) -> Callable[[], None]:
    """Start the threads that a container needs to answer requests alone."""
    stop = Event()
    container.gate.refresh()
    runs = {
        "gate": lambda: run_schedule(stop, container.gate.refresh),
        "prices": lambda: run_schedule(stop, container.prices.refresh),
        "warm": container.warm,
    }
    for name, run in runs.items():
        Thread(target=run, name=name, daemon=True).start()
    container.listen()
    return stop.set
