"""Charges on one hot wallet by many clients at once, beside the same in plain SQL.

On PostgreSQL that is one statement for each charge, over as many connections as serve it best, and
one statement for all charges of 5 ms; on SQLite a transaction for each, one after the other.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import msgspec

from app.bootstrap.container import Container
from domain.accounts.wallet import Wallet, wallet_id
from tests.bench.crowd import crowd
from tests.bench.engine import on_postgres, peer_database_url
from tests.bench.history import new_charge
from tests.bench.installation import cause, installation, new_organization
from tests.bench.limits import plain_wallet
from tests.bench.measure import each_ms, in_turns, percentile, rate, seconds
from tests.bench.peers import plain_charges
from tests.bench.peers.plain_charges import Result, Task, result_of
from tests.bench.row import Aim, Row

WAITERS = 64
CHARGES_EACH = 200  # So that starting the threads counts little.
PLAIN_EACH = 100
SQLITE_CHARGES = 4_800
REPEATS = 3
NAME = "charges on a hot wallet"


@contextmanager
def prepared() -> Iterator[tuple[Container, UUID, Task | None]]:
    """Open a wallet, and find the pool that suits one statement for each charge."""
    with installation() as container:
        wallet = wallet_id(new_organization(container))
        yield container, wallet, best_plain(WAITERS, 1, PLAIN_EACH) if on_postgres() else None


def measure(container: Container, wallet: UUID, task: Task | None) -> Iterator[Row]:
    if task is None:
        yield _on_sqlite(container, wallet)
        return
    batched = msgspec.structs.replace(task, style="batched", connections=1)
    ours, one, all_at_once = in_turns(
        lambda: _charged(container, wallet),
        lambda: result_of(task),
        lambda: result_of(batched),
        repeats=REPEATS,
    )
    beside = "beside one statement each"
    rates = [_middle(each, "per_s") for each in (ours, one, all_at_once)]
    p99s = [_middle(each, "p99_ms") for each in (ours, one)]
    yield Row(f"{NAME}, {beside}", *rates[:2], "charges/s", Aim(ratio_min=2))
    yield Row(f"one of its {WAITERS} clients, {beside}, p99", *p99s, "ms", Aim(ratio_max=1.5))
    name = f"{NAME}, beside one statement for all of 5 ms"
    yield Row(name, rates[0], rates[2], "charges/s", Aim(ratio_min=0.7))


def best_plain(clients: int, wallets: int, charges_each: int) -> Task:
    """Make wallets in plain SQL; return what is measured, with the pool that suits it best."""
    url = peer_database_url()
    plain_charges.make(url, wallets)
    tried = Task(url, "one", 0, clients, wallets, charges_each // 2)
    return msgspec.structs.replace(plain_charges.best(tried), charges_each=charges_each)


def charge_often(container: Container, wallet: UUID, count: int) -> None:
    """Charge a wallet, one commit after the other."""
    for _ in range(count):
        change = partial(Wallet.charge, charge=new_charge(), cause=cause())
        container.committer.commit(wallet, change)


def _charged(container: Container, wallet: UUID) -> Result:
    times_ms: list[float] = []
    one = partial(charge_often, container, wallet, 1)
    took_s = seconds(lambda: crowd(WAITERS, lambda: times_ms.extend(each_ms(CHARGES_EACH, one))))
    return Result(len(times_ms) / took_s, percentile(times_ms, 99), 0.0)


def _middle(results: list[Result], name: str) -> float:
    return sorted(getattr(each, name) for each in results)[len(results) // 2]


def _on_sqlite(container: Container, wallet: UUID) -> Row:
    with TemporaryDirectory(prefix="bench-") as directory:
        file = Path(directory) / "plain.db"
        plain_wallet.create(file)
        ours, limit = in_turns(
            lambda: _charged(container, wallet),
            lambda: Result(
                rate(SQLITE_CHARGES, lambda: plain_wallet.charge_often(file, SQLITE_CHARGES)), 0, 0
            ),
            repeats=REPEATS,
        )
    rates = [_middle(each, "per_s") for each in (ours, limit)]
    return Row(f"{NAME}, beside a transaction each", *rates, "charges/s", Aim(ratio_min=2))
