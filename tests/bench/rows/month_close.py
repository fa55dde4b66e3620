"""A year of 1,000 organizations is closed: the statements of a month, against reading the log."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
from eventsourcing.persistence import StoredEvent

from app.books.statements import statements_of
from app.bootstrap.container import Container
from app.processes.memory import collect_seldom
from domain.accounts.wallet import Wallet, wallet_id
from domain.cause import Cause
from domain.finance.month import Month
from domain.log.log import Log
from domain.months import months_before
from tests.bench.history import new_charge
from tests.bench.installation import DEPOSIT_MICROS, PRICE_MICROS, installation
from tests.bench.measure import medians, seconds
from tests.bench.row import Aim, Row

ORGANIZATIONS, EACH = 1_000, 1_000
BEGAN, ENDED = datetime(2025, 11, 1, tzinfo=UTC), datetime(2026, 10, 31, tzinfo=UTC)
MONTH, END = "2026-10", "2026-11"
READ_AT_ONCE = 2_000
TURNS = 5  # In one transaction; only the building depends on it.
REPEATS = 3


@contextmanager
def prepared() -> Iterator[tuple[Container, list[UUID]]]:
    """Let everybody trade for a year, each in turn, in a minute."""
    with installation() as container:
        organizations = [_customer(container) for _ in range(ORGANIZATIONS)]
        _trade(container.log, organizations)
        cause = Cause(ENDED + timedelta(days=2), "month")
        for month in months_before("2025-11", END):
            container.log.append(Month.close(month, cause))
        yield container, organizations


def _customer(container: Container) -> UUID:
    cause = Cause(BEGAN, "bench")
    made = container.accounts.register_organization(
        cause, name="Bench", price_micros=None, monthly_link_fee_micros=0, with_wallet=True
    )
    container.accounts.deposit(made.id, DEPOSIT_MICROS, "bench", cause)
    return made.id


def _trade(log: Log, organizations: list[UUID]) -> None:
    wallets = [log.get(Wallet, wallet_id(each)) for each in organizations]
    states = []
    for wallet in wallets:
        wallet.charge(new_charge(), Cause(BEGAN, "bench"))
        [charged] = [log.mapper.to_stored_event(event) for event in wallet.collect_events()]
        states.append((wallet, charged, msgspec.json.decode(charged.state)))
    for first in range(0, EACH, TURNS):
        stored = []
        for turn in range(first, first + TURNS):
            for wallet, charged, state in states:
                state["timestamp"] = BEGAN + (ENDED - BEGAN) * turn / EACH
                state["transaction_id"] = uuid4()
                version = charged.originator_version + turn
                encoded = msgspec.json.encode(state)
                stored.append(StoredEvent(wallet.id, version, charged.topic, encoded))
                state["sequence"] += 1
                state["balance_micros"] -= PRICE_MICROS
        log.insert(stored)


def measure(container: Container, _: list[UUID]) -> Iterator[Row]:
    log = container.log
    events = f"{log.head():,} events"
    collect_seldom()  # As the command does.
    began = _peak_mb()
    close, read_all = partial(_close, log), partial(_read, log)
    ours, limit = medians(partial(seconds, close), partial(seconds, read_all), repeats=REPEATS)
    yield Row(f"statements of {ORGANIZATIONS:,} of {events}", ours, limit, "s", Aim(ratio_max=8))
    yield Row("the memory that this takes", _peak_mb() - began, began, "MB", Aim(ours_max=100))


def _close(log: Log) -> None:
    found = statements_of(log, MONTH)
    assert found.is_final
    assert len(found.statements) == ORGANIZATIONS


def _read(log: Log) -> None:
    """Read every row of the log, with its bytes, and decode none."""
    after = 0
    while rows := log.recorder.select_rows(after, READ_AT_ONCE, frozenset()):  # type: ignore[attr-defined]  # Ours have this.
        after = rows[-1][0]


def _peak_mb() -> float:
    """Return the most memory that this process has held so far."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024
