"""Counts where the answers to lookups come from, those of bulk jobs included."""

from collections.abc import Callable, Sequence
from uuid import UUID

from domain.commands.answers import Answer, Answers
from domain.errors import NumberLookupUnavailable

UNAVAILABLE = "unavailable"


class CountedAnswers(Answers):
    """The answers of another one; `tell` hears of the source of each."""

    def __init__(self, inner: Answers, tell: Callable[[str], None]) -> None:
        vars(self).update(vars(inner))
        self._tell = tell

    def one(self, organization_id: UUID, phone_number: str) -> Answer:
        try:
            answer = super().one(organization_id, phone_number)
        except NumberLookupUnavailable:
            self._tell(UNAVAILABLE)
            raise
        self._tell(answer.source)
        return answer

    def many(self, organization_id: UUID, phone_numbers: Sequence[str]) -> list[Answer | None]:
        answers = super().many(organization_id, phone_numbers)
        for answer in answers:
            self._tell(UNAVAILABLE if answer is None else answer.source)
        return answers
