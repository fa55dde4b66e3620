"""The one writer of wallets in a process: it takes all commands that wait and commits them as one.

Optimistic retry collapses on a hot wallet; a queue in front of it does not. Between processes the
versions of the log decide: whoever loses reloads and goes on.

One transaction of wallet changes: applied, inserted, and its outcome known before any reply.

What becomes of a command: one answer, or none when its submitter withdraws in time.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from uuid import UUID

from eventsourcing.persistence import IntegrityError, PersistenceError, StoredEvent

from domain.accounts.held_wallets import WalletCache
from domain.accounts.turns import NoTurns, SharedWallets, Turns
from domain.accounts.wallet import Wallet
from domain.errors import BillingNotConfigured, Conflict, Refused, ServiceUnavailable
from domain.log.aggregate import Root
from domain.log.log import Log, NothingInserted, OtherLog, outdated


class Outcome:
    """A promise between one submitter and one committer, made of two locks.

    A Future does the same, but wakes its caller at three times the cost, and on a hot wallet to
    wake callers is most of the work. So whoever has many in hand waits for none of them: each one
    is told by a call that must not wait, and one `ring` wakes the submitter for many.
    """

    __slots__ = ("_answered", "_claimed", "_error", "_is_answered", "_position", "_tell", "ring")

    def __init__(
        self, tell: Callable[[], object] | None = None, ring: Callable[[], object] | None = None
    ) -> None:
        self._tell = tell
        self.ring = ring
        self._claimed = Lock()  # By whoever is first: to take the command, or to withdraw it.
        self._answered = Lock()
        self._answered.acquire()  # Until there is an answer.
        self._is_answered = False
        self._position = 0
        self._error: Exception | None = None

    def take(self) -> bool:
        """Begin to carry it out; False when it was withdrawn."""
        return self._claimed.acquire(blocking=False)

    def withdraw(self) -> bool:
        """Make sure that it never happens; False when it was taken already."""
        return self._claimed.acquire(blocking=False)

    @property
    def is_open(self) -> bool:
        """Tell whether it waits for an answer; only the committer, who took it, may ask."""
        return self._claimed.locked() and not self._is_answered

    def succeed(self, position: int) -> None:
        """Answer with a position."""
        self._position = position
        self._answer()

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        self._error = error
        self._answer()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the answer, at most so long; tell whether it has come. One may wait, once."""
        return self._answered.acquire(timeout=timeout_s)

    def result(self) -> int:
        """Return the position of an answer that has come, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._position

    def _answer(self) -> None:
        self._is_answered = True
        tell, self._tell = self._tell, None  # Who is told may hold this: so it is no circle.
        if tell is None:
            self._answered.release()
        else:
            tell()


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


QUEUE_MAX = 1_000  # Beyond it a caller is told to come back: waiting longer helps nobody.
BATCH_MAX = 256  # Commands of one transaction; keeps the wait of the last one at a few ms.
WAIT_S = (
    10.0  # Twice this at most. Only bounds a caller whose committer is stuck on a dead database.
)

RACES_MAX = 20  # Races that a batch may lose in a row; each one means that another process won.

logger = logging.getLogger(__name__)


class Committer:
    """Serializes every command that touches a wallet; its thread starts with the first one."""

    def __init__(self, log: Log, turns: Turns | None = None) -> None:
        self._log = log
        self._queue: SimpleQueue[Command | None] = SimpleQueue()
        self._wallets = WalletCache(log)
        self._shared = SharedWallets(turns or NoTurns())
        self._twins: list[Command] = []  # First in the next batch.
        self._thread: Thread | None = None
        self._lock = Lock()
        self._closed = False
        # A database that was away is tried once per batch until it answers: nobody waits in vain.
        self._settle_s = SETTLE_S

    def commit(self, wallet_id: UUID, change: Change, *others: Root) -> int:
        """Commit a wallet change together with the new events of other aggregates.

        Returns the position of its last event, or a later one of the same transaction. Raises what
        the wallet refuses with, BillingNotConfigured without a wallet, Conflict when another
        stream has moved on (reload and decide anew), ServiceUnavailable when the log cannot be
        reached (the outcome is unknown) or too many wait already (nothing happened).
        """
        command = self.prepare(wallet_id, change, *others)
        self.submit(command)
        position = _outcome(command)
        for aggregate in others:
            aggregate.read_from = command.stored_on
        return position

    def prepare(
        self, wallet_id: UUID, change: Change, *others: Root, is_first: bool = False
    ) -> Command:
        """Return a command of what `commit` commits.

        With `is_first` it is a Conflict that another stream has begun. All such commands of a
        batch look at the log together; one that is not looked for is noticed by the insert, where
        it costs the others of its batch their common transaction.
        """
        events = [event for aggregate in others for event in aggregate.collect_events()]
        stored = [self._log.mapper.to_stored_event(event) for event in events]
        return Command(wallet_id, change, stored, self._log.decided_on(others), is_first)

    def held_balance(self, wallet_id: UUID) -> int | None:
        """Return the balance as last committed or loaded here; another process may have moved it.

        None for a wallet that is not held, or was read from another server.
        """
        return self._wallets.peek(wallet_id)

    def close(self) -> None:
        """Commit what waits, then stop."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None and thread.is_alive():
            self._queue.put(None)
            thread.join(WAIT_S)

    def submit(self, command: Command) -> None:
        """Queue a command, which its outcome answers; raises ServiceUnavailable as `commit`."""
        with self._lock:  # So that nothing is queued behind the end.
            if self._closed:
                raise ServiceUnavailable
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name="committer", daemon=True)
                self._thread.start()
            if self._queue.qsize() >= QUEUE_MAX:
                raise ServiceUnavailable
            self._queue.put(command)

    def _run(self) -> None:
        stopping = False
        while not (stopping and self._queue.empty() and not self._twins):
            taken, stop = self._take()
            stopping = stopping or stop
            try:
                self._process(taken)
            except Exception:
                logger.exception("the committer failed on a batch")
                self._wallets.clear()
                fail([each for each in taken if each.outcome.is_open], ServiceUnavailable())
            finally:
                self._shared.end_turn()
        self._shared.close()

    def _take(self) -> tuple[list[Command], bool]:
        """Take all that wait, twins first; tell whether the end was asked for among them."""
        waiting: list[Command | None] = [*self._twins]
        self._twins = []
        if not waiting:
            waiting.append(self._queue.get())
        self._take_more(waiting)
        if self._shared.take_turn(each.wallet_id for each in waiting if each is not None):
            self._take_more(waiting)  # Who came while we waited for our turn.
        return [each for each in waiting if each is not None], None in waiting

    def _take_more(self, waiting: list[Command | None]) -> None:
        while len(waiting) < BATCH_MAX:
            try:
                waiting.append(self._queue.get_nowait())
            except Empty:
                return

    def _process(self, taken: list[Command]) -> None:
        batch = self._without_twins(self._without_begun(taken))
        doubtful = self._save(batch)
        self._shared.end_turn()
        self._settle_each(doubtful)

    def _without_begun(self, taken: Sequence[Command]) -> Iterable[Command]:
        """Refuse those whose stream is there; when the log cannot tell, all who ask."""
        asking = {stream for each in taken if each.is_first for stream in each.streams}
        if not asking:
            return taken
        try:
            begun = self._log.begun(asking)
        except ServiceUnavailable as error:
            self._settle_s = 0.0
            fail([each for each in taken if each.is_first and each.outcome.take()], error)
            return [each for each in taken if not each.is_first]
        left = []
        for command in taken:
            late = command.is_first and command.streams & begun
            if not late:
                left.append(command)
            elif command.outcome.take():
                fail([command], Conflict(late.pop()))
        return left

    def _without_twins(self, taken: Iterable[Command]) -> list[Command]:
        """Keep each other stream once, and nobody who has withdrawn meanwhile."""
        batch: list[Command] = []
        streams: set[UUID | str] = set()
        for command in taken:
            others = command.streams
            if not streams.isdisjoint(others):
                self._twins.append(command)
            elif command.outcome.take():
                streams |= others
                batch.append(command)
        return batch

    def _accept(self, command: Command) -> bool:
        """Let the held wallet decide; its "no" is doubtful, another process may have paid in."""
        try:
            apply(self._log, self._wallets, self._wallets.get(command.wallet_id), command)
        except Exception:  # noqa: BLE001  # A bug of one command must not fail its neighbours.
            return False
        return True

    def _save(self, batch: list[Command]) -> list[Command]:
        """Commit together what the wallets agree to; return what has to be settled one by one.

        When another process was first on a wallet, all decide anew on what it has become: one by
        one they would lose race after race.
        """
        doubtful: list[Command] = []
        for _ in range(RACES_MAX):
            self._take_turn(batch)
            accepted = self._agreed(batch, doubtful)
            if not accepted:
                return doubtful
            stored = [event for command in accepted for event in command.all_stored]
            try:
                position = insert(self._log, stored, self._decided_on(accepted), self._settle_s)
            except OtherLog:  # Those decide anew whose wallets alone were read from another one.
                self._wallets.clear()
                return [*accepted, *doubtful]
            except IntegrityError:
                batch = accepted
                if not self._have_moved(batch):  # So it was a stream of one of them.
                    break
            except ServiceUnavailable as error:
                self._settle_s = 0.0
                self._undo(accepted)
                fail(accepted, error)
                return doubtful
            else:
                self._shared.end_turn()
                self._answer(accepted, position)
                return doubtful
        self._undo(batch)
        return [*batch, *doubtful]

    def _agreed(self, batch: Iterable[Command], doubtful: list[Command]) -> list[Command]:
        """Return the commands that their wallets agree to; the others join the doubtful ones."""
        accepted: list[Command] = []
        for command in batch:
            (accepted if self._accept(command) else doubtful).append(command)
        return accepted

    def _decided_on(self, commands: Sequence[Command]) -> Collection[str]:
        wallets = self._wallets.read_from({command.wallet_id for command in commands})
        return wallets.union(*{command.servers for command in commands})

    def _have_moved(self, commands: Iterable[Command]) -> bool:
        """Bring all their wallets up to date; tell whether one was not."""
        wallets = {command.wallet_id for command in commands}
        return any([self._catch_up(wallet) for wallet in wallets])  # noqa: C419  # All of them.

    def _take_turn(self, commands: Iterable[Command]) -> None:
        """See what the wallets have become to whose turn we have come."""
        self._shared.take_turn(command.wallet_id for command in commands)
        with suppress(ServiceUnavailable):  # The insert will tell.
            for wallet_id in self._shared.unread():
                self._catch_up(wallet_id)

    def _catch_up(self, wallet_id: UUID) -> bool:
        has_moved = self._wallets.catch_up(wallet_id)
        if has_moved:
            self._shared.moved_by_another(wallet_id)
        return has_moved

    def _answer(self, commands: Collection[Command], position: int) -> None:
        self._wallets.keep()
        self._settle_s = SETTLE_S
        _succeed(commands, position, self._log.answered())

    def _settle_each(self, commands: list[Command]) -> None:
        """Commit one at a time; when the database is gone, the rest need not wait for it too."""
        for index, command in enumerate(commands):
            try:
                position = commit_alone(self._log, self._wallets, command, self._settle_s)
            except ServiceUnavailable as error:
                self._settle_s = 0.0
                fail(commands[index:], error)
                return
            except Exception as error:  # noqa: BLE001  # Whatever it is, it is the submitter's answer.
                fail([command], error)
            else:
                self._settle_s = SETTLE_S
                _succeed([command], position, self._log.answered())

    def _undo(self, commands: Iterable[Command]) -> None:
        for wallet in {command.wallet_id for command in commands}:
            self._wallets.undo(wallet)


def _outcome(command: Command) -> int:
    outcome = command.outcome
    if not outcome.wait(WAIT_S):
        if outcome.withdraw():  # Not taken yet, so it never will be.
            raise ServiceUnavailable
        if not outcome.wait(WAIT_S):
            raise ServiceUnavailable
    return outcome.result()


def expire(command: Command, age_s: float) -> None:
    """Answer a command that nobody waits for, as `commit` would after so long."""
    if age_s > 2 * WAIT_S or (age_s > WAIT_S and command.outcome.withdraw()):
        fail([command], ServiceUnavailable())


def _succeed(commands: Collection[Command], position: int, server: str) -> None:
    for command in commands:
        command.stored_on = server
        command.outcome.succeed(position)
    _ring(commands)


def fail(commands: Collection[Command], error: Exception) -> None:
    """Answer with an error whoever has no answer, and wake them."""
    for command in commands:
        command.outcome.fail(error)
    _ring(commands)


def _ring(commands: Iterable[Command]) -> None:
    """Wake each submitter once that has many commands in hand."""
    for ring in {command.outcome.ring for command in commands}:
        if ring is not None:
            ring()
