"""Where the facts of a number come from: the provider, and before a remote one the cache."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from msgspec.structs import replace

from domain.at_once import may_wait
from domain.cause import Clock
from domain.cost import Cost
from domain.errors import NumberLookupUnavailable
from domain.lookups.bulk_job import Asked
from domain.lookups.number_lookup import Source
from domain.lookups.ports import CachedFacts, LookupCache, LookupProvider, NumberFacts
from domain.provider_errors import Unavailable

ATTEMPTS_MAX = 3  # Provider calls for one item of a job; a single lookup makes one.
PAUSE_S = 0.2  # Before the second attempt; twice as long before the third; with jitter.
CONCURRENCY_MAX = 16  # Calls that all jobs of a process have in flight at a remote provider.
UNAVAILABLE = "unavailable"  # What is counted as the source where there is no answer.


class Answer(msgspec.Struct, frozen=True):
    """The facts of one number, their source, and as of when they are true.

    `cost` is what the provider takes for a live answer; None if that is not known.
    """

    facts: NumberFacts
    source: Source
    provider: str
    as_of: datetime
    cost: Cost | None = None


@dataclass(frozen=True)
class AnswerRules:
    """A `cache_ttl` of zero turns the cache off; `uncached` tells which numbers always skip it.

    A provider in this process is asked each time, because that costs less than the cache. `tell` is
    called with each source and how many numbers it has answered. `costs` are those of one lookup by
    the name of the provider.
    """

    cache_ttl: timedelta
    uncached: Callable[[str], bool]
    pause: Callable[[float], None]
    tell: Callable[[str, int], None] = lambda _source, _count: None
    costs: Mapping[str, Cost] = field(default_factory=dict)


class Answers:
    """Looks numbers up; an outage is never cached."""

    def __init__(
        self, provider: LookupProvider, cache: LookupCache, clock: Clock, rules: AnswerRules
    ) -> None:
        self._provider = provider
        self._cache = cache
        self._clock = clock
        self._rules = rules
        # Shared by all slices that are worked on; threads start when they are needed.
        self._pool = ThreadPoolExecutor(CONCURRENCY_MAX, thread_name_prefix=provider.name)

    def one(self, organization_id: UUID, phone_number: str) -> Answer:
        """Answer one number with at most one provider call; raises NumberLookupUnavailable."""
        answer = self._cached(organization_id, [phone_number]).get(phone_number)
        if answer is None:
            answer = self._ask(organization_id, phone_number)
            if answer is None:
                raise NumberLookupUnavailable
            self._keep(organization_id, [answer])
        return answer

    def count(self, source: Source | None) -> None:
        """Count a single lookup at its outcome; None where there was no answer.

        Not before: a lookup that is refused, or begun again by another thread, would count twice.
        """
        self._rules.tell(source or UNAVAILABLE, 1)

    def many(self, organization_id: UUID, phone_numbers: Sequence[str]) -> list[Answer | None]:
        """Answer numbers in their order; None where the provider was unavailable each time."""
        answers: dict[str, Answer] = dict(self._cached(organization_id, phone_numbers))
        for attempt in range(ATTEMPTS_MAX):
            missing = [number for number in phone_numbers if number not in answers]
            if not missing:
                break
            if attempt > 0:
                jitter = 0.5 + random.random()  # noqa: S311  # Spreads the retries; protects nothing.
                self._rules.pause(PAUSE_S * 2 ** (attempt - 1) * jitter)
            live = self._ask_all(organization_id, missing)
            self._keep(organization_id, live)
            answers.update((answer.facts.phone_number, answer) for answer in live)
        found = [answers.get(number) for number in phone_numbers]
        sources = Counter(UNAVAILABLE if each is None else each.source for each in found)
        for source, count in sources.items():
            self._rules.tell(source, count)
        return found

    def _cached(self, organization_id: UUID, numbers: Sequence[str]) -> Mapping[str, Answer]:
        cacheable = [number for number in numbers if self._may_cache(number)]
        if not cacheable:
            return {}
        oldest = self._clock() - self._rules.cache_ttl
        found = self._cache.find(organization_id, cacheable, oldest)
        return {
            number: Answer(kept.facts, "cache", kept.provider, kept.as_of)
            for number, kept in found.items()
        }

    def _keep(self, organization_id: UUID, answers: Sequence[Answer]) -> None:
        kept = [
            CachedFacts(answer.facts, answer.provider, answer.as_of)
            for answer in answers
            if self._may_cache(answer.facts.phone_number)
        ]
        if kept:
            self._cache.keep(organization_id, kept)

    def _may_cache(self, number: str) -> bool:
        kept = self._provider.remote and bool(self._rules.cache_ttl)
        return kept and not self._rules.uncached(number)

    def _ask_all(self, organization_id: UUID, numbers: Sequence[str]) -> list[Answer]:
        if self._provider.remote and len(numbers) > 1:
            asked = [*self._pool.map(lambda number: self._ask(organization_id, number), numbers)]
        else:
            asked = [self._ask(organization_id, number) for number in numbers]
        return [answer for answer in asked if answer is not None]

    def _ask(self, organization_id: UUID, phone_number: str) -> Answer | None:
        if self._provider.remote:
            may_wait()
        try:
            facts = self._provider.look_up(organization_id, phone_number)
        except Unavailable:
            return None
        name = self._provider.name
        return Answer(facts, "live", name, self._clock(), self._rules.costs.get(name))


def asked_of(answers: Iterable[Answer]) -> list[Asked]:
    """Return what the live ones among some answers have cost, provider by provider."""
    live = Counter((each.provider, each.cost) for each in answers if each.source == "live")
    return [
        Asked(provider, count, cost and replace(cost, amount_micros=count * cost.amount_micros))
        for (provider, cost), count in live.items()
    ]
