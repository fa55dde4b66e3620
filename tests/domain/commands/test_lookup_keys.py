"""An Idempotency-Key of a single lookup: one charge and one outcome, whoever asks how often."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import pytest

from domain.commands import single_lookup
from domain.commands.single_lookup import LookupResult
from domain.errors import (
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InsufficientBalance,
    NumberLookupUnavailable,
)
from tests.domain.commands.asking import NUMBER, Asker, all_at_once
from tests.installation import (
    PATIENCE_S,
    PRICE_MICROS,
    CountingProvider,
    Installation,
    SetClock,
)

OTHER_NUMBER = "+14155550101"


@pytest.fixture
def provider() -> CountingProvider:
    return CountingProvider()


@pytest.fixture
def asker(installation: Installation, provider: CountingProvider) -> Asker:
    return Asker(installation, provider)


def test_the_first_outcome_is_given_again(asker: Asker, provider: CountingProvider) -> None:
    first = asker.look_up(key="key-1")
    assert not first.replayed
    for process in (asker.process, asker.other):
        again = asker.look_up(key="key-1", process=process)
        assert again.replayed
        assert (again.facts, again.lookup.answer) == (first.facts, first.lookup.answer)
    assert provider.asked == [NUMBER]
    assert asker.balance_micros == 1_000_000 - PRICE_MICROS
    asker.check()


@pytest.mark.parametrize("amount", ["1.00", "0.005"], ids=["rich", "just enough"])
def test_twelve_who_race_with_one_key_pay_once_and_get_one_answer(
    installation: Installation, provider: CountingProvider, amount: str
) -> None:
    asker = Asker(installation, provider, amount)
    processes = (asker.process, asker.other)
    outcomes = all_at_once(12, lambda each: asker.look_up(key="key-1", process=processes[each % 2]))
    results = [each for each in outcomes if isinstance(each, LookupResult)]
    assert len(results) == 12, outcomes
    assert sum(not each.replayed for each in results) == 1
    assert len({each.lookup.id for each in results}) == 1
    assert provider.asked == [NUMBER]
    assert asker.events()["Wallet.Charged"] == asker.events()["NumberLookup.Answered"] == 1
    asker.check()


def test_a_key_that_is_bound_refuses_another_number(asker: Asker) -> None:
    asker.look_up(key="key-1")
    with pytest.raises(IdempotencyKeyReused):
        asker.look_up(OTHER_NUMBER, key="key-1")
    assert asker.look_up(key="key-1").replayed
    assert asker.balance_micros == 1_000_000 - PRICE_MICROS


def test_a_key_belongs_to_one_organization_and_one_operation(
    installation: Installation, asker: Asker, provider: CountingProvider
) -> None:
    somebody_else = Asker(installation, provider)
    first = asker.look_up(key="key-1")
    other = somebody_else.look_up(OTHER_NUMBER, key="key-1")
    assert not other.replayed
    assert other.lookup.id != first.lookup.id
    _, replayed = asker.create([NUMBER], key="key-1")
    assert not replayed


@pytest.mark.parametrize("next_number", [NUMBER, OTHER_NUMBER])
def test_a_failed_request_frees_its_key_for_any_request(
    asker: Asker, provider: CountingProvider, next_number: str
) -> None:
    provider.all_down = True
    for _ in range(2):
        with pytest.raises(NumberLookupUnavailable):
            asker.look_up(key="key-1")
    provider.all_down = False
    result = asker.look_up(next_number, key="key-1", process=asker.other)
    assert (result.facts.phone_number, result.replayed) == (next_number, False)
    asker.check()


def test_a_request_that_could_not_be_paid_frees_its_key(
    installation: Installation, provider: CountingProvider
) -> None:
    asker = Asker(installation, provider, "0")
    with pytest.raises(InsufficientBalance):
        asker.look_up(key="key-1")
    process = asker.process
    process.accounts.deposit(asker.organization_id, 5_000, "bank-2", process.cause())
    assert not asker.look_up(OTHER_NUMBER, key="key-1").replayed


def test_a_bug_frees_its_key_too(asker: Asker, provider: CountingProvider) -> None:
    provider.bug = KeyError("a bug of the adapter")
    with pytest.raises(KeyError):
        asker.look_up(key="key-1")
    provider.bug = None
    assert not asker.look_up(OTHER_NUMBER, key="key-1").replayed


class Running:
    """A first request with a key that is under way until it is told to end."""

    def __init__(self, asker: Asker, provider: CountingProvider) -> None:
        self._begun, self._end = Event(), Event()
        provider.meanwhile = self._pause
        self._request = in_background(lambda: asker.look_up(key="key-1"))
        assert self._begun.wait(PATIENCE_S)
        provider.meanwhile = int

    def _pause(self) -> None:
        self._begun.set()
        self._end.wait(PATIENCE_S)

    def end(self) -> LookupResult:
        """Let it end; return its outcome or raise its refusal."""
        self._end.set()
        return self._request.result(PATIENCE_S)


def in_background(work: Callable[[], LookupResult]) -> "Future[LookupResult]":
    pool = ThreadPoolExecutor(1)
    request = pool.submit(work)
    pool.shutdown(wait=False)
    return request


def test_a_twin_waits_for_the_first_request_and_answers_like_it(
    asker: Asker, provider: CountingProvider
) -> None:
    running = Running(asker, provider)
    twin = in_background(lambda: asker.look_up(key="key-1", process=asker.other))
    first, second = running.end(), twin.result(PATIENCE_S)
    assert (first.replayed, second.replayed) == (False, True)
    assert second.lookup.answer == first.lookup.answer
    assert provider.asked == [NUMBER]
    asker.check()


def test_a_twin_of_a_request_that_fails_asks_for_itself(
    asker: Asker, provider: CountingProvider
) -> None:
    running = Running(asker, provider)
    provider.all_down = True
    twin = in_background(lambda: asker.look_up(key="key-1", process=asker.other))
    provider.meanwhile = lambda: setattr(provider, "all_down", False)
    with pytest.raises(NumberLookupUnavailable):
        running.end()
    assert not twin.result(PATIENCE_S).replayed
    assert provider.asked == [NUMBER, NUMBER]
    assert asker.events()["Wallet.Charged"] == 1
    asker.check()


def test_a_request_for_another_number_is_told_at_once(
    asker: Asker, provider: CountingProvider
) -> None:
    running = Running(asker, provider)
    with pytest.raises(IdempotencyKeyReused):
        asker.look_up(OTHER_NUMBER, key="key-1", process=asker.other)
    running.end()
    asker.check()


def test_a_twin_that_has_waited_long_enough_is_told_to_come_back(
    asker: Asker, provider: CountingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_lookup, "WAIT_S", 0.05)
    running = Running(asker, provider)
    with pytest.raises(IdempotencyInProgress) as refused:
        asker.look_up(key="key-1", process=asker.other)
    assert refused.value.retryable
    running.end()
    assert asker.look_up(key="key-1").replayed
    asker.check()


@pytest.mark.parametrize("amount", ["1.00", "0.005"], ids=["rich", "just enough"])
def test_a_lease_of_a_slow_process_lapses_and_costs_no_second_charge(
    installation: Installation, provider: CountingProvider, amount: str
) -> None:
    clock = SetClock()
    asker = Asker(installation, provider, amount)
    asker.process.clock = asker.other.clock = clock
    running = Running(asker, provider)
    clock.now += single_lookup.LEASE
    clock.forward(seconds=1)
    result = asker.look_up(key="key-1", process=asker.other)
    assert not result.replayed
    late = running.end()
    assert late.replayed
    assert provider.asked == [NUMBER, NUMBER]
    assert asker.events()["Wallet.Charged"] == 1
    assert asker.look_up(key="key-1").lookup.answer == result.lookup.answer
    asker.check()
