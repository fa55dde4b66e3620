"""Serves everything from one process: HTTP by waitress over the threads of the runtime."""

import logging
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from waitress import create_server

from app.container import Container
from app.http.application import create_app
from app.http.waitress_errors import answer_in_json
from app.processes.background import WatchedRuntime, listen
from app.settings import WrongSetting
from app.threads import HTTP_THREADS

BODY_BYTES_MAX = 16 * 1024 * 1024  # The edge refuses more than 1 MiB, once it has been sent.
CHANNEL_TIMEOUT_S = 30

logger = logging.getLogger(__name__)


class CannotServe(Exception):
    """Raised with one line that says why no request can be taken."""


def serve(container: Container, on_listening: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT. The tables must be there; `on_listening` is called once."""
    container.keys.ensure()
    server = _listen(container)
    _listen_for_metrics(container)
    answer_in_json(server, container.clock)
    runtime = WatchedRuntime(container)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        container.complete()
        runtime.start()
        logger.info("serving %s", container.settings.public)
        on_listening()
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        logger.info("stopping")
        server.close()
        runtime.stop()


def _listen(container: Container) -> Any:
    settings = container.settings
    try:
        return create_server(
            create_app(container),
            host=settings.host,
            port=settings.port,
            threads=HTTP_THREADS,
            ident=None,
            max_request_body_size=BODY_BYTES_MAX,
            channel_timeout=CHANNEL_TIMEOUT_S,
            clear_untrusted_proxy_headers=False,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such address"
        message = f"cannot listen on HOST {settings.host} PORT {settings.port}: {reason}"
        raise CannotServe(message) from error


def _listen_for_metrics(container: Container) -> None:
    try:
        listen(container, "serve")
    except WrongSetting as error:
        raise CannotServe(str(error)) from error


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)
