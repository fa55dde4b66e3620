"""Charges of one wallet in plain SQL by many clients, each in one statement.

`python -m tests.bench.peers.plain_charges` reads a `Task` as JSON from standard input and prints
what came of it. Each client makes its next charge when the last is paid.
"""

import asyncio
import subprocess
import sys
import time
from uuid import uuid4

import asyncpg
import msgspec
import psycopg
import uvloop

from tests.bench.measure import percentile

AMOUNT = 5_000
QUERIES_MAX = 2**31 - 1  # No connection is given up for its age.
TASK_S_MAX = 120.0
POOLS = (1, 2, 4, 8, 16)

TABLES = """
CREATE TABLE plain_wallets (id integer PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE plain_charges (
    id uuid PRIMARY KEY, wallet_id integer NOT NULL, amount bigint NOT NULL,
    balance bigint NOT NULL, reference uuid NOT NULL
);
INSERT INTO plain_wallets VALUES (0, 1000000000000);
"""
CHARGE = """
WITH paid AS (
    UPDATE plain_wallets SET balance = balance - $2 WHERE id = 0 AND balance >= $2
    RETURNING balance
)
INSERT INTO plain_charges SELECT $1, 0, $2, balance, $3 FROM paid RETURNING 1
"""


class Task(msgspec.Struct, frozen=True):
    """Who charges how often, over how many connections."""

    database_url: str
    connections: int
    clients: int
    charges_each: int


class Result(msgspec.Struct, frozen=True):
    """The rate of all clients together, and the time of one charge."""

    per_s: float
    p99_ms: float


def make(url: str) -> None:
    """Make the tables with a full wallet."""
    with psycopg.connect(url) as connection:
        connection.execute(TABLES)


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


def best(task: Task) -> Task:
    """Try pools of several sizes; return the task with the one whose rate is highest."""
    tasks = [msgspec.structs.replace(task, connections=size) for size in POOLS]
    return max(tasks, key=lambda each: result_of(each).per_s)


async def run(task: Task) -> Result:
    """Let all clients charge."""
    times_ms: list[float] = []
    async with asyncpg.create_pool(
        task.database_url,
        min_size=task.connections,
        max_size=task.connections,
        max_queries=QUERIES_MAX,
        max_inactive_connection_lifetime=0,
        reset=_leave_as_is,
    ) as pool:
        await _pay(pool)  # Its statement is prepared.
        began_s = time.perf_counter()
        await asyncio.gather(*(_charge(pool, task, times_ms) for _ in range(task.clients)))
        took_s = time.perf_counter() - began_s
    return Result(len(times_ms) / took_s, percentile(times_ms, 99))


async def _charge(pool: asyncpg.Pool, task: Task, times_ms: list[float]) -> None:
    for _ in range(task.charges_each):
        asked_s = time.perf_counter()
        await _pay(pool)
        times_ms.append((time.perf_counter() - asked_s) * 1_000)


async def _pay(pool: asyncpg.Pool) -> None:
    assert await pool.fetchval(CHARGE, uuid4(), AMOUNT, uuid4()) is not None


async def _leave_as_is(_: asyncpg.Connection) -> None:
    """Spare the statement that undoes settings: there are none."""


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    print(msgspec.json.encode(uvloop.run(run(asked))).decode())
