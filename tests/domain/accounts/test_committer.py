"""The committer: everybody who waits is committed together, and each is answered for itself."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import OperationalError

import domain.accounts.committer
from domain.accounts.committer import Command, Committer, Outcome
from domain.accounts.wallet import wallet_id
from domain.errors import Conflict, InsufficientBalance, ServiceUnavailable
from domain.lookups.single import NumberLookup
from tests.domain.build import (
    ORGANIZATION,
    cause,
    charge,
    lookup,
    open_wallet,
    pay_for,
    pay_in,
    take,
)
from tests.domain.crowd import ELSEWHERE, PATIENCE_S, Crowd
from tests.domain.writers import Writer, balance, everything, ledger
from tests.servers.guard import wait_for

THREADS = 50


@pytest.mark.parametrize(
    ("paid_in", "price", "payers", "left"),
    [("0.01", "0.01", 1, "0.00"), ("1.00", "0.03", 33, "0.01"), ("0.005", "0.01", 0, "0.005")],
)
def test_fifty_threads_spend_the_last_cent_once(
    writer: Writer, paid_in: str, price: str, payers: int, left: str
) -> None:
    open_wallet(writer.log, writer.committer, paid_in, ORGANIZATION)
    with ThreadPoolExecutor(THREADS) as pool:
        calls = [pool.submit(take, writer.committer, price) for _ in range(THREADS)]
        refusals = [error for call in calls if (error := call.exception(PATIENCE_S))]
    assert len(refusals) == THREADS - payers
    assert {type(refusal) for refusal in refusals} <= {InsufficientBalance}
    assert balance(writer.log) == left
    lookups = [
        each for each in everything(writer.log) if isinstance(each.event, NumberLookup.Event)
    ]
    assert len(lookups) == payers


def test_all_that_wait_are_committed_as_one(crowd: Crowd) -> None:
    log, committer = crowd.fund()
    with crowd.waiting():
        calls = crowd.queue_up(*[partial(take, committer, "0.01")] * 20)
        before = log.appended.count
    assert {call.result(PATIENCE_S) for call in calls} == {log.head()}
    assert log.appended.count == before + 2  # One more is what kept the committer busy.
    assert balance(log) == "0.80"


def test_who_comes_while_the_committer_gives_way_is_in_the_same_commit(
    monkeypatch: pytest.MonkeyPatch, crowd: Crowd
) -> None:
    log, committer = crowd.fund()
    late: list[Future[int]] = []

    def give_way() -> None:
        monkeypatch.undo()
        late.extend(crowd.queue_up(partial(take, committer, "0.02")))

    with crowd.waiting():
        calls = crowd.queue_up(*[partial(take, committer, "0.01")] * 2)
        monkeypatch.setattr(domain.accounts.committer, "give_way", give_way)
    assert {call.result(PATIENCE_S) for call in calls} == {late[0].result(PATIENCE_S)}
    assert balance(log) == "0.96"


def test_the_committer_gives_way_while_it_has_company_and_hardly_for_a_lone_client(
    monkeypatch: pytest.MonkeyPatch, crowd: Crowd
) -> None:
    _, committer = crowd.fund()
    given: list[None] = []
    monkeypatch.setattr(domain.accounts.committer, "give_way", lambda: given.append(None))
    for _ in range(20):
        take(committer, "0.01")
    # Never, unless the client asks again before the committer has looked who waits.
    assert len(given) < 10
    given.clear()
    with crowd.waiting():
        calls = crowd.queue_up(*[partial(take, committer, "0.01")] * 2)
    assert all(call.result(PATIENCE_S) for call in calls)
    take(committer, "0.01")  # The batch before it had company.
    assert len(given) >= 2


def test_a_refusal_fails_alone_and_leaves_nothing_behind(crowd: Crowd) -> None:
    log, committer = crowd.fund()
    with crowd.waiting():
        first, refused, last = crowd.queue_up(
            partial(take, committer, "0.60"),
            partial(take, committer, "0.50"),
            partial(take, committer, "0.40"),
        )
    assert isinstance(refused.exception(PATIENCE_S), InsufficientBalance)
    assert first.result(PATIENCE_S) == last.result(PATIENCE_S)
    assert [entry.amount_micros for entry in ledger(log)] == [1_000_000, 600_000, 400_000]
    pay_in(committer, "0.10")
    assert balance(log) == "0.10"


def test_what_is_paid_in_ahead_in_the_same_batch_can_be_spent(crowd: Crowd) -> None:
    log, committer = crowd.fund("0")
    with crowd.waiting():
        calls = crowd.queue_up(
            partial(take, committer, "0.50"),  # Too early: refused, then looked at once more.
            partial(pay_in, committer, "0.60"),
            partial(take, committer, "0.60"),
        )
    assert isinstance(calls[0].exception(PATIENCE_S), InsufficientBalance)
    assert [call.exception(PATIENCE_S) for call in calls[1:]] == [None, None]
    assert balance(log) == "0.00"


def test_of_twins_on_one_stream_exactly_one_is_charged(crowd: Crowd) -> None:
    log, committer = crowd.fund()
    stream_id = uuid4()
    twins = [lookup(stream_id, cause(0, f"request-{number}")) for number in range(5)]
    with crowd.waiting():
        calls = crowd.queue_up(*(partial(pay_for, committer, twin, "0.60") for twin in twins))
    refusals = [error for call in calls if (error := call.exception(PATIENCE_S))]
    assert [type(error) for error in refusals] == [Conflict] * 4
    assert {getattr(error, "stream_id", None) for error in refusals} == {stream_id}
    assert balance(log) == "0.40"


def test_a_full_queue_turns_callers_away_at_once(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(domain.accounts.committer, "QUEUE_MAX", 3)
    crowd: Crowd = request.getfixturevalue("crowd")  # Made with the narrow queue.
    log, committer = crowd.fund()
    with crowd.waiting():
        calls = crowd.queue_up(*[partial(take, committer, "0.01")] * 3)
        with pytest.raises(ServiceUnavailable):
            take(committer, "0.01")
    assert [call.exception(PATIENCE_S) for call in calls] == [None] * 3
    assert balance(log) == "0.97"


def test_a_caller_who_loses_patience_before_being_taken_is_never_charged(
    monkeypatch: pytest.MonkeyPatch, crowd: Crowd
) -> None:
    log, committer = crowd.fund()
    with crowd.waiting():
        monkeypatch.setattr(domain.accounts.committer, "WAIT_S", 0.01)
        with pytest.raises(ServiceUnavailable):
            take(committer, "0.50")
        monkeypatch.undo()
    take(committer, "0.01")
    assert balance(log) == "0.99"


def test_a_command_that_is_taken_runs_to_its_end_without_its_caller(
    monkeypatch: pytest.MonkeyPatch, crowd: Crowd
) -> None:
    log, committer = crowd.fund()
    monkeypatch.setattr(domain.accounts.committer, "WAIT_S", 0.01)
    with crowd.waiting() as stalled:
        assert isinstance(stalled.exception(PATIENCE_S), ServiceUnavailable)
    monkeypatch.undo()
    take(committer, "0.01")
    assert balance(log, ELSEWHERE) == "0.000001"


def test_closing_commits_what_waits_and_refuses_what_comes_later(crowd: Crowd) -> None:
    log, committer = crowd.fund()
    stream_id = uuid4()
    twins = [lookup(stream_id, cause(0, f"request-{number}")) for number in range(2)]
    with crowd.waiting():
        calls = crowd.queue_up(
            *(partial(pay_for, committer, twin, "0.10") for twin in twins),
            partial(take, committer, "0.10"),
        )
        [closing] = crowd.queue_up(committer.close)
    closing.result(PATIENCE_S)
    assert [type(call.exception(PATIENCE_S)) for call in calls] == [
        type(None),
        Conflict,
        type(None),
    ]
    with pytest.raises(ServiceUnavailable):
        take(committer, "0.01")
    assert balance(log) == "0.80"


def test_a_committer_that_never_worked_closes_too(writer: Writer) -> None:
    idle = Committer(writer.log)
    idle.close()
    idle.close()
    with pytest.raises(ServiceUnavailable):
        take(idle, "0.01")


def test_what_must_be_first_is_refused_and_costs_the_others_nothing(crowd: Crowd) -> None:
    log, committer = crowd.fund()
    begun, told = uuid4(), list[str]()
    pay_for(committer, lookup(begun), "0.10")
    streams = [begun, uuid4(), begun, uuid4()]
    with crowd.waiting():
        commands = [first(committer, stream, told) for stream in streams]
        before = log.appended.count
    assert wait_for(lambda: told.count("told") == len(streams), PATIENCE_S)
    for command in (commands[0], commands[2]):
        with pytest.raises(Conflict):
            command.outcome.result()
    assert {command.outcome.result() for command in (commands[1], commands[3])} == {log.head()}
    assert log.appended.count == before + 2  # One more is what kept the committer busy.
    assert balance(log) == "0.70"


def test_of_twins_that_must_be_first_one_is(crowd: Crowd) -> None:
    log, committer = crowd.fund()
    stream, told = uuid4(), list[str]()
    with crowd.waiting():
        one, *others = [first(committer, stream, told) for _ in range(3)]
    assert wait_for(lambda: told.count("told") == 3, PATIENCE_S)
    assert one.outcome.result() == log.head()
    for other in others:
        with pytest.raises(Conflict):
            other.outcome.result()
    assert balance(log) == "0.90"


@pytest.mark.parametrize(
    "error", [OperationalError, sqlite3.OperationalError], ids=["foreseen", "unforeseen"]
)
def test_a_log_that_cannot_tell_who_is_first_answers_at_once_and_works_again(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Only who asks for it fails, unless it is an error that nobody expects."""
    log, committer = crowd.fund()
    told = list[str]()

    def gone(_: object) -> None:
        raise error

    with crowd.waiting():
        monkeypatch.setattr(log.recorder, "select_newest", gone)
        asking = first(committer, uuid4(), told)
        (other,) = crowd.queue_up(partial(take, committer, "0.10"))
    failure = other.exception(PATIENCE_S / 4)
    assert isinstance(failure, ServiceUnavailable) is (error is sqlite3.OperationalError)
    assert wait_for(lambda: "told" in told, PATIENCE_S)
    with pytest.raises(ServiceUnavailable):
        asking.outcome.result()
    monkeypatch.undo()
    take(committer, "0.20" if failure else "0.10")
    assert balance(log) == "0.80"


