"""An Idempotency-Key where the provider is in this process: no lease, the log alone decides."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import OperationalError

from domain.cause import month_of
from domain.errors import (
    BillingNotConfigured,
    IdempotencyKeyReused,
    InsufficientBalance,
    NotFound,
    NumberLookupUnavailable,
    ServiceUnavailable,
)
from tests.domain.commands.asking import NUMBER, Asker, all_at_once
from tests.installation import PRICE_MICROS, CountingProvider, Installation, numbers
from tests.seeds import Seed

OTHER_NUMBER = "+14155550101"


@pytest.fixture
def installation(tmp_path: Path, migrated: Seed) -> Iterator[Installation]:
    made = Installation(tmp_path, like=migrated, SANDBOX="false")
    yield made
    made.close()


@pytest.fixture
def provider() -> CountingProvider:
    return CountingProvider()


@pytest.fixture
def asker(installation: Installation, provider: CountingProvider) -> Asker:
    asker = Asker(installation, provider)
    drop_leases(asker)
    return asker


def drop_leases(asker: Asker) -> None:
    """Let every use of a lease fail, and be counted."""
    with asker.process.stores.writing() as connection:
        connection.exec_driver_sql("DROP TABLE leases")


def counted(owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count the calls of a method."""
    calls, method = list[str](), getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        calls.append(name)
        return method(*args, **options)

    monkeypatch.setattr(owner, name, call)
    return calls


