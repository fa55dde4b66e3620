"""One log line and one count per message that a worker has worked on.

Counts where the answers to lookups come from, those of bulk jobs included.

Shows how many requests wait for the network.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy
from prometheus_client import Gauge

from app.watch import logging as observability
from domain.errors import NumberLookupUnavailable
from domain.links.waiting import Waiting
from domain.lookups.answers import Answer, Answers

# The names of the arguments of each actor, which are ids of ours or places in a job.
ARGUMENTS = {
    "work_slice": ("job_id", "slice_index"),
    "work_link": ("link_id",),
    "work_plan_change": ("change_id",),
    "charge_fees": (),
}

Tell = Callable[[str, str, float], None]

logger = logging.getLogger("app.work")


class WorkLog(Middleware):
    """Lines of the thread name the work meanwhile; `tell` hears of each message at its end."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:  # noqa: ARG002  # Given by the library.
        names = ARGUMENTS.get(message.actor_name, ())
        ids = dict(zip(names, message.args, strict=False))
        observability.begin_work(command=message.actor_name, **ids)

    def after_process_message(
        self,
        broker: Broker,  # noqa: ARG002  # Given by the library, as all of these.
        message: MessageProxy,
        *,
        result: Any = None,  # noqa: ARG002  # As above.
        exception: BaseException | None = None,
    ) -> None:
        self._end(message, "done" if exception is None else "failed", exception)

    def after_skip_message(self, broker: Broker, message: MessageProxy) -> None:  # noqa: ARG002  # As above.
        self._end(message, "skipped", None)

    def _end(self, message: MessageProxy, outcome: str, error: BaseException | None) -> None:
        seconds = time.perf_counter() - observability.work_began_s()
        facts = {"outcome": outcome, "duration_ms": round(seconds * 1000, 1)}
        if error is not None:
            facts["error"] = type(error).__name__
        logger.info("worked", extra=facts)
        observability.end_work()
        self._tell(message.actor_name, outcome, seconds)


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


class CountedWaiting(Waiting):
    """Places that a gauge counts while they are held."""

    def __init__(self, places: int, held: Gauge) -> None:
        super().__init__(places)
        self._held = held

    @contextmanager
    def place(self, organization_id: UUID) -> Iterator[None]:
        with super().place(organization_id), self._held.track_inprogress():
            yield
