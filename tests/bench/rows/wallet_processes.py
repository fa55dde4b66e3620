"""Charges on one hot wallet by several processes at once, against a row that is updated."""

import subprocess
import sys
from collections.abc import Iterator
from time import perf_counter
from uuid import UUID

import msgspec

from app.container import Container
from app.settings import Settings
from domain.wallet import wallet_id
from tests.bench.crowd import crowd
from tests.bench.engine import on_postgres
from tests.bench.installation import installation, new_organization
from tests.bench.limits import plain
from tests.bench.measure import medians, rate
from tests.bench.row import Aim, Row
from tests.bench.rows.hot_wallet import CONNECTIONS, PLAIN_EACH, charge_often

PROCESSES = 4
WAITERS = 16
CHARGES_EACH = 100
REPEATS = 5
LIMIT_S = 120


class Task(msgspec.Struct):
    """What each of the processes does."""

    database_url: str
    wallet: UUID
    charges_each: int


def measure() -> Iterator[Row]:
    with installation() as container:
        wallet, limit_wallet = wallet_id(new_organization(container)), plain.Wallet(container)
        task = Task(container.settings.database_url, wallet, CHARGES_EACH)
        ours, limit = medians(
            lambda: _by_processes(task),
            lambda: rate(
                CONNECTIONS * PLAIN_EACH,
                lambda: crowd(CONNECTIONS, lambda: limit_wallet.charge_often(PLAIN_EACH)),
            ),
            repeats=REPEATS,
        )
    aim = Aim(ratio_min=3) if on_postgres() else Aim()
    yield Row(f"the same over {PROCESSES} processes", ours, limit, "charges/s", aim)


def _by_processes(task: Task) -> float:
    """Start all, let them begin together, and return what they reach together."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", __name__, msgspec.json.encode(task).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]
    for each in started:
        assert each.stdout is not None
        each.stdout.readline()  # It has charged once: its connections are open.
    began = perf_counter()
    for each in started:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
        each.stdin.flush()
    for each in started:
        assert each.wait(LIMIT_S) == 0
    return PROCESSES * WAITERS * task.charges_each / (perf_counter() - began)


def work(task: Task) -> None:
    """Charge once, say so, wait for the word, then charge as often as told by many threads."""
    container = Container(Settings.from_env({"DATABASE_URL": task.database_url}))
    charge_often(container, task.wallet, 1)
    print("ready", flush=True)
    sys.stdin.readline()
    crowd(WAITERS, lambda: charge_often(container, task.wallet, task.charges_each))
    container.close()


if __name__ == "__main__":
    work(msgspec.json.decode(sys.argv[1], type=Task))
