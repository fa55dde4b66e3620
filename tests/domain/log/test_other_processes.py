"""Another process writes the same wallets: whoever loses a race loads anew, and nobody loses money.

The other process is a second log and committer on the same file; `test_hammer.py` has real ones.
"""

from functools import partial
from uuid import uuid4

import pytest
from eventsourcing.persistence import OperationalError

import domain.accounts.committer
from domain.accounts.wallet import Wallet
from domain.errors import Conflict, InsufficientBalance, ServiceUnavailable
from tests.domain.build import ORGANIZATION, cause, lookup, open_wallet, pay_for, pay_in, take
from tests.domain.crowd import PATIENCE_S, Crowd
from tests.domain.writers import Writer, balance, before_insert, everything, ledger


@pytest.fixture
def funded(writer: Writer, other: Writer) -> Writer:
    """A writer that holds a wallet of 1.00 which the other one knows nothing of yet."""
    del other
    open_wallet(writer.log, writer.committer, "1.00", ORGANIZATION)
    return writer


def test_a_held_wallet_that_says_no_is_looked_at_again(funded: Writer, other: Writer) -> None:
    take(funded.committer, "1.00")
    with pytest.raises(InsufficientBalance):
        take(funded.committer, "0.10")
    pay_in(other.committer, "0.10")
    take(funded.committer, "0.10")
    assert balance(funded.log) == "0.00"


def test_a_held_wallet_that_says_yes_is_not_believed_either(funded: Writer, other: Writer) -> None:
    take(other.committer, "0.95")
    with pytest.raises(InsufficientBalance):
        take(funded.committer, "0.10")
    take(funded.committer, "0.05")
    assert balance(funded.log) == "0.00"


@pytest.mark.parametrize(
    ("prices", "refused", "left"),
    [(("0.10", "0.60"), [], "0.10"), (("0.30", "0.40"), [InsufficientBalance], "0.00")],
)
def test_a_batch_that_another_process_overtakes_is_committed_as_one_but_for_what_is_gone(
    crowd: Crowd, other: Writer, prices: tuple[str, str], refused: list[type], left: str
) -> None:
    log, committer = crowd.fund()
    with crowd.waiting():
        calls = crowd.queue_up(*[partial(take, committer, prices[0])] * 3)
        before_insert(crowd.writer, 1, partial(take, other.committer, prices[1]))
    paid = 3 - len(refused)
    assert len({call.result(PATIENCE_S) for call in calls[:paid]}) == 1
    assert [type(call.exception(PATIENCE_S)) for call in calls[paid:]] == refused
    assert balance(log) == left


def test_only_the_command_whose_own_stream_was_taken_gets_a_conflict(
    crowd: Crowd, other: Writer
) -> None:
    log, committer = crowd.fund()
    stream_id = uuid4()
    twin, original = lookup(stream_id, cause(0, "request-2")), lookup(stream_id)
    with crowd.waiting():
        first, conflicting, last = crowd.queue_up(
            partial(take, committer, "0.10"),
            partial(pay_for, committer, twin, "0.10"),
            partial(take, committer, "0.10"),
        )
        before_insert(crowd.writer, 1, partial(pay_for, other.committer, original, "0.20"))
    assert isinstance(conflicting.exception(PATIENCE_S), Conflict)
    assert [first.exception(PATIENCE_S), last.exception(PATIENCE_S)] == [None, None]
    assert [entry.amount_micros for entry in ledger(log)[1:]] == [200_000, 100_000, 100_000]


def test_a_batch_is_committed_as_one_without_those_whose_stream_was_taken(crowd: Crowd) -> None:
    log, committer = crowd.fund()
    taken = [uuid4(), uuid4()]
    with crowd.waiting():
        calls = crowd.queue_up(
            *[partial(take, committer, "0.10")] * 3,
            *(
                partial(pay_for, committer, lookup(each, cause(0, "late")), "0.10")
                for each in taken
            ),
        )
        for stream in taken:  # Only the streams have moved on, not the wallet.
            log.append(lookup(stream))
        before = log.appended.count
    outcomes = [type(call.exception(PATIENCE_S)) for call in calls]
    assert outcomes == [type(None)] * 3 + [Conflict] * 2
    assert log.appended.count == before + 2  # One more is what kept the committer busy.
    assert balance(log) == "0.70"


def test_a_race_lost_again_and_again_is_given_up(
    monkeypatch: pytest.MonkeyPatch, funded: Writer, other: Writer
) -> None:
    monkeypatch.setattr(domain.accounts.committer, "RACES_MAX", 1)
    monkeypatch.setattr(domain.accounts.committer, "CONFLICTS_MAX", 3)
    funded.recorder.meanwhile = partial(take, other.committer, "0.01")
    with pytest.raises(ServiceUnavailable):
        take(funded.committer, "0.50")
    funded.recorder.meanwhile = lambda: None
    assert balance(funded.log) == "0.96"  # Once for the batch and three times alone.
    take(funded.committer, "0.96")
    assert balance(funded.log) == "0.00"


def test_a_loser_who_cannot_ask_why_is_told_that_the_log_is_out_of_reach(
    funded: Writer, other: Writer
) -> None:
    stream_id = uuid4()
    other.log.append(lookup(stream_id))

    def lose_the_database() -> None:
        funded.recorder.fail("on select", None)  # Whether the events are its own echo.
        funded.recorder.fail("on select", None)  # What the wallet has become.
        funded.recorder.fail("on select", OperationalError)  # Which stream was taken.

    before_insert(funded, 0, lose_the_database)
    with pytest.raises(ServiceUnavailable):
        pay_for(funded.committer, lookup(stream_id, cause(0, "request-2")), "0.10")
    assert funded.recorder.faults_left == 0
    assert balance(funded.log) == "1.00"


def test_positions_and_versions_of_two_writers_interleave_without_gaps(
    funded: Writer, other: Writer
) -> None:
    for _ in range(10):
        take(funded.committer, "0.01")
        take(other.committer, "0.02")
    assert balance(other.log) == balance(funded.log) == "0.70"
    recorded = everything(funded.log)
    assert [each.position for each in recorded] == list(range(1, len(recorded) + 1))
    charges = [each for each in recorded if isinstance(each.event, Wallet.Charged)]
    assert len(charges) == 20
