"""The facts of a number: from the provider, or from the cache if the provider is remote."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Literal
from uuid import UUID

import msgspec
from msgspec.structs import replace

from domain.blocking import may_block
from domain.cause import Clock
from domain.cost import Cost
from domain.errors import NumberLookupUnavailable
from domain.lookups.bulk_job import Asked
from domain.lookups.ports import (
    CachedFacts,
    Details,
    Found,
    LookupCache,
    LookupProvider,
    NumberFacts,
)
from domain.provider_errors import NotAnswered, NotNow, Unavailable

CALLS_MAX = 3  # Provider calls for one item of a job; a single lookup makes one.
PAUSE_S = 0.2  # Before the second attempt; twice as long before the third; with jitter.
UNAVAILABLE = "unavailable"  # Counted as the source if there is no answer.
NUMBERING_PLANS = "offline"  # The provider of an answer for which none had to be asked.


Source = Literal["live", "cache"]


class Answer(msgspec.Struct, frozen=True):
    """The facts of one number, their source, and as of when they are true.

    `cost` is what the provider charges for a live answer; None if that is not known. `details`
    are what it says besides the facts.
    """

    facts: NumberFacts
    source: Source
    provider: str
    as_of: datetime
    cost: Cost | None = None
    details: Details | None = None


# The provider works but asked us to wait; it may answer when its hold has ended.
Later = Literal["later"]
LATER: Later = "later"
NO_DATA = "The lookup provider has no data for this number."
# False: the provider works and has no answer, so asking again would not help.
Outcome = Answer | Literal[False] | Later | None


@dataclass(frozen=True)
class AnswerRules:
    """How long an answer is kept: `cache_ttls` by the name of its provider, else `cache_ttl`.

    Zero keeps none; the numbers in `uncached` always skip the cache. A provider in this process is
    asked each time, because that costs less than the cache. `on_answers` is called with each
    source and the count of numbers that it answered. `costs` are those of one lookup by the name
    of the provider. At most `concurrency` calls of jobs run at once. `canonical_of` returns the
    canonical form of a number that has another one.
    """

    cache_ttl: timedelta
    uncached: Collection[str]
    pause: Callable[[float], None]
    on_answers: Callable[[str, int], None] = lambda _source, _count: None
    costs: Mapping[str, Cost] = field(default_factory=dict)
    cache_ttls: Mapping[str, timedelta] = field(default_factory=dict)
    concurrency: int = 32
    canonical_of: Callable[[str], str | None] = lambda _: None

    @property
    def oldest(self) -> timedelta:
        """How long any answer is kept."""
        return max([self.cache_ttl, *self.cache_ttls.values()])

    def ttl_of(self, provider: str) -> timedelta:
        return self.cache_ttls.get(provider, self.cache_ttl)


class Answers:
    """Looks numbers up; an outage is never cached."""

    def __init__(
        self, provider: LookupProvider, cache: LookupCache, clock: Clock, rules: AnswerRules
    ) -> None:
        self._provider = provider
        self._cache = cache
        self._clock = clock
        self._rules = rules
        self._oldest = rules.oldest
        # Shared by all slices that are worked on; threads start when they are needed.
        self._pool = ThreadPoolExecutor(rules.concurrency, thread_name_prefix=provider.name)

    def one(
        self, organization_id: UUID, phone_number: str, max_age: timedelta | None = None
    ) -> Answer:
        """Answer one number with at most one lookup; raises NumberLookupUnavailable.

        An answer from the cache is not older than `max_age`; zero skips the cache.
        """
        if self._provider.remote:
            cached = self._unasked(organization_id, [phone_number], max_age).get(phone_number)
            if cached is not None:
                return cached
        answer = self._query(organization_id, phone_number)
        if answer is False:
            raise NumberLookupUnavailable(NO_DATA, retryable=False)
        if not isinstance(answer, Answer):
            raise NumberLookupUnavailable
        if self._provider.remote:
            self._save(organization_id, [answer])
        return answer

    def canonical(self, facts: NumberFacts) -> str | None:
        """Return what was probably meant by a number that is not its own canonical form."""
        return None if facts.valid else self._rules.canonical_of(facts.phone_number)

    def count(self, source: Source | None) -> None:
        """Count a single lookup once its outcome is known; None if there was no answer.

        Counted earlier, a lookup that is refused or repeated by another thread would count twice.
        """
        self._rules.on_answers(source or UNAVAILABLE, 1)

    def many(self, organization_id: UUID, phone_numbers: Sequence[str]) -> list[Outcome]:
        """Answer numbers in their order; None for a number without an answer.

        False if the provider has none. LATER, which is not counted, if the provider asked us to
        wait at the last try.
        """
        answers: dict[str, Outcome] = {**self._unasked(organization_id, phone_numbers)}
        missing = [number for number in phone_numbers if number not in answers]
        for attempt in range(CALLS_MAX):
            if not missing:
                break
            if attempt > 0:
                jitter = 0.5 + random.random()  # noqa: S311  # Spreads the retries; protects nothing.
                self._rules.pause(PAUSE_S * 2 ** (attempt - 1) * jitter)
            queried = self._query_all(organization_id, missing)
            self._save(organization_id, [each for each in queried if isinstance(each, Answer)])
            answers.update(zip(missing, queried, strict=True))
            missing = [number for number in missing if answers[number] in (None, LATER)]
        found = [answers[number] for number in phone_numbers]
        ended = [each for each in found if each != LATER]
        sources = Counter(
            each.source if isinstance(each, Answer) else UNAVAILABLE for each in ended
        )
        for source, count in sources.items():
            self._rules.on_answers(source, count)
        return found

    def _unasked(
        self, organization_id: UUID, numbers: Sequence[str], max_age: timedelta | None = None
    ) -> Mapping[str, Answer]:
        """Return the answers for which no provider needs to be asked.

        A provider in this process finds out by itself that a number is not its own canonical form,
        because it has to parse the number anyway.
        """
        if not self._provider.remote:
            return {}
        odd = {each for each in numbers if self._rules.canonical_of(each) is not None}
        found = self._cached(
            organization_id, [each for each in numbers if each not in odd], max_age
        )
        facts = (NumberFacts(each, valid=False) for each in odd)
        wrong = (self._answer(Found(each, NUMBERING_PLANS, free=True)) for each in facts)
        return {**found, **{each.facts.phone_number: each for each in wrong}}

    def _cached(
        self, organization_id: UUID, numbers: Sequence[str], max_age: timedelta | None = None
    ) -> Mapping[str, Answer]:
        oldest = self._oldest if max_age is None else min(self._oldest, max_age)
        cacheable = [number for number in numbers if self._may_cache(number)]
        if not cacheable or not oldest:
            return {}
        now = self._clock()
        found = self._cache.load(organization_id, cacheable, now - oldest)
        return {
            number: Answer(each.facts, "cache", each.provider, each.as_of, details=each.told)
            for number, each in found.items()
            if each.as_of >= now - self._rules.ttl_of(each.provider)
        }

    def _save(self, organization_id: UUID, answers: Sequence[Answer]) -> None:
        cached = [
            CachedFacts(answer.facts, answer.provider, answer.as_of, answer.details)
            for answer in answers
            if self._may_cache(answer.facts.phone_number) and self._rules.ttl_of(answer.provider)
        ]
        if cached:
            self._cache.save(organization_id, cached)

    def _may_cache(self, number: str) -> bool:
        may_be_cached = self._provider.remote and bool(self._oldest)
        return may_be_cached and number not in self._rules.uncached

    def _query_all(self, organization_id: UUID, numbers: Sequence[str]) -> list[Outcome]:
        """Ask in rounds, so that another slice waits for one round and not for all of them."""
        query = partial(self._query, organization_id)
        if self._provider.remote and len(numbers) > 1:
            size = self._rules.concurrency
            rounds = (numbers[start : start + size] for start in range(0, len(numbers), size))
            here = copy_context()  # Lines and calls of the other threads belong to this work too.

            def there(number: str) -> Outcome:
                return here.copy().run(query, number)

            return [found for some in rounds for found in self._pool.map(there, some)]
        return [query(number) for number in numbers]

    def _query(self, organization_id: UUID, phone_number: str) -> Outcome:
        if self._provider.remote:
            may_block()
        try:
            found = self._provider.look_up(organization_id, phone_number)
        except NotAnswered:
            return False
        except NotNow:
            return LATER
        except Unavailable:
            return None
        return self._answer(found)

    def _answer(self, found: Found) -> Answer:
        cost = self._rules.costs.get(found.provider)
        if found.free and cost is not None:
            cost = replace(cost, amount_micros=0)
        return Answer(found.facts, "live", found.provider, self._clock(), cost, found.details)


def asked_of(answers: Iterable[Answer]) -> list[Asked]:
    """Return the count and cost of the live answers of each provider."""
    live = Counter((each.provider, each.cost) for each in answers if each.source == "live")
    return [
        Asked(provider, count, cost and replace(cost, amount_micros=count * cost.amount_micros))
        for (provider, cost), count in live.items()
    ]
