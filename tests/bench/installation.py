"""A whole installation on the measured database, with organizations that have money."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from app.bootstrap.container import Container
from app.processes.memory import settle_memory
from app.processes.migrate import migrate
from app.settings import Settings
from domain.cause import Cause, utc_now
from tests.bench.engine import database_url

PRICE_MICROS = 5_000
BASE_PLAN = "bench-base"
DEPOSIT_MICROS = 1_000_000_000_000  # Nobody runs out of money while being measured.


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


@contextmanager
def installation() -> Iterator[Container]:
    """Make an installation with empty tables and drop it afterwards."""
    with TemporaryDirectory(prefix="bench-") as directory:
        container = Container(Settings.from_env(environment(Path(directory))))
        migrate(container)
        settle_memory()  # As every process of the service does when it starts.
        try:
            yield container
        finally:
            container.close()


def new_organization(container: Container, name: str = "Bench Telecom") -> UUID:
    """Register an organization with a full wallet."""
    made = container.accounts.register_organization(
        cause(), name=name, price_micros=None, monthly_link_fee_micros=0, with_wallet=True
    )
    container.accounts.deposit(made.id, DEPOSIT_MICROS, "bench", cause())
    return made.id


def cause() -> Cause:
    """Return the cause of whatever a measurement asks for."""
    return Cause(utc_now(), "bench")
