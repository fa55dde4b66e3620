"""Answers: of a remote provider the organization's cache first; outages are never kept."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event, Lock
from uuid import UUID, uuid4

import pytest

from domain.cost import Cost
from domain.errors import NumberLookupUnavailable
from domain.lookups.answers import CALLS_MAX, NO_DATA, AnswerRules, Answers, asked_of
from domain.lookups.bulk_job import Asked
from domain.lookups.ports import Details, Portability
from domain.provider_errors import NotAnswered
from tests.installation import PATIENCE_S, CountingProvider, Process, SetClock, numbers, wait_until

ORGANIZATION = UUID("0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60")
NUMBER, OTHER = numbers(2)
DAY = timedelta(days=1)
AT_ONCE = 16


class Desk:
    """Answers over a real cache, with everything else in the hands of the test."""

    def __init__(
        self,
        process: Process,
        ttl: timedelta = DAY,
        *,
        remote: bool = True,
        cost: Cost | None = None,
        ttls: Mapping[str, timedelta] | None = None,
    ) -> None:
        self.provider = CountingProvider(remote=remote)
        self.clock = SetClock()
        self.pauses: list[float] = []
        rules = AnswerRules(
            ttl,
            {"+15005550001"},
            self.pauses.append,
            costs={} if cost is None else {self.provider.name: cost},
            cache_ttls=ttls or {},
            concurrency=AT_ONCE,
        )
        self.answers = Answers(self.provider, process.lookup_cache, self.clock, rules)

    def sources(self, *wanted: str, organization_id: UUID = ORGANIZATION) -> list[str | None]:
        answered = self.answers.many(organization_id, wanted)
        return [each.source if each else None for each in answered]


@pytest.fixture
def make(process: Process) -> Callable[..., Desk]:
    return lambda **rules: Desk(process, **rules)


@pytest.fixture
def desk(process: Process) -> Desk:
    return Desk(process)


def test_an_answer_is_kept_as_long_as_its_time_to_live(desk: Desk) -> None:
    first = desk.answers.one(ORGANIZATION, NUMBER)
    desk.clock.now += DAY
    second = desk.answers.one(ORGANIZATION, NUMBER)
    assert (first.source, second.source, second.as_of) == ("live", "cache", first.as_of)
    desk.clock.forward(microseconds=1)
    third = desk.answers.one(ORGANIZATION, NUMBER)
    assert (third.source, third.as_of) == ("live", desk.clock.now)


@pytest.mark.each_database
def test_an_answer_is_kept_for_its_own_organization(desk: Desk) -> None:
    desk.answers.one(ORGANIZATION, NUMBER)
    assert desk.sources(NUMBER, OTHER) == ["cache", "live"]
    assert desk.sources(NUMBER, OTHER, organization_id=uuid4()) == ["live", "live"]


def test_a_cache_that_is_off_keeps_nothing(make: Callable[..., Desk]) -> None:
    off = make(ttl=timedelta(0))
    assert [off.answers.one(ORGANIZATION, NUMBER).source for _ in range(2)] == ["live", "live"]
    assert make().answers.one(ORGANIZATION, NUMBER).source == "live"


def test_a_provider_in_this_process_is_asked_every_time(
    make: Callable[..., Desk], process: Process
) -> None:
    make().sources(NUMBER)  # What a remote one has said is not for it.
    desk = make(remote=False)
    assert [desk.answers.one(ORGANIZATION, NUMBER).source for _ in range(2)] == ["live", "live"]
    assert desk.sources(NUMBER, OTHER) == desk.sources(OTHER, NUMBER) == ["live", "live"]
    assert not process.lookup_cache.load(ORGANIZATION, [OTHER], desk.clock())


def test_a_live_answer_has_a_cost_and_one_of_the_cache_has_none(make: Callable[..., Desk]) -> None:
    cost = Cost(8_000, "USD")
    answers = make(cost=cost).answers
    live, kept = (answers.one(ORGANIZATION, NUMBER) for _ in range(2))
    assert (live.cost, kept.cost) == (cost, None)
    assert asked_of([live, kept, live]) == [Asked("counting", 2, Cost(16_000, "USD"))]
    assert asked_of([kept]) == []


def test_an_answer_that_holds_nothing_to_pay_for_costs_nothing(make: Callable[..., Desk]) -> None:
    desk = make(cost=Cost(8_000, "EUR"))
    desk.provider.besides = (None, True)
    free = desk.answers.one(ORGANIZATION, NUMBER)
    desk.provider.besides = ()
    paid = desk.answers.one(ORGANIZATION, OTHER)
    assert free.cost == Cost(0, "EUR")
    assert asked_of([free, paid, paid]) == [
        Asked("counting", 1, Cost(0, "EUR")),
        Asked("counting", 2, Cost(16_000, "EUR")),
    ]


def test_an_answer_may_not_be_older_than_asked_for(desk: Desk) -> None:
    desk.answers.one(ORGANIZATION, NUMBER)
    desk.clock.forward(seconds=60)
    ages = [timedelta(seconds=60), timedelta(seconds=59)]
    sources = [desk.answers.one(ORGANIZATION, NUMBER, age).source for age in ages]
    assert sources == ["cache", "live"]
    assert desk.answers.one(ORGANIZATION, NUMBER, timedelta(0)).source == "live"
    assert desk.answers.one(ORGANIZATION, NUMBER, timedelta(days=365)).source == "cache"


def test_an_answer_is_kept_as_long_as_its_provider_allows(make: Callable[..., Desk]) -> None:
    short = make(ttls={"counting": timedelta(hours=1)})
    short.answers.one(ORGANIZATION, NUMBER)
    short.clock.forward(hours=1)
    assert short.answers.one(ORGANIZATION, NUMBER).source == "cache"
    short.clock.forward(microseconds=1)
    assert short.answers.one(ORGANIZATION, NUMBER).source == "live"
    never = make(ttls={"counting": timedelta(0)})
    assert [never.answers.one(ORGANIZATION, OTHER).source for _ in range(2)] == ["live", "live"]
    long = make(ttl=timedelta(0), ttls={"counting": 2 * DAY})
    long.answers.one(ORGANIZATION, OTHER)
    long.clock.forward(days=2)
    assert long.answers.one(ORGANIZATION, OTHER).source == "cache"


def test_what_a_provider_tells_besides_is_kept(desk: Desk) -> None:
    told = Details("call-1", ("60600",), Portability(ported=True))
    desk.provider.besides = (told,)
    live, kept = (desk.answers.one(ORGANIZATION, NUMBER) for _ in range(2))
    assert (live.source, live.details, kept.source, kept.details) == ("live", told, "cache", told)


def test_a_number_that_is_never_cached_is_asked_every_time(desk: Desk) -> None:
    for _ in range(2):
        assert desk.sources("+15005550001") == ["live"]
    assert len(desk.provider.asked) == 2


def test_many_ask_again_with_growing_pauses_for_what_is_missing(desk: Desk) -> None:
    desk.provider.down = {OTHER}
    assert desk.sources(NUMBER, OTHER) == ["live", None]
    assert desk.provider.asked == [NUMBER, *[OTHER] * CALLS_MAX]
    first, second = desk.pauses
    assert 0.1 <= first <= 0.3
    assert 0.2 <= second <= 0.6


def test_what_nobody_knows_is_asked_once(desk: Desk) -> None:
    desk.provider.bug = NotAnswered()
    assert desk.answers.many(ORGANIZATION, [NUMBER, OTHER]) == [False, False]
    assert (desk.provider.asked, desk.pauses) == ([NUMBER, OTHER], [])
    with pytest.raises(NumberLookupUnavailable) as caught:
        desk.answers.one(ORGANIZATION, NUMBER)
    assert (caught.value.retryable, str(caught.value)) == (False, NO_DATA)


def test_calls_of_all_slices_to_a_remote_provider_run_side_by_side_up_to_a_bound(
    desk: Desk,
) -> None:
    together, lock, running, most = Barrier(AT_ONCE), Lock(), [0], [0]

    def meanwhile() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait(PATIENCE_S)
        with lock:
            running[0] -= 1

    desk.provider.meanwhile = meanwhile
    wanted = numbers(4 * AT_ONCE)
    half = len(wanted) // 2
    with ThreadPoolExecutor(2) as pool:
        slices = pool.map(lambda part: desk.sources(*part), [wanted[:half], wanted[half:]])
    assert [*slices] == [["live"] * half] * 2
    assert most == [AT_ONCE]
    assert sorted(desk.provider.asked) == wanted


def test_behind_a_long_slice_another_waits_for_one_round_only(desk: Desk) -> None:
    gate = Event()
    desk.provider.meanwhile = lambda: gate.wait(PATIENCE_S)
    long, short = numbers(4 * AT_ONCE), numbers(2, 5_000)
    waiting = desk.answers._pool._work_queue  # noqa: SLF001  # Nothing else tells that it waits.
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(desk.sources, *long)
        wait_until(lambda: len(desk.provider.asked) == AT_ONCE)
        second = pool.submit(desk.sources, *short)
        wait_until(lambda: waiting.qsize() == len(short))
        gate.set()
        assert (first.result(), second.result()) == (["live"] * len(long), ["live"] * 2)
    assert {*desk.provider.asked[AT_ONCE : AT_ONCE + 2]} == {*short}
