"""Charges on a thousand wallets at once: what one costs, and what being hot costs or saves."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from threading import Lock
from uuid import UUID, uuid4

from app.bootstrap.container import Container
from domain.accounts.wallet import Deposit, Wallet
from tests.bench.crowd import crowd
from tests.bench.engine import on_postgres, peer_server_pids, server_pids
from tests.bench.installation import DEPOSIT_MICROS, cause, installation
from tests.bench.measure import medians, rate
from tests.bench.peers.plain_charges import Task, result_of
from tests.bench.processor import US, spent_s, us_each
from tests.bench.row import Aim, Row
from tests.bench.rows.hot_wallet import WAITERS, best_plain, charge_often

WALLETS = 1_000
CLIENTS = 8
CHARGES_EACH = 100
CLIENT_CHARGES_EACH = 500
BATCH = 250
REPEATS = 3


@contextmanager
def prepared() -> Iterator[tuple[Container, list[UUID], Task | None]]:
    """Open the wallets, and find the pool that suits one statement for each charge."""
    with installation() as container:
        wallets = [wallet for _ in range(0, WALLETS, BATCH) for wallet in _open(container)]
        plain = best_plain(CLIENTS, WALLETS, CLIENT_CHARGES_EACH) if on_postgres() else None
        yield container, wallets, plain


def measure(container: Container, wallets: list[UUID], plain: Task | None) -> Iterator[Row]:
    ours, limit = medians(
        lambda: _charges_per_s(container, wallets),
        lambda: _charges_per_s(container, wallets[:1]),
        repeats=REPEATS,
    )
    yield Row(f"charges on {WALLETS:,} wallets or one", ours, limit, "charges/s", Aim())
    if plain is not None:
        yield _beside_one_statement(container, wallets, plain)


def _beside_one_statement(container: Container, wallets: list[UUID], task: Task) -> Row:
    ours, limit = medians(lambda: _us(container, wallets), lambda: _plain_us(task), repeats=REPEATS)
    name = f"charge, {WALLETS:,} wallets, {CLIENTS} clients, beside one statement each"
    return Row(name, ours, limit, "µs", Aim(ratio_max=0.9))


def _open(container: Container) -> list[UUID]:
    wallets = [Wallet.open(uuid4(), container.settings.currency, cause()) for _ in range(BATCH)]
    for wallet in wallets:
        paid = Deposit.make(wallet.organization_id, "bench", DEPOSIT_MICROS, cause())
        wallet.deposit(paid, wallet.currency, cause())
    container.log.append(*wallets)
    return [wallet.id for wallet in wallets]


def _charges_per_s(container: Container, wallets: list[UUID]) -> float:
    return rate(WAITERS * CHARGES_EACH, lambda: _charge(container, wallets, WAITERS, CHARGES_EACH))


def _us(container: Container, wallets: list[UUID]) -> float:
    """Return the processor time of one charge, with that of the database."""
    pids, count = [os.getpid(), *server_pids().values()], CLIENTS * CLIENT_CHARGES_EACH
    return us_each(count, pids, lambda: _charge(container, wallets, CLIENTS, CLIENT_CHARGES_EACH))


def _plain_us(task: Task) -> float:
    pids = peer_server_pids().values()
    before_s = spent_s(pids)
    in_client_s = result_of(task).spent_s
    return (spent_s(pids) - before_s + in_client_s) / (CLIENTS * CLIENT_CHARGES_EACH) * US


def _charge(container: Container, wallets: list[UUID], clients: int, each: int) -> None:
    """Let so many threads charge, each time the wallet whose turn it is."""
    lock, order = Lock(), cycle(wallets)

    def charge() -> None:
        for _ in range(each):
            with lock:
                wallet = next(order)
            charge_often(container, wallet, 1)

    crowd(clients, charge)
