"""Writers of one log file: what a process of the service has, and what tests look at."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from uuid import UUID

from eventsourcing.utils import get_topic

from app.adapters.sqlite.log import SQLiteLogRecorder
from domain.accounts.committer import Committer
from domain.accounts.wallet import Wallet, wallet_id
from domain.aggregates import AGGREGATES
from domain.log.log import Log, Recorded
from domain.money import format_amount
from tests.domain.build import ORGANIZATION
from tests.domain.faults import FaultyRecorder

EVENTS_MAX = 100_000


@dataclass(frozen=True)
class Writer:
    """A log and the committer in front of it."""

    log: Log
    committer: Committer

    @property
    def recorder(self) -> FaultyRecorder:
        """Where faults are ordered."""
        return cast("FaultyRecorder", self.log.recorder)


WriterFactory = Callable[[], Writer]


def open_log(file: Path, recorder: type[SQLiteLogRecorder] = SQLiteLogRecorder) -> Log:
    return Log(
        {
            "PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "SQLITE_DBNAME": str(file),
            "SQLITE_LOCK_TIMEOUT": "10",
            "APPLICATION_RECORDER_TOPIC": get_topic(recorder),
        },
        AGGREGATES,
    )


def before_insert(writer: Writer, number: int, happens: Callable[[], object]) -> None:
    """Call something once, just before the insert that follows the next `number` inserts."""
    left = [number]

    def meanwhile() -> None:
        left[0] -= 1
        if left[0] == -1:
            happens()

    writer.recorder.meanwhile = meanwhile


def everything(log: Log) -> list[Recorded]:
    return log.read(0, EVENTS_MAX)


def balance(log: Log, organization_id: UUID = ORGANIZATION) -> str:
    """Return the balance of a wallet whose whole ledger adds up."""
    return format_amount(ledger(log, organization_id)[-1].balance_micros)


def ledger(log: Log, organization_id: UUID = ORGANIZATION) -> list[Wallet.Moved]:
    """Return the entries of a wallet, once its sequence is gap-free and its balances are sums."""
    stream = wallet_id(organization_id)
    events = [each.event for each in everything(log) if each.event.originator_id == stream]
    assert [event.originator_version for event in events] == list(range(1, len(events) + 1))
    entries = [event for event in events if isinstance(event, Wallet.Moved)]
    total = 0
    for sequence, entry in enumerate(entries, start=1):
        taken = isinstance(entry, Wallet.Charged)
        total += -entry.amount_micros if taken else entry.amount_micros
        assert (entry.sequence, entry.balance_micros) == (sequence, total)
        assert total >= 0
    wallet = log.find(Wallet, stream)
    assert (wallet.sequence, wallet.balance_micros) == (len(entries), total)
    return entries
