"""One worker of the `web` process, made inside it: granian calls `create` once."""

import atexit
import os
import signal
from multiprocessing import parent_process
from threading import Thread

from flask import Flask

from app.container import Container
from app.http.application import create_app
from app.http.request_context import current_request_id
from app.metrics.several import WorkerGauges
from app.observability import configure_logging
from app.settings import Settings


def create() -> Flask:
    """Return the application of this process, on connections of its own."""
    settings = Settings.load()
    configure_logging(settings.log_format, current_request_id)
    container = Container(settings)
    container.role = "web worker"
    container.complete()
    container.waker.start()
    Thread(target=container.offline_lookup.warm, name="warm", daemon=True).start()
    Thread(target=end_with_parent, name="parent", daemon=True).start()
    if settings.metrics_port:
        WorkerGauges(container.provider).start()
    atexit.register(container.close)
    return create_app(container)


def end_with_parent() -> None:
    """End this process when the one that made it is gone: nobody would ever end it otherwise.

    Its own word counts, not the present parent's number: it may be gone before this process looks.
    """
    parent = parent_process()
    assert parent is not None, "a worker is made by `web`"
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
