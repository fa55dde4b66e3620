"""Counts where the answers to lookups come from, those of bulk jobs included."""

from collections import Counter
from collections.abc import Callable, Sequence
from uuid import UUID

from domain.errors import NumberLookupUnavailable
from domain.lookups.answers import Answer, Answers

UNAVAILABLE = "unavailable"


class CountedAnswers(Answers):
    """The answers of another one; `tell` hears how many came from each source."""

    def __init__(self, inner: Answers, tell: Callable[[str, int], None]) -> None:
        vars(self).update(vars(inner))
        self._tell = tell

    def one(self, organization_id: UUID, phone_number: str) -> Answer:
        try:
            answer = super().one(organization_id, phone_number)
        except NumberLookupUnavailable:
            self._tell(UNAVAILABLE, 1)
            raise
        self._tell(answer.source, 1)
        return answer

    def many(self, organization_id: UUID, phone_numbers: Sequence[str]) -> list[Answer | None]:
        answers = super().many(organization_id, phone_numbers)
        sources = Counter(UNAVAILABLE if each is None else each.source for each in answers)
        for source, count in sources.items():
            self._tell(source, count)
        return answers
