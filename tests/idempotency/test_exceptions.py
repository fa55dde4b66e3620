"""What only lookups or only changes of plans have to do with an Idempotency-Key."""

from typing import Any
from uuid import UUID

import pytest

from domain.errors import (
    LATE,
    REJECTED,
    IdempotencyKeyReused,
    IncompleteNetworkAnswer,
    NumberLookupUnavailable,
    ProvisioningError,
)
from domain.links.network import NoEndpoint
from domain.links.plan_change import PlanChange
from domain.lookups import single as single_lookup
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.domain.buying import DEADLINE_S, Gate, Patience
from tests.idempotency.conftest import Make
from tests.idempotency.operations import LeasedLookup, LocalLookup, Swap, TopUp
from tests.idempotency.test_commands import TEN_MICROS, just_enough, of
from tests.installation import PATIENCE_S, SetClock, wait_until

pytestmark = pytest.mark.each_database


def counted(owner: object, name: str, patch: pytest.MonkeyPatch) -> list[str]:
    """Count the calls of a method."""
    calls, method = list[str](), getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        calls.append(name)
        return method(*args, **options)

    patch.setattr(owner, name, call)
    return calls


@of([LocalLookup])
@pytest.mark.parametrize(("key", "looks"), [("key-2", 1), (None, 0)])
def test_a_local_lookup_is_one_look_at_the_log_and_one_commit(
    operation: LocalLookup, key: str | None, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = operation.process
    operation.ask()  # Now the wallet and the key of personal data are held.
    reads = counted(process.log.recorder, "select_events", monkeypatch)
    commits = counted(process.log.recorder, "insert_events", monkeypatch)
    for database in {process.views, process.stores, process.databases.keys}:
        for name in ("rows", "reading", "writing"):
            monkeypatch.setattr(database, name, None)
    operation.ask(key)  # type: ignore[arg-type]  # None is no key.
    assert (len(reads), len(commits)) == (looks, 1)


@of([LeasedLookup])
def test_a_twin_of_a_lookup_that_fails_asks_for_itself(operation: LeasedLookup) -> None:
    first, gate = operation.under_way(Unavailable("down"))
    twin = operation.ask_later(process=operation.other)
    gate.open()
    with pytest.raises(NumberLookupUnavailable):
        first.result(PATIENCE_S)
    assert not twin.result(PATIENCE_S).replayed
    assert (operation.asked, operation.made) == (2, 1)


@of([LeasedLookup])
@pytest.mark.parametrize("wallet", ["rich", "just enough"])
def test_a_lease_of_a_slow_process_lapses_and_costs_no_second_charge(
    make: Make, wallet: str
) -> None:
    operation, clock = make("10.00" if wallet == "rich" else just_enough(LeasedLookup)), SetClock()
    operation.process.clock = operation.other.clock = clock
    first, gate = operation.under_way()
    clock.now += single_lookup.LEASE
    clock.forward(seconds=1)
    faster = operation.ask(process=operation.other)
    assert not faster.replayed
    gate.open()
    assert first.result(PATIENCE_S) == operation.ask() == faster.again
    assert (operation.asked, operation.made) == (2, 1)


def test_a_lease_outlasts_every_wait_for_it() -> None:
    assert single_lookup.LEASE.total_seconds() > single_lookup.WAIT_S


@of([Swap])
def test_a_failed_change_of_which_something_was_applied_is_bound_to_its_key(
    operation: Swap,
) -> None:
    operation.meet(NoEndpoint("no id"))
    with pytest.raises(IncompleteNetworkAnswer) as told:
        operation.ask()
    [old] = operation.link.activations
    details = {"refunded": "8.00", "removed": [str(old)], "added": []}
    assert told.value.details == {"reason": REJECTED, **details}
    head = operation.process.log.head()
    for process in (operation.process, operation.other):
        with pytest.raises(IncompleteNetworkAnswer) as again:
            operation.ask(process=process)
        assert again.value.is_bound
        assert again.value.details == told.value.details
        assert str(again.value) == str(told.value)
    with pytest.raises(IdempotencyKeyReused):
        operation.ask(body=1)
    assert operation.process.log.head() == head
    assert operation.buyer.balance_micros == TEN_MICROS


@of([Swap])
def test_twins_of_a_change_that_has_done_something_are_bound_to_its_failure(
    operation: Swap,
) -> None:
    first, gate = operation.under_way(NoEndpoint("no id"))
    twins = [operation.ask_later(process=each) for each in (operation.process, operation.other)]
    operation.until_twins_wait(2, operation.process)
    operation.until_twins_wait(1, operation.other)
    gate.open()
    told = first.exception(PATIENCE_S)
    assert isinstance(told, IncompleteNetworkAnswer)
    for twin in twins:
        failure = twin.exception(PATIENCE_S)
        assert isinstance(failure, IncompleteNetworkAnswer)
        assert failure.is_bound
        assert failure.details == told.details
    assert operation.made == 1


@of([TopUp])
def test_a_twin_that_finds_the_link_busy_with_its_own_change_gets_the_outcome_in_time(
    make: Make, patience: Patience
) -> None:
    """The change fails long before its link opens again, and the twin had not seen it begin."""
    operation = make()
    patient, gate = operation.buyer.open(deadline_s=10 * DEADLINE_S), Gate()
    find = patient.log.find
    firsts: list[object] = []
    seen: list[object] = []

    def first_is_faster(kind: type, stream_id: UUID, **more: object) -> object:
        found = find(kind, stream_id, **more)
        if kind is PlanChange and not firsts:
            firsts.append(operation.ask_later())
            gate.wait()
        elif kind is PlanChange and not seen:
            assert found is not None
            seen.append(found)
            patience.end()  # Not before: a change that failed by then would have freed the key.
        return found

    patient.log.find = first_is_faster
    operation.meet(gate)
    with pytest.raises(ProvisioningError) as told:
        operation.ask(process=patient)
    assert told.value.details == {"reason": LATE, "refunded": "4.00", "removed": [], "added": []}
    assert operation.buyer.link(operation.link.id).open_change == operation.stream()
    gate.open()


@of([Swap])
def test_a_removal_that_was_done_after_all_binds_its_key(make: Make, patience: Patience) -> None:
    operation, gate = make(), Gate(OutcomeUnknown("lost"))
    buyer, patient = operation.buyer, operation.buyer.open()
    buyer.network.after("remove_plan", gate)
    buyer.network.before("usage", Unavailable("down"))  # When it is asked what became of it.
    first = operation.ask_later()
    gate.wait()
    patience.end()
    told = first.exception(PATIENCE_S)
    assert isinstance(told, ProvisioningError)
    assert told.details == {"reason": LATE, "refunded": "8.00", "removed": [], "added": []}
    wait_until(lambda: buyer.network.count("usage") == 1)
    gate.open()
    wait_until(lambda: not buyer.link(operation.link.id).current_activations)
    for _ in range(2):
        with pytest.raises(ProvisioningError) as bound:
            operation.ask(process=patient)
        assert bound.value.is_bound
        assert bound.value.details == told.details
    assert buyer.balance_micros == TEN_MICROS
