"""Wallets with a long past, against the same on a young one: to charge, to load, and in memory."""

import tracemalloc
from collections.abc import Iterator
from uuid import UUID

from app.bootstrap.container import Container
from domain.accounts.wallet import Wallet, wallet_id
from tests.bench.history import grow_wallet
from tests.bench.installation import installation, new_organization
from tests.bench.measure import medians, seconds
from tests.bench.row import Aim, Row
from tests.bench.rows.hot_wallet import charge_often
from tests.bench.sizes import events

YOUNG_EVENTS = 10
CHARGES = 20
REPEATS = 61
MS = 1_000
KB = 1_024


def measure() -> Iterator[Row]:
    for old_events in (1_000, events()):
        with installation() as container:
            yield from _compared(container, old_events)


def _compared(container: Container, old_events: int) -> Iterator[Row]:
    old, young = _wallet(container, old_events), _wallet(container, YOUNG_EVENTS)
    aim = Aim(ratio_max=1.2)
    for name, unit, measured in (
        ("charge", "ms", _charge_ms),
        ("load", "ms", _load_ms),
        ("memory of a load", "KB", _load_kb),
    ):
        ours, limit = medians(
            lambda measured=measured: measured(container, old),  # type: ignore[misc]  # a default binds it now
            lambda measured=measured: measured(container, young),  # type: ignore[misc]  # as above
            repeats=REPEATS,
        )
        yield Row(f"{name}, wallet of {old_events:,} events or few", ours, limit, unit, aim)


def _wallet(container: Container, events: int) -> UUID:
    organization = new_organization(container)
    grow_wallet(container.log, organization, events)
    return wallet_id(organization)


def _charge_ms(container: Container, wallet: UUID) -> float:
    """Return the time of one charge, once the committer holds the wallet."""
    charge_often(container, wallet, 1)
    return seconds(lambda: charge_often(container, wallet, CHARGES)) / CHARGES * MS


def _load_ms(container: Container, wallet: UUID) -> float:
    """Return the time that another process needs to load the wallet."""
    return seconds(lambda: container.log.get(Wallet, wallet)) * MS


def _load_kb(container: Container, wallet: UUID) -> float:
    """Return how much memory of Python it takes at most meanwhile."""
    tracemalloc.start()
    try:
        container.log.get(Wallet, wallet)
        return tracemalloc.get_traced_memory()[1] / KB
    finally:
        tracemalloc.stop()
