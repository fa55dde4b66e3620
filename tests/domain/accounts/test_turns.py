"""Turns at a wallet that others move too: taken only then, and never relied on."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import OperationalError

import domain.accounts.turns
from domain.accounts.committer import Committer
from domain.accounts.turns import ContendedWallets, NoTurns, Turns
from domain.accounts.wallet import wallet_id
from domain.errors import InsufficientBalance, ServiceUnavailable
from tests.domain.build import ORGANIZATION, open_wallet, pay_in, take
from tests.domain.crowd import PATIENCE_S, Crowd
from tests.domain.log.test_other_processes import before_insert
from tests.domain.writers import Writer, WriterFactory, balance, ledger

WALLET = wallet_id(ORGANIZATION)


class WatchedTurns:
    """Turns that come at once, or never, and are remembered."""

    def __init__(self, *, come: bool = True) -> None:
        self.come = come
        self.taken: list[set[UUID]] = []
        self.is_held = False
        self.meanwhile: Callable[[], object] = int  # What happens before a turn comes.

    def take(self, wallet_ids: Sequence[UUID]) -> bool:
        assert not self.is_held
        self.taken.append(set(wallet_ids))
        self.meanwhile()
        self.is_held = self.come
        return self.come

    def end(self) -> None:
        assert self.is_held
        self.is_held = False

    def close(self) -> None:
        assert not self.is_held


@pytest.fixture
def turns() -> WatchedTurns:
    return WatchedTurns()


@pytest.fixture
def funded(new_writer: WriterFactory, turns: WatchedTurns) -> Writer:
    """A writer that takes turns and holds a wallet of 1.00."""
    return with_turns(new_writer(), turns)


def with_turns(writer: Writer, turns: Turns) -> Writer:
    writer.committer.close()
    made = Writer(writer.log, Committer(writer.log, turns))
    open_wallet(made.log, made.committer, "1.00", ORGANIZATION)
    return made


def test_who_is_alone_at_a_wallet_takes_no_turn(funded: Writer, turns: WatchedTurns) -> None:
    for _ in range(5):
        take(funded.committer, "0.01")
    with pytest.raises(InsufficientBalance):
        take(funded.committer, "2.00")
    funded.committer.close()
    assert turns.taken == []


def lose_races(writer: Writer, count: int, *others: Callable[[], object]) -> None:
    """Make others move wallets before each of the next inserts of a writer."""
    left = [count]

    def meanwhile() -> None:
        left[0] -= 1
        if left[0] >= 0:
            for happens in others:
                happens()

    writer.recorder.meanwhile = meanwhile


def test_one_lost_race_is_no_reason_to_take_turns(
    funded: Writer, other: Writer, turns: WatchedTurns
) -> None:
    for _ in range(3):
        lose_races(funded, 1, partial(take, other.committer, "0.10"))
        take(funded.committer, "0.10")
    assert turns.taken == []
    assert balance(funded.log) == "0.40"


def test_after_two_races_lost_in_a_row_a_turn_is_taken_and_the_wallet_read_under_it(
    funded: Writer, other: Writer, turns: WatchedTurns
) -> None:
    lose_races(funded, 2, partial(take, other.committer, "0.05"))
    turns.meanwhile = partial(take, other.committer, "0.80")  # After the races, before the turn.
    take(funded.committer, "0.05")
    turns.meanwhile = int
    take(funded.committer, "0.05")
    funded.committer.close()
    assert turns.taken == [{WALLET}, {WALLET}]
    assert balance(funded.log) == "0.00"


def test_turns_that_break_leave_nobody_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, funded: Writer, other: Writer, turns: WatchedTurns
) -> None:
    def breaks(_: object) -> bool:
        raise RuntimeError

    lose_races(funded, 2, partial(take, other.committer, "0.05"))
    take(funded.committer, "0.10")  # From now on it takes turns.
    monkeypatch.setattr(turns, "take", breaks)
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(take, funded.committer, "0.01") for _ in range(20)]
        # Far less than a command waits for a committer that says nothing.
        errors = {type(call.exception(PATIENCE_S / 4)) for call in calls}
    assert errors == {ServiceUnavailable}
    monkeypatch.undo()
    take(funded.committer, "0.10")


def test_turns_end_a_while_after_the_last_lost_race(
    monkeypatch: pytest.MonkeyPatch, funded: Writer, other: Writer, turns: WatchedTurns
) -> None:
    monkeypatch.setattr(domain.accounts.turns, "CONTENDED_S", 0.0)
    lose_races(funded, 2, partial(take, other.committer, "0.05"))
    take(funded.committer, "0.10")
    take(funded.committer, "0.10")
    assert turns.taken == []
    assert balance(funded.log) == "0.70"


def test_who_gets_no_turn_goes_on_without_one(
    funded: Writer, other: Writer, turns: WatchedTurns
) -> None:
    turns.come = False
    lose_races(funded, 5, partial(take, other.committer, "0.10"))
    take(funded.committer, "0.10")
    assert turns.taken == [{WALLET}] * 4
    assert balance(funded.log) == "0.40"


def test_another_who_takes_no_turn_can_win_all_the_same(
    funded: Writer, other: Writer, turns: WatchedTurns
) -> None:
    lose_races(funded, 2, partial(take, other.committer, "0.05"))
    take(funded.committer, "0.10")
    before_insert(funded, 0, partial(take, other.committer, "0.60"))  # Under our turn.
    with pytest.raises(InsufficientBalance):
        take(funded.committer, "0.30")
    funded.committer.close()
    assert turns.taken == [{WALLET}] * 2
    assert not turns.is_held
    assert balance(funded.log) == "0.20"


def test_who_comes_while_the_turn_is_waited_for_is_in_the_same_batch(
    crowd: Crowd, other: Writer, turns: WatchedTurns
) -> None:
    log, committer = crowd.fund()
    committer._contended = ContendedWallets(turns)  # noqa: SLF001  # The crowd has made its committer.
    lose_races(crowd.writer, 2, partial(take, other.committer, "0.10"))
    take(committer, "0.10")
    late = []
    turns.meanwhile = lambda: late.extend(crowd.queue_up(*[partial(take, committer, "0.10")] * 3))
    first = take(committer, "0.10")
    assert {call.result(PATIENCE_S) for call in late} == {first}
    assert balance(log) == "0.30"


def test_a_turn_is_for_all_contended_wallets_of_a_batch(
    crowd: Crowd, other: Writer, turns: WatchedTurns
) -> None:
    log, committer = crowd.writer.log, crowd.writer.committer
    contended, alone = [uuid4(), uuid4()], uuid4()
    committer._contended = ContendedWallets(turns)  # noqa: SLF001  # The crowd has made its committer.
    for organization in (*contended, alone):
        open_wallet(log, committer, "1.00", organization)
        take(committer, "0.10", organization)
    moved = [partial(take, other.committer, "0.10", organization) for organization in contended]
    for races in (3, 0):  # The first is that of what keeps the committer busy.
        with crowd.waiting():
            calls = crowd.queue_up(
                *(partial(take, committer, "0.10", each) for each in (*contended, alone))
            )
            lose_races(crowd.writer, races, *moved)
        assert len({call.result(PATIENCE_S) for call in calls}) == 1
    assert turns.taken == [{*map(wallet_id, contended)}] * 2
    assert [balance(log, each) for each in (*contended, alone)] == ["0.40", "0.40", "0.70"]


def test_without_turns_processes_race_as_they_did(new_writer: WriterFactory, other: Writer) -> None:
    writer = with_turns(new_writer(), NoTurns())
    for _ in range(5):
        take(other.committer, "0.05")
        pay_in(writer.committer, "0.05")
    assert balance(writer.log) == "1.00"
    assert len(ledger(writer.log)) == 11


def test_a_log_that_is_away_when_the_turn_comes_fails_nobody(
    funded: Writer, other: Writer, turns: WatchedTurns
) -> None:
    lose_races(funded, 2, partial(take, other.committer, "0.10"))
    turns.meanwhile = partial(funded.recorder.fail, "on select", OperationalError)
    take(funded.committer, "0.10")
    assert funded.recorder.faults_left == 0
    assert balance(funded.log) == "0.70"
