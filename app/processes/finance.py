"""Serves the finance view on the loopback interface until it is stopped."""

from collections.abc import Callable

from app.bootstrap.container import Container
from app.finance.access import Access
from app.finance.application import create_application
from app.http.edge.front import Front
from app.http.edge.listening import bind, listen
from app.http.edge.own_replies import OwnReplies
from app.http.edge.request_threads import RequestThreads
from app.processes.stopping import call_after, stop_on_signals
from projections.engine.database import Database
from projections.finance.figures import Figures

LOOPBACK = "127.0.0.1"
FINISH_S = 5.0


def open_pages(container: Container, database: Database, port: int) -> tuple[Front, str]:
    """Return the server of the pages, which listens already, and the one-time address.

    Raises WrongSetting when the port is not available, and the error of the database when the
    finance views cannot be read.
    """
    figures = Figures(database)
    figures.require_views()
    listeners = bind(LOOPBACK, port)
    listen(listeners, LOOPBACK, port)
    server = listeners[0].getsockname()
    access = Access(server[1])
    app = create_application(
        figures, access, lambda: container.clock().date(), container.settings.currency
    )
    threads = RequestThreads(app, server, many=False)
    replies = OwnReplies(container.clock, livez=())
    front = Front(listeners, threads, replies, container.settings.request_read_s, FINISH_S)
    return front, f"http://{LOOPBACK}:{server[1]}/open/{access.token}"


def serve_finance(container: Container, port: int, on_listening: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `on_listening` is given the one-time address."""
    database = container.open_finance()
    try:
        front, address = open_pages(container, database, port)
        stop = stop_on_signals()
        call_after(stop, front.stop)
        on_listening(address)
        front.run()
    finally:
        database.close()
