"""Charges on one hot wallet by several processes at once, against a row that is updated."""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from time import perf_counter
from uuid import UUID

import msgspec

from app.bootstrap.container import Container
from app.settings import Settings
from domain.accounts.wallet import wallet_id
from tests.bench.crowd import crowd
from tests.bench.installation import installation, new_organization
from tests.bench.limits import plain
from tests.bench.measure import each_ms, medians, percentile, rate
from tests.bench.row import Aim, Row
from tests.bench.rows.hot_wallet import NAME, charge_often

PROCESSES = 4
WAITERS = 16
CHARGES_EACH = 300
CONNECTIONS = 8
PLAIN_EACH = 600
REPEATS = 5
LIMIT_S = 120


class Task(msgspec.Struct):
    """What each of the processes does."""

    database_url: str
    wallet: UUID
    charges_each: int


def measure() -> Iterator[Row]:
    times_ms: list[float] = []
    with installation() as container:
        wallet, limit_wallet = wallet_id(new_organization(container)), plain.Wallet(container)
        task = Task(container.settings.database_url, wallet, CHARGES_EACH)
        ours, limit = medians(
            lambda: _by_processes(task, times_ms),
            lambda: rate(
                CONNECTIONS * PLAIN_EACH,
                lambda: crowd(CONNECTIONS, lambda: limit_wallet.charge_often(PLAIN_EACH)),
            ),
            repeats=REPEATS,
        )
    name = f"{NAME} by {PROCESSES} processes"
    yield Row(name, ours, limit, "charges/s", Aim())
    # By the limit's rate, so many who wait for one row would each wait so long.
    yield Row(
        f"one of their {PROCESSES * WAITERS} clients, p99",
        percentile(times_ms, 99),
        PROCESSES * WAITERS / limit * 1_000,
        "ms",
        Aim(),
    )


def _by_processes(task: Task, times_ms: list[float]) -> float:
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
    replies = []
    for each in started:
        assert each.stdout is not None
        replies.append(each.stdout.readline())  # Once its last charge is made.
    took_s = perf_counter() - began
    for each, reply in zip(started, replies, strict=True):
        assert each.wait(LIMIT_S) == 0
        times_ms += msgspec.json.decode(reply, type=list[float])
    return PROCESSES * WAITERS * task.charges_each / took_s


def work(task: Task) -> None:
    """Charge once, say so, wait for the word, then charge by many threads and tell their times."""
    times_ms: list[float] = []
    container = Container(Settings.from_env({"DATABASE_URL": task.database_url}))
    one = partial(charge_often, container, task.wallet, 1)
    one()
    print("ready", flush=True)
    sys.stdin.readline()
    crowd(WAITERS, lambda: times_ms.extend(each_ms(task.charges_each, one)))
    print(msgspec.json.encode(times_ms).decode(), flush=True)
    container.close()


if __name__ == "__main__":
    work(msgspec.json.decode(sys.argv[1], type=Task))