@pytest.mark.parametrize(("key", "looks"), [("key-2", 1), (None, 0)])
def test_a_lookup_is_one_look_at_the_log_and_one_commit(
    asker: Asker, key: str | None, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = asker.process
    asker.look_up(key="key-1")  # Now the wallet and the key of personal data are held.
    reads = counted(process.log.recorder, "select_events", monkeypatch)
    commits = counted(process.log.recorder, "insert_events", monkeypatch)
    for database in {process.views, process.stores, process.databases[2]}:
        monkeypatch.setattr(database, "rows", None)
        monkeypatch.setattr(database, "reading", None)
        monkeypatch.setattr(database, "writing", None)
    asker.look_up(key=key)
    assert (len(reads), len(commits)) == (looks, 1)


def test_the_first_outcome_is_given_again(asker: Asker, provider: CountingProvider) -> None:
    first = asker.look_up(key="key-1")
    assert not first.replayed
    for process in (asker.process, asker.other):
        again = asker.look_up(key="key-1", process=process)
        assert again.replayed
        assert (again.facts, again.lookup.answer) == (first.facts, first.lookup.answer)
        with pytest.raises(IdempotencyKeyReused):
            asker.look_up(OTHER_NUMBER, key="key-1", process=process)
    assert provider.asked == [NUMBER]
    assert asker.balance_micros == 1_000_000 - PRICE_MICROS
    asker.check()


@pytest.mark.parametrize("amount", ["1.00", "0.005"], ids=["rich", "just enough"])
def test_twelve_who_race_with_one_key_pay_once_and_get_one_answer(
    installation: Installation, provider: CountingProvider, amount: str
) -> None:
    asker = Asker(installation, provider, amount)
    drop_leases(asker)
    processes = (asker.process, asker.other)
    outcomes = all_at_once(12, lambda each: asker.look_up(key="key-1", process=processes[each % 2]))
    assert [each for each in outcomes if isinstance(each, Exception)] == []
    assert sum(not each.replayed for each in outcomes) == 1  # type: ignore[union-attr]  # none failed
    assert len({each.lookup.id for each in outcomes}) == 1  # type: ignore[union-attr]  # none failed
    assert asker.events()["Wallet.Charged"] == asker.events()["NumberLookup.Answered"] == 1
    asker.check()


def test_of_twelve_numbers_that_race_for_one_key_one_gets_it(asker: Asker) -> None:
    wanted, processes = numbers(12), (asker.process, asker.other)
    outcomes = all_at_once(
        12, lambda each: asker.look_up(wanted[each], key="key-1", process=processes[each % 2])
    )
    refused = [each for each in outcomes if isinstance(each, IdempotencyKeyReused)]
    assert len(refused) == 11, outcomes
    assert asker.balance_micros == 1_000_000 - PRICE_MICROS
    asker.check()


@pytest.mark.parametrize("amount", ["1.00", "0.005"], ids=["rich", "just enough"])
@pytest.mark.parametrize("price_micros", [PRICE_MICROS, 0])
def test_a_twin_that_commits_after_our_look_gives_us_its_outcome(
    installation: Installation, provider: CountingProvider, amount: str, price_micros: int
) -> None:
    asker = Asker(installation, provider, amount)
    twins = []

    def twin() -> None:
        twins.append(asker.look_up(key="key-1", price_micros=price_micros, process=asker.other))

    provider.on_call(1, twin)
    result = asker.look_up(key="key-1", price_micros=price_micros)
    assert (result.replayed, twins[0].replayed) == (True, False)
    assert result.lookup.answer == twins[0].lookup.answer
    assert asker.events()["NumberLookup.Answered"] == 1
    asker.check()


def test_another_number_that_commits_after_our_look_keeps_the_key(
    asker: Asker, provider: CountingProvider
) -> None:
    provider.on_call(1, lambda: asker.look_up(OTHER_NUMBER, key="key-1", process=asker.other))
    with pytest.raises(IdempotencyKeyReused):
        asker.look_up(key="key-1")
    assert asker.look_up(OTHER_NUMBER, key="key-1").replayed
    assert asker.balance_micros == 1_000_000 - PRICE_MICROS
    asker.check()


Trouble = Callable[[Asker, CountingProvider], None]


def outage(_: Asker, provider: CountingProvider) -> None:
    provider.all_down = True


def bug(_: Asker, provider: CountingProvider) -> None:
    provider.bug = KeyError("a bug of the adapter")


@pytest.mark.parametrize(("trouble", "error"), [(outage, NumberLookupUnavailable), (bug, KeyError)])
@pytest.mark.parametrize("next_number", [NUMBER, OTHER_NUMBER])
def test_a_failed_request_frees_its_key_for_any_request(
    asker: Asker,
    provider: CountingProvider,
    trouble: Trouble,
    error: type[Exception],
    next_number: str,
) -> None:
    trouble(asker, provider)
    with pytest.raises(error):
        asker.look_up(key="key-1")
    provider.all_down, provider.bug = False, None
    assert not asker.look_up(next_number, key="key-1", process=asker.other).replayed
    asker.check()


@pytest.mark.parametrize(
    ("amount", "error"), [("0", InsufficientBalance), ("", BillingNotConfigured)]
)
def test_what_cannot_be_paid_asks_nobody_and_frees_its_key(
    installation: Installation,
    provider: CountingProvider,
    amount: str,
    error: type[Exception],
) -> None:
    asker = Asker(installation, provider, amount)
    for _ in range(2):
        with pytest.raises(error):
            asker.look_up(key="key-1")
    assert provider.asked == []
    assert not asker.look_up(OTHER_NUMBER, key="key-1", price_micros=0).replayed


def test_a_commit_whose_reply_was_lost_is_given_again(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = asker.process.log.recorder
    insert = recorder.insert_events

    def insert_and_lose(*args: Any, **options: Any) -> None:
        insert(*args, **options)
        patch.setattr(recorder, "select_events", lost)
        patch.setattr(recorder, "insert_events", lost)
        lost()

    def lost(*_: Any, **__: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(asker.process.committer, "_settle_s", 0.0)  # It gives up at once.
        patch.setattr(recorder, "insert_events", insert_and_lose)
        with pytest.raises(ServiceUnavailable):
            asker.look_up(key="key-1", process=asker.process)
    for process in (asker.other, asker.process):
        assert asker.look_up(key="key-1", process=process).replayed
    assert asker.balance_micros == 1_000_000 - PRICE_MICROS
    asker.check()


def test_an_answer_whose_key_was_erased_is_gone(asker: Asker) -> None:
    asker.look_up(key="key-1")
    now = asker.process.clock()
    asker.process.vault.erase(month_of(now.replace(year=now.year + 1)))
    for process in (asker.process, asker.other):
        with pytest.raises(NotFound):
            asker.look_up(key="key-1", process=process)
