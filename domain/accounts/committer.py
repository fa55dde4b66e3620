"""The only writer of wallets in a process: it commits all waiting commands in one transaction.

On a busy wallet optimistic retries would fail again and again, so commands wait in a queue. Between
processes the versions of the log decide: the process that loses a race reloads and goes on. The
outcome of a transaction is known before anybody gets a reply. Each command gets one answer, or none
if its submitter withdraws it in time.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from uuid import UUID

from eventsourcing.persistence import IntegrityError, PersistenceError, StoredEvent

from domain.accounts.held_wallets import WalletCache
from domain.accounts.wallet import Charge, Refund, Wallet, wallet_id
from domain.blocking import blocking
from domain.cause import Cause
from domain.errors import BillingNotConfigured, Conflict, Refused, ServiceUnavailable
from domain.log.aggregate import Root
from domain.log.log import EventsGone, Log, NothingInserted


class Outcome:
    """A promise between one submitter and the committer, made of two locks.

    A Future does the same but takes three times as long to wake its caller, and on a busy wallet
    that is most of the work. A submitter of many commands waits for none: `notify` is called
    for each answer and must not wait, then `wake` once for many.
    """

    __slots__ = ("_answered", "_claimed", "_error", "_is_answered", "_position", "notify", "wake")

    def __init__(
        self, notify: Callable[[], object] | None = None, wake: Callable[[], object] | None = None
    ) -> None:
        self.notify = notify
        self.wake = wake
        self._claimed = Lock()  # Held by whoever is first to take the command or to withdraw it.
        self._answered = Lock()
        self._answered.acquire()  # Held until there is an answer.
        self._is_answered = False
        self._position = 0
        self._error: Exception | None = None

    def claim(self) -> bool:
        """Be first to carry the command out, or to withdraw it; False when somebody else was."""
        return self._claimed.acquire(blocking=False)

    @property
    def is_open(self) -> bool:
        """Tell whether it waits for an answer; only the committer, which took it, may ask."""
        return self._claimed.locked() and not self._is_answered

    def succeed(self, position: int) -> None:
        self._position = position
        self._answer()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._answer()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the answer; tell whether it has come. Only one thread may wait, and once."""
        return self._answered.acquire(timeout=timeout_s)

    def result(self) -> int:
        if self._error is not None:
            raise self._error
        return self._position

    def _answer(self) -> None:
        self._is_answered = True
        # `notify` may refer to this object; dropping it breaks the reference cycle.
        notify, self.notify = self.notify, None
        if notify is None:
            self._answered.release()
        else:
            notify()


# How long to ask the database about an unknown outcome before its callers get an error.
SETTLE_S = 8.0
PAUSE_S = 0.05  # Between two questions to a database that does not answer.
CONFLICTS_MAX = 50  # Races that one command may lose in a row against other processes.

Change = Callable[[Wallet], None]


@dataclass(eq=False)
class Command:
    """A wallet change and the events that it pays for, committed together or not at all.

    `stored` are the events of the other streams, decided and encoded by the submitter. `change` is
    the last step: one call of one wallet method, which records at least one entry.
    """

    wallet_id: UUID
    change: Change
    stored: Sequence[StoredEvent]
    is_first: bool = False  # Refuse the command if one of the other streams exists already.
    outcome: Outcome = field(default_factory=Outcome)
    wallet_stored: Sequence[StoredEvent] = ()

    @property
    def streams(self) -> set[UUID | str]:
        """The streams besides the wallet to which this command appends."""
        return {event.originator_id for event in self.stored}


END = Command(UUID(int=0), lambda _: None, ())  # It wakes the thread, and is never carried out.


def apply(log: Log, wallets: WalletCache, wallet: Wallet | None, command: Command) -> None:
    """Let a wallet decide a command; if it refuses, raise and leave the held wallet as it was."""
    if wallet is None:
        raise BillingNotConfigured
    version = wallet.version
    try:
        command.change(wallet)
        events = wallet.collect_events()
        assert events, "a change of a wallet records an entry"
        command.wallet_stored = [log.mapper.to_stored_event(event) for event in events]
    except BaseException:
        # A bug of the command: it recorded some entries and then raised.
        if wallet.version != version:
            wallets.clear()
        raise


