"""No thread asks a pool for a connection while it holds one of the same pool.

If all threads did, each would hold what another one waits for: pools are small.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import local
from typing import Any

import pytest

from app.adapters.postgres.database import FixedPool
from app.adapters.postgres.log import Datastore

ROOT = Path(__file__).parents[1]
LENDERS = tuple(
    str(ROOT / each)
    for each in (
        "app/adapters/postgres/log.py",
        "app/adapters/postgres/database.py",
        "projections/engine/database.py",
        "projections/engine/hot_reads.py",
        "tests/lending.py",
    )
)
# A command of one thread, which compares two states. Tests may hold what they look at.
EXEMPT = (str(ROOT / "projections/engine/verify.py"), str(ROOT / "tests"))
SHOWN = 12

Calls = list[tuple[str, int]]  # Files and lines.


class Lending:
    """What each thread holds, and who asked for a second one."""

    def __init__(self) -> None:
        self._held = local()
        self.second: list[str] = []

    def take(self, pool: object) -> None:
        """Note that this thread is about to wait for a connection."""
        held, calls = self._of_thread(), _calls()
        first = next((calls for lender, calls in held if lender == id(pool)), None)
        if first is not None:
            self.second.append(
                f"holds one since {_shown(first)}, asks for another at {_shown(calls)}"
            )
        borrower = next((file for file, _ in calls if not file.startswith(LENDERS)), "")
        held.append((0 if borrower.startswith(EXEMPT) else id(pool), calls))

    def give(self, pool: object) -> None:
        """Note that this thread has given one back, or has not got it."""
        held = self._of_thread()
        for lender in (id(pool), 0):
            for each in held:
                if each[0] == lender:  # Else another thread has taken it.
                    held.remove(each)
                    return

    def _of_thread(self) -> list[tuple[int, Calls]]:
        held: list[tuple[int, Calls]] | None = getattr(self._held, "pools", None)
        if held is None:
            held = self._held.pools = []
        return held


@pytest.fixture(autouse=True)
def nobody_waits_for_a_second_connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look at all pools of this process."""
    lending = Lending()
    _watch_engines(lending, monkeypatch)
    _watch_log(lending, monkeypatch)
    yield
    assert not lending.second, lending.second[0]


def _watch_engines(lending: Lending, monkeypatch: pytest.MonkeyPatch) -> None:
    get, give = FixedPool._do_get, FixedPool._do_return_conn  # noqa: SLF001  # There is no event.
    asking = local()

    def take(pool: FixedPool) -> Any:
        if getattr(asking, "pool", None) is pool:  # It asks itself again when another was first.
            return get(pool)
        lending.take(pool)
        asking.pool = pool
        try:
            return get(pool)
        except BaseException:
            lending.give(pool)
            raise
        finally:
            asking.pool = None

    def give_back(pool: FixedPool, record: Any) -> None:
        lending.give(pool)
        give(pool, record)

    # In this order: a thread of the service that takes and gives between the two holds nothing.
    monkeypatch.setattr(FixedPool, "_do_return_conn", give_back)
    monkeypatch.setattr(FixedPool, "_do_get", take)


def _watch_log(lending: Lending, monkeypatch: pytest.MonkeyPatch) -> None:
    lend = Datastore.get_connection

    @contextmanager
    def get_connection(store: Datastore) -> Iterator[Any]:
        lending.take(store)
        try:
            with lend(store) as connection:
                yield connection
        finally:
            lending.give(store)

    monkeypatch.setattr(Datastore, "get_connection", get_connection)


@cache
def _is_ours(file: str) -> bool:
    return file.startswith(str(ROOT)) and "site-packages" not in file


def _calls() -> Calls:
    """Return the files and lines of ours that lead to this call, the last ones, first the last."""
    calls: Calls = []
    frame: Any = sys._getframe(2)  # noqa: SLF001  # A whole stack would be read from files.
    while frame is not None and len(calls) < SHOWN:
        if _is_ours(name := frame.f_code.co_filename):
            calls.append((name, frame.f_lineno))
        frame = frame.f_back
    return calls


def _shown(calls: Calls) -> str:
    return " < ".join(f"{Path(file).relative_to(ROOT)}:{line}" for file, line in calls)
