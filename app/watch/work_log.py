"""One log line and one count for each message that a worker has handled."""

import logging
import time
from collections.abc import Callable
from inspect import signature
from typing import Any

from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy

from app.watch import logging as observability

Tell = Callable[[str, str, float], None]

logger = logging.getLogger("app.work")


class WorkLog(Middleware):
    """Adds the work to the log lines of its thread; `tell` is called at the end of each message."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        actor = broker.actors.get(message.actor_name)  # Another release may know other actors.
        names = () if actor is None else signature(actor.fn).parameters
        ids = dict(zip(names, message.args, strict=False))  # Messages carry only ids of ours.
        observability.begin_work(command=message.actor_name, **ids)

    def after_process_message(
        self,
        broker: Broker,  # noqa: ARG002  # The signature is the library's.
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
