"""Charges in plain SQL by many clients: each in one statement, or all of 5 ms in one.

`python -m tests.bench.peers.plain_charges` reads a `Task` as JSON from standard input and prints
what came of it. Each client charges the wallets in turns, its next one when the last is paid.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Literal
from uuid import UUID, uuid4

import asyncpg
import msgspec
import psycopg
import uvloop

from tests.bench.measure import percentile

AMOUNT = 5_000
COLLECT_S = 0.005
QUERIES_MAX = 2**31 - 1  # No connection is given up for its age.
TASK_S_MAX = 120.0
POOLS = (1, 2, 4, 8, 16)

TABLES = """
CREATE TABLE plain_wallets (id integer PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE plain_charges (
    id uuid PRIMARY KEY, wallet_id integer NOT NULL, amount bigint NOT NULL,
    balance bigint NOT NULL, reference uuid NOT NULL
);
INSERT INTO plain_wallets SELECT id, 1000000000000 FROM generate_series(0, {wallets} - 1) id;
"""
ONE = """
WITH paid AS (
    UPDATE plain_wallets SET balance = balance - $3 WHERE id = $2 AND balance >= $3
    RETURNING balance
)
INSERT INTO plain_charges SELECT $1, $2, $3, balance, $4 FROM paid RETURNING 1
"""
# All of one wallet; where the money does not suffice for all, each is tried alone.
ALL = """
WITH asked AS (
    SELECT * FROM unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS a (id, reference, place)
), paid AS (
    UPDATE plain_wallets SET balance = balance - $4 * (SELECT count(*) FROM asked)
    WHERE id = $1 AND balance >= $4 * (SELECT count(*) FROM asked) RETURNING balance
)
INSERT INTO plain_charges
SELECT asked.id, $1, $4, balance + $4 * ((SELECT count(*) FROM asked) - place), reference
FROM asked, paid RETURNING 1
"""

Pay = Callable[[int, UUID], Awaitable[bool]]


class Task(msgspec.Struct, frozen=True):
    """Who charges how often, over how many connections; `batched` is for one wallet."""

    database_url: str
    style: Literal["one", "batched"]
    connections: int
    clients: int
    wallets: int
    charges_each: int


class Result(msgspec.Struct, frozen=True):
    """The rate of all clients together, the time of one charge, and the client's processor time."""

    per_s: float
    p99_ms: float
    spent_s: float


def make(url: str, wallets: int) -> None:
    """Make the tables with so many full wallets."""
    with psycopg.connect(url) as connection:
        connection.execute(TABLES.format(wallets=wallets))


def result_of(task: Task) -> Result:
    """Do it in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=msgspec.json.encode(task),
        stdout=subprocess.PIPE,
        timeout=TASK_S_MAX,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Result)


class Batches:
    """Collects charges of one wallet for a while, then pays them together."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._asked: list[tuple[UUID, asyncio.Future[bool]]] = []
        self._flushing: asyncio.Task[None] | None = None

    async def pay(self, wallet: int, reference: UUID) -> bool:
        """Wait until the batch is paid that this charge gets into."""
        loop = asyncio.get_running_loop()
        paid: asyncio.Future[bool] = loop.create_future()
        self._asked.append((reference, paid))
        if self._flushing is None:
            self._flushing = loop.create_task(self._flush(wallet))
        return await paid

    async def _flush(self, wallet: int) -> None:
        while self._asked:
            await asyncio.wait([self._asked[0][1]], timeout=COLLECT_S)
            asked, self._asked = self._asked, []
            references = [reference for reference, _ in asked]
            ids = [uuid4() for _ in asked]
            rows = await self._pool.fetch(ALL, wallet, ids, references, AMOUNT)
            for reference, paid in asked:
                paid.set_result(bool(rows) or await pay_one(self._pool, wallet, reference))
        self._flushing = None


async def pay_one(pool: asyncpg.Pool, wallet: int, reference: UUID) -> bool:
    """Charge in one statement."""
    return await pool.fetchval(ONE, uuid4(), wallet, AMOUNT, reference) is not None


async def run(task: Task) -> Result:
    """Let all clients charge; what a client does beside it counts as well."""
    pool = await asyncpg.create_pool(
        task.database_url,
        min_size=task.connections,
        max_size=task.connections,
        max_queries=QUERIES_MAX,
        max_inactive_connection_lifetime=0,
        reset=_leave_as_is,
    )
    pay: Pay = Batches(pool).pay if task.style == "batched" else _one_by_one(pool)
    times_ms: list[float] = []
    turns = count()
    async with pool:
        await pay(0, uuid4())  # Its statement is prepared.
        began_s, before_s = time.perf_counter(), time.process_time()
        clients = [_charge(pay, task, turns, times_ms) for _ in range(task.clients)]
        await asyncio.gather(*clients)
        took_s, spent_s = time.perf_counter() - began_s, time.process_time() - before_s
    return Result(len(times_ms) / took_s, percentile(times_ms, 99), spent_s)


def _one_by_one(pool: asyncpg.Pool) -> Pay:
    async def pay(wallet: int, reference: UUID) -> bool:
        return await pay_one(pool, wallet, reference)

    return pay


async def _charge(pay: Pay, task: Task, turns: "count[int]", times_ms: list[float]) -> None:
    for _ in range(task.charges_each):
        asked_s = time.perf_counter()
        assert await pay(next(turns) % task.wallets, uuid4())
        times_ms.append((time.perf_counter() - asked_s) * 1_000)


async def _leave_as_is(_: asyncpg.Connection) -> None:
    """Spare the statement that undoes settings: there are none."""


def best(task: Task) -> Task:
    """Try pools of several sizes; return the task with the one whose rate is highest."""
    tasks = [msgspec.structs.replace(task, connections=size) for size in POOLS]
    return max(tasks, key=lambda each: result_of(each).per_s)


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    print(msgspec.json.encode(uvloop.run(run(asked))).decode())
