"""What is measured on: SQLite, or with DATABASE=postgresql private servers that keep their word."""

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
    return _databases().new() if on_postgres() else f"sqlite:///{directory}/service.db"


def broker_settings() -> Mapping[str, str]:
    """Return what processes need to share queues; nothing where one process does everything."""
    return {"BROKER_URL": _rabbit().new_vhost()} if on_postgres() else {}


@cache
def _databases() -> Databases:
    server = PostgresServer(DURABLE)
    atexit.register(server.close)
    databases = Databases(server.url())
    atexit.register(databases.close)
    return databases


@cache
def _rabbit() -> RabbitServer:
    server = RabbitServer()
    atexit.register(server.close)
    return server
