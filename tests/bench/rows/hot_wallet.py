"""Charges on one hot wallet: the committer with many who wait, against a row that is updated."""

from collections.abc import Iterator
from functools import partial
from uuid import UUID

from app.container import Container
from domain.wallet import Wallet, wallet_id
from tests.bench.crowd import crowd
from tests.bench.history import new_charge
from tests.bench.installation import cause, installation, new_organization
from tests.bench.limits import plain as plain_limits
from tests.bench.measure import medians, rate
from tests.bench.row import Aim, Row

WAITERS = 64
CHARGES_EACH = 400  # So that starting the threads counts little.
CONNECTIONS = 8
PLAIN_EACH = 600
REPEATS = 5


def measure() -> Iterator[Row]:
    with installation() as container:
        wallet = wallet_id(new_organization(container))
        plain = plain_limits.Wallet(container)
        ours, limit = medians(
            lambda: rate(
                WAITERS * CHARGES_EACH,
                lambda: crowd(WAITERS, lambda: charge_often(container, wallet, CHARGES_EACH)),
            ),
            lambda: rate(
                CONNECTIONS * PLAIN_EACH,
                lambda: crowd(CONNECTIONS, lambda: plain.charge_often(PLAIN_EACH)),
            ),
            repeats=REPEATS,
        )
    yield Row("charges on a hot wallet", ours, limit, "charges/s", Aim(ratio_min=5))


def charge_often(container: Container, wallet: UUID, count: int) -> None:
    """Charge a wallet, one commit after the other."""
    for _ in range(count):
        change = partial(Wallet.charge, charge=new_charge(), cause=cause())
        container.committer.commit(wallet, change)
