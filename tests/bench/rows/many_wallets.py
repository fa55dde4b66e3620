"""Charges on a thousand wallets at once, against the same on one: what being hot costs or saves."""

from collections.abc import Iterator
from itertools import cycle
from threading import Lock
from uuid import UUID, uuid4

from app.container import Container
from domain.wallet import Deposit, Wallet
from tests.bench.crowd import crowd
from tests.bench.installation import DEPOSIT_MICROS, cause, installation
from tests.bench.measure import medians, rate
from tests.bench.row import Aim, Row
from tests.bench.rows.hot_wallet import WAITERS, charge_often

WALLETS = 1_000
CHARGES_EACH = 100
BATCH = 250
REPEATS = 5


def measure() -> Iterator[Row]:
    with installation() as container:
        wallets = [wallet for _ in range(0, WALLETS, BATCH) for wallet in _open(container)]
        ours, limit = medians(
            lambda: _charges_per_s(container, wallets),
            lambda: _charges_per_s(container, wallets[:1]),
            repeats=REPEATS,
        )
    yield Row(f"charges on {WALLETS:,} wallets or one", ours, limit, "charges/s", Aim())


def _open(container: Container) -> list[UUID]:
    wallets = [Wallet.open(uuid4(), container.settings.currency, cause()) for _ in range(BATCH)]
    for wallet in wallets:
        paid = Deposit.make(wallet.organization_id, "bench", DEPOSIT_MICROS, cause())
        wallet.deposit(paid, wallet.currency, cause())
    container.log.append(*wallets)
    return [wallet.id for wallet in wallets]


def _charges_per_s(container: Container, wallets: list[UUID]) -> float:
    """Let many threads charge, each time the wallet whose turn it is."""
    lock, order = Lock(), cycle(wallets)

    def charge() -> None:
        for _ in range(CHARGES_EACH):
            with lock:
                wallet = next(order)
            charge_often(container, wallet, 1)

    return rate(WAITERS * CHARGES_EACH, lambda: crowd(WAITERS, charge))
