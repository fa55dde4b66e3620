"""Serves the finance view on the loopback interface until it is stopped."""

from collections.abc import Callable

from app.bootstrap.container import Container
from app.finance.access import Access
from app.finance.application import create_application
from app.http.server.listening import Server, bind, listen
from app.http.server.loop import Loop
from app.processes.stopping import stop_on_signals
from projections.engine.database import Database
from projections.finance.figures import Figures

LOOPBACK = "127.0.0.1"
FINISH_S = 5.0


def open_pages(container: Container, database: Database, port: int) -> tuple[Server, str]:
    """Return the server of the pages, which listens already, and the one-time address.

    Raises WrongSetting when the port is not available, and the error of the database when the
    finance views cannot be read.
    """
    figures = Figures(database)
    figures.require_views()
    listeners = bind(LOOPBACK, port)
    listen(listeners, LOOPBACK, port)
    address = listeners[0].getsockname()
    access = Access(address[1])
    app = create_application(
        figures, access, lambda: container.clock().date(), container.settings.currency
    )
    loop = Loop(container, app)
    server = Server(listeners, lambda: loop, container.settings, FINISH_S)
    return server, f"http://{LOOPBACK}:{address[1]}/open/{access.token}"


def serve_finance(container: Container, port: int, on_listening: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `on_listening` is given the one-time address."""
    database = container.open_finance()
    try:
        server, address = open_pages(container, database, port)
        stop = stop_on_signals()
        on_listening(address)
        server.run(stop.is_set)
    finally:
        database.close()
