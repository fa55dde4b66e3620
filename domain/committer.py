"""The one writer of wallets in a process: it takes all commands that wait and commits them as one.

Optimistic retry collapses on a hot wallet; a queue in front of it does not. Between processes the
versions of the log decide: whoever loses reloads and goes on.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from uuid import UUID

from eventsourcing.persistence import IntegrityError

import domain.commit
from domain.aggregate import Root
from domain.application import Log, OtherLog
from domain.commit import Change, Command, apply, commit_alone, insert
from domain.errors import Conflict, ServiceUnavailable
from domain.turns import NoTurns, SharedWallets, Turns
from domain.wallet_cache import WalletCache

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
        self._settle_s = domain.commit.SETTLE_S

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
        self._settle_s = domain.commit.SETTLE_S
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
                self._settle_s = domain.commit.SETTLE_S
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
