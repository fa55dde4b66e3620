"""Charges on a wallet with a long past, against the same on a young one."""

from collections.abc import Iterator
from uuid import UUID

from app.container import Container
from domain.wallet import wallet_id
from tests.bench.history import grow_wallet
from tests.bench.installation import installation, new_organization
from tests.bench.measure import medians, seconds
from tests.bench.row import Aim, Row
from tests.bench.rows.hot_wallet import charge_often

OLD_EVENTS = 100_000
YOUNG_EVENTS = 10
CHARGES = 20
REPEATS = 61
MS = 1_000


def measure() -> Iterator[Row]:
    with installation() as container:
        old = _wallet(container, OLD_EVENTS)
        ours, limit = medians(
            lambda: _charge_ms(container, old),
            lambda: _charge_ms(container, _wallet(container, YOUNG_EVENTS)),
            repeats=REPEATS,
        )
    name = f"charge, wallet of {OLD_EVENTS:,} events or {YOUNG_EVENTS}"
    yield Row(name, ours, limit, "ms", Aim(ratio_max=1.2))


def _wallet(container: Container, events: int) -> UUID:
    organization = new_organization(container)
    grow_wallet(container.log, organization, events)
    return wallet_id(organization)


def _charge_ms(container: Container, wallet: UUID) -> float:
    """Return the time of one charge, once the committer holds the wallet."""
    charge_often(container, wallet, 1)
    return seconds(lambda: charge_often(container, wallet, CHARGES)) / CHARGES * MS
