"""What the bench runs on: SQLite, or with DATABASE=postgresql private durable servers."""

import atexit
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.servers.databases import Databases
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitServer

# As Debian ships it: every commit is on the disk before it is answered.
DURABLE = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on", "shared_buffers": "512MB"}


def on_postgres() -> bool:
    """Tell whether PostgreSQL is measured."""
    return os.environ.get("DATABASE", "sqlite") == "postgresql"


def database_url(directory: Path) -> str:
    """Return the URL of a new database."""
    return _databases("ours").new() if on_postgres() else f"sqlite:///{directory}/service.db"


def new_databases() -> Databases:
    """Return what makes databases and copies of them, on the server of `database_url`."""
    return _databases("ours")


def broker_settings() -> Mapping[str, str]:
    """Return what processes need to share queues; nothing where one process does everything."""
    return {"BROKER_URL": _rabbit().new_vhost()} if on_postgres() else {}


def peer_database_url() -> str:
    """Return the URL of a new database of a peer, on a server that only peers use."""
    return _databases("peers").new()


def server_pids() -> Mapping[str, int]:
    """Return the processes of the servers that we stand on, by what they are."""
    if not on_postgres():
        return {}
    return {"postgresql": _postgres("ours").pid, "rabbitmq": _rabbit().pid}


def peer_server_pids() -> Mapping[str, int]:
    """Return those that the peers stand on."""
    return {"postgresql": _postgres("peers").pid}


@cache
def _databases(whose: str) -> Databases:
    databases = Databases(_postgres(whose).url())
    atexit.register(databases.close)
    return databases


@cache
def _postgres(whose: str) -> PostgresServer:  # noqa: ARG001  # One for each.
    server = PostgresServer(DURABLE)
    atexit.register(server.close)
    return server


@cache
def _rabbit() -> RabbitServer:
    server = RabbitServer()
    atexit.register(server.close)
    return server
