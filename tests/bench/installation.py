"""A whole installation on the measured database, with organizations that have money."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from app.processes.memory import settle_memory
from app.processes.migrate import migrate
from app.settings import Settings
from domain.accounts.organization import SCOPES
from domain.cause import Cause, utc_now
from tests.bench.engine import database_url
from tests.bench.server import HOST
from tests.installation import Parts

BASE_PLAN = "bench-base"
DEPOSIT = "1000000"  # Nobody runs out of money while being measured.


def environment(directory: Path, **more: str) -> dict[str, str]:
    """Return settings of an installation: lookups cost money, caches are on, links can be sold."""
    return {
        "DATABASE_URL": database_url(directory),
        "SIGNING_KEYS": f"{directory}/keys",
        "PRICE_PER_LOOKUP": "0.005",
        "NETWORK_BASE_PLAN": BASE_PLAN,
        "TOKEN_ISSUER": "https://bench.example",  # Of tokens before a server.
        **more,
    }


def opened(settings: Mapping[str, str]) -> Parts:
    """Make the tables and keys of an installation, and return its parts."""
    container = Parts(Settings.from_env(settings))
    migrate(container)
    container.keys.ensure()
    return container


@contextmanager
def installation() -> Iterator[Parts]:
    """Make an installation with empty tables and drop it afterwards."""
    with TemporaryDirectory(prefix="bench-") as directory:
        container = opened(environment(Path(directory)))
        settle_memory()  # As every process of the service does when it starts.
        try:
            yield container
        finally:
            container.close()


class Partner(NamedTuple):
    """An organization with a full wallet, a client that may do everything, and its token."""

    organization: UUID
    client_id: str
    token: str


def new_partner(container: Parts) -> Partner:
    organization = container.organization(DEPOSIT)
    client_id = container.client(organization)
    return Partner(organization, client_id, container.issuer.issue(client_id, organization, SCOPES))


class Connection:
    """A kept connection of a partner."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = HTTPConnection(HOST, port, timeout=30)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.close = self._connection.close

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request that must succeed; return the data of its reply."""
        sent = None if body is None else msgspec.json.encode(body)
        self._connection.request(method, path, sent, self._headers)
        reply = self._connection.getresponse()
        read = reply.read()
        assert reply.status in {200, 201, 202}, read
        return msgspec.json.decode(read)["data"]


def cause() -> Cause:
    """Return the cause of whatever a measurement asks for."""
    return Cause(utc_now(), "bench")