def insert(log: Log, stored: Sequence[StoredEvent], settle_s: float) -> int:
    """Insert once and for certain; return the last position.

    The same bytes are sent again until the database answers that they are there or that a version
    is taken, so an unknown outcome cannot become a second commit. Raises IntegrityError when others
    were first, ServiceUnavailable when no answer came within `settle_s`, when nothing can be
    inserted now, or when the use of this log is over: then the outcome stays unknown.
    """
    deadline = time.monotonic() + settle_s
    while True:
        try:
            return log.insert_once(stored)
        except EventsGone as error:
            raise ServiceUnavailable from error
        except IntegrityError:
            raise
        except PersistenceError as error:
            is_last = isinstance(error, NothingInserted) or log.is_over
            if is_last or time.monotonic() > deadline:
                raise ServiceUnavailable from error
            time.sleep(PAUSE_S)


def commit_alone(log: Log, wallets: WalletCache, command: Command, settle_s: float) -> int:
    """Commit one command on the newest state of the wallet; return its position.

    Raises the wallet's refusal, and Conflict when another stream of the command has moved on.
    """
    for _ in range(CONFLICTS_MAX):
        try:
            apply(log, wallets, wallets.refresh(command.wallet_id), command)
        except Refused:
            # A twin may have spent the money; then this is a Conflict, not a refusal.
            _raise_if_overtaken(log, command)
            raise
        try:
            position = insert(log, [*command.stored, *command.wallet_stored], settle_s)
        except IntegrityError:
            wallets.undo(command.wallet_id)
            _raise_if_overtaken(log, command)
        except BaseException:
            wallets.undo(command.wallet_id)
            raise
        else:
            wallets.mark_committed()
            return position
    raise ServiceUnavailable


def _raise_if_overtaken(log: Log, command: Command) -> None:
    for conflict in _overtaken(log, [command]).values():
        raise conflict


def _overtaken(log: Log, commands: Collection[Command]) -> dict[Command, Conflict]:
    """Return the commands that are too late: one of their other streams has moved on."""
    moved = log.overtaken(event for command in commands for event in command.stored)
    late = ((command, command.streams & moved) for command in commands)
    return {command: Conflict(streams.pop()) for command, streams in late if streams}


QUEUE_MAX = 1_000  # Further callers are told to come back, because waiting longer helps nobody.
BATCH_MAX = 256  # Commands of one transaction; few enough that the last one waits a few ms.
# A caller waits for its outcome at most twice this, and only when the database hangs.
WAIT_S = 10.0
RACES_MAX = 20  # Races that a batch may lose in a row; each one means that another process won.

logger = logging.getLogger(__name__)