def test_one_ring_wakes_whoever_has_many_in_a_batch(crowd: Crowd) -> None:
    _, committer = crowd.fund()
    told = list[str]()
    ring = partial(told.append, "rung")
    with crowd.waiting():
        for _ in range(5):
            first(committer, uuid4(), told, ring)
    assert wait_for(lambda: "rung" in told, PATIENCE_S)
    assert told == [*["told"] * 5, "rung"]


def test_an_outcome_is_open_from_being_taken_until_it_is_answered() -> None:
    outcome = Outcome()
    assert not outcome.is_open
    outcome.claim()
    assert outcome.is_open
    outcome.succeed(1)
    assert outcome.wait(0.0)  # Its submitter has heard it and goes on.
    assert not outcome.is_open


def first(
    committer: Committer, stream: UUID, told: list[str], ring: Callable[[], object] | None = None
) -> Command:
    """Submit a charge for a lookup that must be the first event of a stream; wait for nothing."""
    payment = charge("0.10")
    command = committer.prepare(
        wallet_id(ORGANIZATION),
        lambda wallet: wallet.book([payment], cause()),
        lookup(stream),
        is_first=True,
    )
    command.outcome = Outcome(partial(told.append, "told"), ring or partial(told.append, "rung"))
    committer.submit(command)
    return command
