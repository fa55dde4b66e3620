"""Charges on one hot wallet by many clients at once, beside one statement of plain SQL for each.

The plain side has as many connections as serve it best.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from uuid import UUID

from domain.accounts.wallet import Wallet, wallet_id
from tests.bench.crowd import crowd
from tests.bench.engine import on_postgres, peer_database_url
from tests.bench.history import new_charge
from tests.bench.installation import DEPOSIT, cause, installation
from tests.bench.measure import each_ms, in_turns, percentile, seconds
from tests.bench.peers import plain_charges
from tests.bench.peers.plain_charges import Result, Task, result_of
from tests.bench.row import Aim, Row
from tests.installation import Parts

WAITERS = 64
CHARGES_EACH = 200  # So that starting the threads counts little.
PLAIN_EACH = 100
REPEATS = 3


@contextmanager
def prepared() -> Iterator[tuple[Parts, UUID, Task | None]]:
    """Open a wallet, and find the pool that suits one statement for each charge."""
    with installation() as container:
        yield (
            container,
            wallet_id(container.organization(DEPOSIT)),
            _plain() if on_postgres() else None,
        )


def measure(container: Parts, wallet: UUID, task: Task | None) -> Iterator[Row]:
    if task is None:
        return
    sides = in_turns(lambda: _charged(container, wallet), lambda: result_of(task), repeats=REPEATS)
    rates = [sorted(each.per_s for each in side)[REPEATS // 2] for side in sides]
    p99s = [sorted(each.p99_ms for each in side)[REPEATS // 2] for side in sides]
    name = "charges on a hot wallet, beside one statement each"
    yield Row(name, rates[0], rates[1], "charges/s", Aim(ratio_min=2))
    yield Row(f"{name}, p99 of {WAITERS} clients", p99s[0], p99s[1], "ms", Aim(ratio_max=1.5))


def _plain() -> Task:
    url = peer_database_url()
    plain_charges.make(url)
    return plain_charges.best(Task(url, 0, WAITERS, PLAIN_EACH))


def _charged(container: Parts, wallet: UUID) -> Result:
    times_ms: list[float] = []

    def charge() -> None:
        change = partial(Wallet.book, entries=[new_charge()], cause=cause())
        container.committer.commit(wallet, change)

    took_s = seconds(lambda: crowd(WAITERS, lambda: times_ms.extend(each_ms(CHARGES_EACH, charge))))
    return Result(len(times_ms) / took_s, percentile(times_ms, 99))
