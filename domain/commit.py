"""One transaction of wallet changes: applied, inserted, and its outcome known before any reply."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from threading import Event
from uuid import UUID

from eventsourcing.persistence import IntegrityError, PersistenceError, StoredEvent

from domain.application import Log, NothingInserted, OtherLog, outdated
from domain.errors import BillingNotConfigured, Conflict, Refused, ServiceUnavailable
from domain.outcome import Outcome
from domain.wallet import Wallet
from domain.wallet_cache import WalletCache

SETTLE_S = 8.0  # How long an unknown outcome is asked for before its callers are told so.
PAUSE_S = 0.05  # Between two questions to a database that does not answer.
CONFLICTS_MAX = 50  # Races that one command may lose in a row against other processes.

Change = Callable[[Wallet], None]


@dataclass(eq=False)
class Command:
    """One wallet change and the streams that it is for, committed together or not at all.

    `stored` are the events of the other streams, decided and encoded by the submitter; `change`
    is the last step: one call of one wallet method, which records at least one entry.
    """

    wallet_id: UUID
    change: Change
    stored: Sequence[StoredEvent]
    servers: frozenset[str] = frozenset()  # That the other streams were decided on.
    is_first: bool = False  # To be refused where one of the other streams has begun.
    outcome: Outcome = field(default_factory=Outcome)
    wallet_stored: Sequence[StoredEvent] = ()
    stored_on: str | None = None

    @property
    def streams(self) -> set[UUID | str]:
        """The streams besides the wallet that this command appends to."""
        return {event.originator_id for event in self.stored}

    @property
    def all_stored(self) -> list[StoredEvent]:
        """Everything that this command appends; the reason comes before its money."""
        return [*self.stored, *self.wallet_stored]


def apply(log: Log, wallets: WalletCache, wallet: Wallet | None, command: Command) -> None:
    """Let a wallet decide a command; raises its refusal and leaves no trace in what is held."""
    if wallet is None:
        raise BillingNotConfigured
    version = wallet.version
    try:
        _decide(log, wallet, command)
    except BaseException:
        if wallet.version != version:  # A bug of the command: it got half way.
            wallets.clear()
        raise


def _decide(log: Log, wallet: Wallet, command: Command) -> None:
    assert not wallet.pending_events, "a wallet without a commit in between"
    command.change(wallet)
    events = wallet.collect_events()
    assert events, "a change of a wallet records an entry"
    command.wallet_stored = [log.mapper.to_stored_event(event) for event in events]


def insert(
    log: Log, stored: Sequence[StoredEvent], servers: Collection[str], settle_s: float
) -> int:
    """Insert once and for certain; return the last position.

    The same bytes are sent again until the database says done or taken, so an unknown outcome
    cannot become a second commit. Raises IntegrityError when others were first, OtherLog when this
    is not the log of one of the servers that they were decided on, ServiceUnavailable
    when no answer came within `settle_s` or nothing can be inserted now.
    """
    deadline = time.monotonic() + settle_s
    pause = Event()
    while True:
        try:
            return log.insert_once(stored, servers)
        except IntegrityError:
            raise
        except PersistenceError as error:
            if isinstance(error, NothingInserted) or time.monotonic() > deadline:
                raise ServiceUnavailable from error
            pause.wait(PAUSE_S)


def commit_alone(log: Log, wallets: WalletCache, command: Command, settle_s: float) -> int:
    """Commit one command on the newest wallet, whoever else writes; return its position.

    Raises the wallet's refusal, Conflict when another stream of the command has moved on.
    """
    outdated_before = False
    for _ in range(CONFLICTS_MAX):
        try:
            apply(log, wallets, wallets.refresh(command.wallet_id), command)
        except Refused:
            _raise_if_overtaken(log, command)  # A twin that was paid for is no refusal.
            raise
        try:
            servers = command.servers | wallets.read_from([command.wallet_id])
            position = insert(log, command.all_stored, servers, settle_s)
        except OtherLog as error:
            wallets.clear()
            if outdated_before or command.servers - {log.answered()}:
                raise outdated(command.stored) from error
            outdated_before = True  # It may have been the wallet; by now that is read anew.
        except IntegrityError:
            wallets.undo(command.wallet_id)
            _raise_if_overtaken(log, command)
        except BaseException:
            wallets.undo(command.wallet_id)
            raise
        else:
            wallets.keep()
            return position
    raise ServiceUnavailable


def _raise_if_overtaken(log: Log, command: Command) -> None:
    for event in command.stored:
        if log.has_version(event):
            assert isinstance(event.originator_id, UUID)
            raise Conflict(event.originator_id)