class Committer:
    """Carries out every command that touches a wallet, in one thread that starts with the first."""

    def __init__(self, log: Log, refuse: Callable[[], None] = lambda: None) -> None:
        """`refuse` is called for each command; it raises in a copy that moves no money."""
        self._log = log
        self._refuse = refuse
        self._queue: SimpleQueue[Command] = SimpleQueue()
        self._wallets = WalletCache(log)
        self._twins: list[Command] = []  # They go first into the next batch.
        self._has_company = False  # The last batch had several commands.
        self._thread: Thread | None = None
        self._lock = Lock()
        self._closed = False
        # After a failure the database is tried once per batch until it answers, so that nobody
        # waits long.
        self._settle_s = SETTLE_S

    def commit(self, wallet_id: UUID, change: Change, *others: Root) -> int:
        """Commit a wallet change together with the new events of other aggregates.

        Returns the position of its last event, or a later one of the same transaction. Raises the
        wallet's refusal, BillingNotConfigured without a wallet, Conflict when another stream has
        moved on (reload and decide again), ServiceUnavailable when the log cannot be reached (the
        outcome is unknown) or when too many commands wait (nothing happened).
        """
        command = self.prepare(wallet_id, change, *others)
        self.submit(command)
        return _outcome(command)

    def commit_entries(
        self,
        organization_id: UUID,
        entries: Sequence[Charge | Refund],
        cause: Cause,
        *aggregates: Root,
    ) -> int:
        """Commit aggregates together with their charges and refunds, if there are any.

        Returns and raises as `commit`; without entries, as `Log.append`.
        """
        if not entries:
            return self._log.append(*aggregates)
        wallet = wallet_id(organization_id)
        return self.commit(wallet, lambda held: held.book(entries, cause), *aggregates)

    def prepare(
        self, wallet_id: UUID, change: Change, *others: Root, is_first: bool = False
    ) -> Command:
        """Return the command that `commit` would carry out.

        With `is_first` the command fails with Conflict if one of its other streams exists already.
        One statement checks that for a whole batch. Otherwise only the insert would notice, and the
        whole batch would have to be decided again.
        """
        events = [event for aggregate in others for event in aggregate.collect_events()]
        stored = [self._log.mapper.to_stored_event(event) for event in events]
        return Command(wallet_id, change, stored, is_first)

    def cached_funds(self, wallet_id: UUID, currency: str, at: datetime) -> int | None:
        """Return what balance and limit leave to spend, as last committed or loaded here.

        Other processes may have changed it. None for a wallet that is not held, or of another
        currency.
        """
        return self._wallets.peek(wallet_id, currency, at)

    def close(self) -> None:
        """Commit what waits, then stop."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None and thread.is_alive():
            self._queue.put(END)
            thread.join(WAIT_S)

    def submit(self, command: Command) -> None:
        """Queue a command; its `outcome` gets the answer. Raises ServiceUnavailable."""
        self._refuse()
        with self._lock:  # So that nothing is queued after the end.
            if self._closed:
                raise ServiceUnavailable
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name="committer", daemon=True)
                self._thread.start()
            if self._queue.qsize() >= QUEUE_MAX:
                raise ServiceUnavailable
            self._queue.put(command)

    def _run(self) -> None:
        while not (self._closed and self._queue.empty() and not self._twins):
            batch: list[Command] = []
            try:
                self._collect(batch)
                self._process(batch)
            except Exception:
                logger.exception("the committer failed on a batch")
                self._give_up(batch)

    def _give_up(self, waiting: Iterable[Command]) -> None:
        """Answer every command of a batch that is still without an answer, taken or not."""
        self._twins = []
        self._wallets.clear()
        left = [each for each in waiting if each.outcome.claim() or each.outcome.is_open]
        fail(left, ServiceUnavailable())

    def _collect(self, batch: list[Command]) -> None:
        """Take all waiting commands, twins first."""
        batch += self._twins
        self._twins = []
        # A lone client has no others to wait for, and would pay for it with each command.
        has_company = self._has_company or bool(batch) or not self._queue.empty()
        if not batch:
            batch.append(self._queue.get())
        if has_company:
            give_way()
        try:
            while len(batch) < BATCH_MAX:
                batch.append(self._queue.get_nowait())
        except Empty:
            pass
        self._has_company = len(batch) > 1
        while END in batch:
            batch.remove(END)

    def _process(self, batch: list[Command]) -> None:
        """Commit what can be decided together, then one by one what could not."""
        some = self._without_existing(self._without_twins(batch) if len(batch) > 1 else batch)
        doubtful = self._save([each for each in some if each.outcome.claim()])
        if doubtful:
            self._settle_each(doubtful)

    def _without_twins(self, commands: Iterable[Command]) -> list[Command]:
        """Keep one command per stream (wallets apart); the others wait for the next batch."""
        batch: list[Command] = []
        streams: set[UUID | str] = set()
        for command in commands:
            others = command.streams
            (batch if streams.isdisjoint(others) else self._twins).append(command)
            streams |= others
        return batch

    def _without_existing(self, commands: list[Command]) -> list[Command]:
        """Refuse `is_first` commands whose stream exists; all of them if the log is away."""
        firsts = [each for each in commands if each.is_first]
        if not firsts:
            return commands
        try:
            existing = _overtaken(self._log, firsts)
        except ServiceUnavailable as error:
            self._settle_s = 0.0
            fail([each for each in firsts if each.outcome.claim()], error)
            return [each for each in commands if not each.is_first]
        for command, conflict in existing.items():
            if command.outcome.claim():
                fail([command], conflict)
        return [each for each in commands if each not in existing]

    def _save(self, batch: list[Command]) -> list[Command]:
        """Commit what the wallets accept; return the commands to be settled one by one.

        When another process was first on a wallet, all commands decide again on its new state. One
        by one they would lose race after race.
        """
        doubtful: list[Command] = []
        self._wallets.reload([command.wallet_id for command in batch])
        for _ in range(RACES_MAX):
            accepted, stored = self._agreed(batch, doubtful)
            if not accepted:
                return doubtful
            try:
                position = insert(self._log, stored, self._settle_s)
            except IntegrityError:
                batch = self._after_race(accepted)
            except ServiceUnavailable as error:
                self._settle_s = 0.0
                self._undo(accepted)
                fail(accepted, error)
                return doubtful
            else:
                self._wallets.mark_committed()
                self._settle_s = SETTLE_S
                _succeed(accepted, position)
                return doubtful
        self._undo(batch)
        return [*batch, *doubtful]

    def _agreed(
        self, batch: Iterable[Command], doubtful: list[Command]
    ) -> tuple[list[Command], list[StoredEvent]]:
        """Return the commands that their wallets accept, with all their events; wallets' come last.

        The others become doubtful: a refusal is not final, for another process may have paid in.
        """
        accepted, stored = list[Command](), list[StoredEvent]()
        for command in batch:
            try:
                apply(self._log, self._wallets, self._wallets.get(command.wallet_id), command)
            except Exception:  # noqa: BLE001  # A bug of one command must not fail the others.
                doubtful.append(command)
            else:
                accepted.append(command)
                stored += [*command.stored, *command.wallet_stored]
        return accepted, stored

    def _after_race(self, commands: Collection[Command]) -> list[Command]:
        """Read the wallets after a lost race; return the commands that may decide again."""
        moved = self._wallets.catch_up({command.wallet_id for command in commands})
        late = {} if moved else _overtaken(self._log, commands)
        for command, conflict in late.items():
            fail([command], conflict)
        return [command for command in commands if command not in late]

    def _settle_each(self, commands: list[Command]) -> None:
        """Commit one command at a time; if the database is gone, fail the rest without waiting."""
        for index, command in enumerate(commands):
            try:
                position = commit_alone(self._log, self._wallets, command, self._settle_s)
            except ServiceUnavailable as error:
                self._settle_s = 0.0
                fail(commands[index:], error)
                return
            except Exception as error:  # noqa: BLE001  # Whatever the error, it is the submitter's answer.
                fail([command], error)
            else:
                self._settle_s = SETTLE_S
                _succeed([command], position)

    def _undo(self, commands: Iterable[Command]) -> None:
        for wallet in {command.wallet_id for command in commands}:
            self._wallets.undo(wallet)


def _outcome(command: Command) -> int:
    outcome = command.outcome
    with blocking():
        if not outcome.wait(WAIT_S):
            if outcome.claim():  # Not taken yet, so it will never happen.
                raise ServiceUnavailable
            if not outcome.wait(WAIT_S):
                raise ServiceUnavailable
    return outcome.result()


def expire(command: Command, age_s: float) -> None:
    """Fail a command for which no thread waits, after the time that `commit` would wait."""
    if age_s > WAIT_S and (command.outcome.claim() or age_s > 2 * WAIT_S):
        fail([command], ServiceUnavailable())


def _succeed(commands: Collection[Command], position: int) -> None:
    for command in commands:
        command.outcome.succeed(position)
    _wake_submitters(commands)


def give_way() -> None:
    """Let the threads run that the last commit answered, so that their next commands join in.

    Otherwise half of the clients of a busy wallet wait while the other half is committed. The
    committer continues as soon as these threads block.
    """
    time.sleep(0)


def fail(commands: Collection[Command], error: Exception) -> None:
    for command in commands:
        command.outcome.fail(error)
    _wake_submitters(commands)


def _wake_submitters(commands: Iterable[Command]) -> None:
    """Wake each submitter that waits for many commands once."""
    for wake in {command.outcome.wake for command in commands}:
        if wake is not None:
            wake()
