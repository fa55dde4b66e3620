"""One log line and one count per message that a worker has worked on."""

import logging
import time
from collections.abc import Callable
from typing import Any

from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy

from app import observability

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
