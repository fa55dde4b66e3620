"""The rules of an Idempotency-Key, each tested once for the commands of all operations."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from eventsourcing.persistence import OperationalError

from domain.errors import (
    LATE,
    BillingNotConfigured,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InsufficientBalance,
    NotFound,
    ProvisioningError,
    ServiceUnavailable,
)
from domain.links import change_plans
from domain.links import create as link_create
from domain.lookups import single
from domain.money import format_amount
from domain.months import month_of
from tests.domain.asking import all_at_once
from tests.faulty_network import Killed
from tests.idempotency.conftest import Make
from tests.idempotency.operations import (
    AT_THE_NETWORK,
    AWAITED,
    EVERY,
    FREED_BY_TROUBLE,
    KEY,
    Creation,
    Job,
    LeasedLookup,
    LocalLookup,
    Operation,
    Swap,
    Told,
    TopUp,
)
from tests.installation import PATIENCE_S, Process, SetClock, on_sqlite, sqlite_only
from tests.support.erasing import erase_months

pytestmark = pytest.mark.each_database

TEN_MICROS = 10_000_000
# Who is first is decided by the commit, which is that of a top-up or of a lookup without a lease.
SAME_COMMIT = (LeasedLookup, Swap)
# Races and lost replies are tried on both databases; whatever only reads the log has no need of it.
on_one_database = sqlite_only("the rule is the same whatever holds the log")


def of(
    kinds: Sequence[type[Operation]], known: Sequence[type[Operation]] = ()
) -> pytest.MarkDecorator:
    """Say for which operations a rule holds; PostgreSQL sees the `known` in another of them."""
    cases = [
        pytest.param(
            each, marks=[pytest.mark.any_database] if each in known else [], id=each.__name__
        )
        for each in kinds
    ]
    return pytest.mark.parametrize("kind", cases, indirect=True)


def just_enough(kind: type[Operation]) -> str:
    return format_amount(kind.cost_micros)


@pytest.mark.any_database
@of(EVERY)
def test_the_first_outcome_comes_again_whatever_has_changed_and_any_other_request_is_refused(
    operation: Operation,
) -> None:
    first, asked = operation.ask(), operation.asked
    assert (first.id, first.replayed) == (operation.stream(), False)
    assert operation.buyer.balance_micros == TEN_MICROS - operation.cost_micros
    for body in range(1, operation.bodies):
        for process in (operation.process, operation.other):
            with pytest.raises(IdempotencyKeyReused):
                operation.ask(body=body, process=process)
    for change in (lambda: None, operation.spoil):
        change()
        for process in (operation.process, operation.other):
            assert operation.ask(process=process) == first.again
    assert (operation.made, operation.asked) == (1, asked)


@on_one_database
@of(EVERY)
def test_a_key_of_what_is_free_refuses_every_other_request(make: Make) -> None:
    operation = make(free=True)
    first = operation.ask()
    for body in range(1, operation.bodies):
        with pytest.raises(IdempotencyKeyReused):
            operation.ask(body=body)
    assert operation.ask() == first.again


@on_one_database
@of(EVERY)
@pytest.mark.parametrize("error", [InsufficientBalance, BillingNotConfigured])
def test_what_cannot_be_paid_asks_nobody_and_frees_its_key(
    make: Make, kind: type[Operation], error: type[Exception]
) -> None:
    micros = kind.cost_micros - 1 if error is InsufficientBalance else 0
    operation = make(format_amount(micros) if micros else "")
    for _ in range(2):
        with pytest.raises(error):
            operation.ask()
    assert (operation.made, operation.asked) == (0, 0)
    if not micros:
        operation.process.accounts.open_wallet(operation.organization_id, operation.process.cause())
    operation.buyer.pay_in(kind.cost_micros - micros)
    told = operation.ask(body=1)
    assert (told.id, told.replayed) == (operation.stream(), False)  # No attempt was used up.


@on_one_database
@of(FREED_BY_TROUBLE)
@pytest.mark.parametrize("body", [0, 1], ids=["the same", "another"])
def test_a_failure_that_kept_nothing_frees_its_key_for_any_request(
    operation: Operation, kind: type[Operation], body: int
) -> None:
    operation.meet(*(happening for happening, _ in kind.troubles))
    for _, told in kind.troubles:
        with pytest.raises(told):
            operation.ask()
    outcome = operation.ask(body=body, process=operation.other)
    attempt = len(kind.troubles) + 1
    assert (outcome.id, outcome.replayed) == (operation.stream(KEY, attempt), False)
    assert operation.ask(body=body) == outcome.again
    with pytest.raises(IdempotencyKeyReused):
        operation.ask(body=1 - body)
    assert operation.buyer.balance_micros == TEN_MICROS - operation.cost_micros


@of(EVERY, known=[Swap])
@pytest.mark.parametrize("wallet", ["rich", on_sqlite("just enough"), on_sqlite("free")])
def test_twelve_who_race_with_one_key_pay_once_and_get_one_outcome(
    make: Make, kind: type[Operation], wallet: str
) -> None:
    amount = just_enough(kind) if wallet == "just enough" and kind.cost_micros else "10.00"
    operation = make(amount, free=wallet == "free")
    before, processes = operation.buyer.balance_micros, (operation.process, operation.other)
    outcomes = all_at_once(12, lambda each: operation.ask(process=processes[each % 2]))
    told = [each for each in outcomes if isinstance(each, Told)]
    assert len(told) == 12, outcomes
    assert sum(not each.replayed for each in told) == 1
    assert len({each.id for each in told}) == 1
    assert operation.made == 1
    assert operation.buyer.balance_micros == before - operation.cost_micros


@of(EVERY, known=SAME_COMMIT)
def test_of_two_requests_that_race_with_one_key_one_is_refused(operation: Operation) -> None:
    processes = (operation.process, operation.other)
    outcomes = all_at_once(
        8, lambda each: operation.ask(body=each % 2, process=processes[each // 2 % 2])
    )
    told = [each for each in outcomes if isinstance(each, Told)]
    refused = [each for each in outcomes if isinstance(each, IdempotencyKeyReused)]
    assert (len(told), len(refused)) == (4, 4), outcomes
    assert (len({each.id for each in told}), operation.made) == (1, 1)


@on_one_database
@of(AWAITED)
def test_twins_of_a_request_under_way_get_its_outcome_and_another_is_refused_at_once(
    operation: Operation,
) -> None:
    first, gate = operation.under_way()
    with pytest.raises(IdempotencyKeyReused):
        operation.ask(body=1, process=operation.other)
    twins = [
        operation.ask_later(process=each)
        for each in (operation.process, operation.other, operation.other)
    ]
    operation.until_twins_wait(2, operation.process)
    operation.until_twins_wait(2, operation.other)
    gate.open()
    told = first.result(PATIENCE_S)
    assert not told.replayed
    assert [each.result(PATIENCE_S) for each in twins] == [told.again] * 3
    assert operation.made == 1


@on_one_database
@of([Creation, TopUp])
def test_twins_of_a_request_that_fails_get_its_failure_and_begin_nothing(
    operation: Operation, kind: type[Operation]
) -> None:
    happening, error = kind.troubles[0]
    first, gate = operation.under_way(happening)
    asked = [first, *(operation.ask_later() for _ in range(3))]
    operation.until_twins_wait(4, operation.process)
    gate.open()
    told = [each.exception(PATIENCE_S) for each in asked]
    assert {type(each) for each in told} == {error}
    assert len({str(each.details) for each in told}) == 1  # type: ignore[union-attr]  # all refusals
    assert operation.made == 1
    assert operation.buyer.balance_micros == TEN_MICROS


@on_one_database
@of(AWAITED)
def test_a_twin_that_is_out_of_patience_is_told_that_the_first_still_runs(
    operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = operation.hasty(monkeypatch)
    first, gate = operation.under_way()
    with pytest.raises(IdempotencyInProgress) as refused:
        operation.ask(process=hasty)
    assert refused.value.retryable
    gate.open()
    told = first.result(PATIENCE_S)
    assert operation.ask(process=hasty) == told.again


def overtaken(process: Process, meanwhile: Callable[[], object]) -> None:
    """Call something right after a process has looked for the key and found it free."""
    find, done = process.log.find, list[object]()

    def find_too_early(*arguments: Any, **more: Any) -> Any:
        found = find(*arguments, **more)
        if not done:
            assert found is None, "it is the key that is looked for first"
            done.append(None)
            meanwhile()
        return found

    process.log.find = find_too_early  # type: ignore[method-assign]  # As it is in this process.


@of(EVERY, known=SAME_COMMIT)
@pytest.mark.parametrize("case", ["paid", on_sqlite("free"), on_sqlite("all is gone")])
def test_a_twin_that_is_first_after_our_look_gives_us_its_outcome(make: Make, case: str) -> None:
    operation, firsts = make(free=case == "free"), list[Told]()

    def twin() -> None:
        firsts.append(operation.ask(process=operation.other))
        if case == "all is gone":
            operation.spoil()

    overtaken(operation.process, twin)
    assert operation.ask() == firsts[0].again
    assert operation.made == 1


@of(EVERY, known=SAME_COMMIT)
def test_another_request_that_is_first_after_our_look_keeps_the_key(operation: Operation) -> None:
    firsts = list[Told]()
    overtaken(
        operation.process, lambda: firsts.append(operation.ask(body=1, process=operation.other))
    )
    with pytest.raises(IdempotencyKeyReused):
        operation.ask()
    assert operation.ask(body=1) == firsts[0].again
    assert operation.made == 1


@on_one_database
@of([LeasedLookup])
def test_another_request_that_comes_too_late_keeps_no_twin_from_its_outcome(
    operation: Operation,
) -> None:
    """It holds the lease until it has seen that the key is taken."""
    firsts, key = list[Told](), operation.stream()

    def meanwhile() -> None:
        firsts.append(operation.ask(process=operation.other))
        until = operation.process.clock() + single.LEASE
        assert operation.other.counters.acquire(key, "another", until) is None

    overtaken(operation.process, meanwhile)
    assert operation.ask() == firsts[0].again
    assert operation.made == 1


@of(EVERY, known=SAME_COMMIT)
def test_a_commit_whose_reply_was_lost_is_found_by_the_same_key(
    operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = operation.other.log.recorder
    insert = recorder.insert_events

    def lost(*_: Any, **__: Any) -> None:
        raise OperationalError

    def insert_and_lose(*args: Any, **options: Any) -> None:
        insert(*args, **options)
        patch.setattr(recorder, "select_events", lost)
        patch.setattr(recorder, "insert_events", lost)
        lost()

    with monkeypatch.context() as patch:
        patch.setattr("domain.accounts.committer.SETTLE_S", 0.0)  # It gives up at once.
        patch.setattr(operation.other.committer, "_settle_s", 0.0)
        patch.setattr(recorder, "insert_events", insert_and_lose)
        with pytest.raises(ServiceUnavailable):
            operation.ask(process=operation.other)
    for process in (operation.process, operation.other):
        told = operation.ask(process=process)
        assert (told.id, told.replayed) == (operation.stream(), True)
    assert operation.made == 1
    assert operation.buyer.balance_micros == TEN_MICROS - operation.cost_micros


def begin_and_die(operation: Operation, patch: pytest.MonkeyPatch) -> None:
    """Kill a process right after it has asked the workers, which do nothing from then on."""

    def die(*_: object) -> None:
        raise Killed

    operation.buyer.dismiss()
    with patch.context() as life:
        for command in (link_create, change_plans):
            life.setattr(command, "wait_for", die)
        with pytest.raises(Killed):
            operation.ask()


@on_one_database
@of(AT_THE_NETWORK)
def test_what_a_dead_process_has_begun_is_found_by_the_same_key(
    operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = operation.process.log.head()
    begin_and_die(operation, monkeypatch)
    operation.buyer.hire(operation.other, after=head)
    told = operation.ask(process=operation.other)
    assert (told.id, told.replayed, operation.made) == (operation.stream(), True, 1)
    assert operation.buyer.balance_micros == TEN_MICROS - operation.cost_micros


@on_one_database
@of(AT_THE_NETWORK)
def test_what_a_dead_process_left_undone_is_given_up_once_its_deadline_has_passed(
    operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_and_die(operation, monkeypatch)
    clock = SetClock(operation.buyer.clock())
    hasty = operation.hasty(monkeypatch)
    object.__setattr__(hasty.failing, "clock", clock)
    with pytest.raises(IdempotencyInProgress):
        operation.ask(process=hasty)
    clock.forward(seconds=operation.buyer.deadline_s)
    with pytest.raises(ProvisioningError) as refused:
        operation.ask(process=hasty)
    assert refused.value.details["reason"] == LATE
    assert operation.buyer.balance_micros == TEN_MICROS
    operation.buyer.hire()
    assert operation.ask().id == operation.stream(KEY, 2)


@on_one_database
@of([LocalLookup, LeasedLookup, Job])
def test_an_outcome_whose_personal_data_was_erased_is_gone(operation: Operation) -> None:
    operation.ask()
    now = operation.process.clock()
    erase_months(operation.process.vault, month_of(now + timedelta(days=366)))
    for process in (operation.process, operation.other):
        with pytest.raises(NotFound):
            operation.ask(process=process)
    assert operation.made == 1
