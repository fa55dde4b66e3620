"""What happens to a message whose actor raised: once more soon, then a dead letter, never lost."""

from typing import Any

from dramatiq import Broker
from dramatiq.middleware import Retries


class KeepingRetries(Retries):
    """Dramatiq's retries, for a broker that may refuse one.

    Dramatiq would acknowledge a message whose retry could not be published. Here it is given up and
    stays as a dead letter. Of the error only its type goes along: a text might hold anything.
    """

    def after_process_message(
        self,
        broker: Broker,
        message: Any,
        *,
        result: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        """Publish the next try, or fail the message."""
        if exception is None:
            return
        try:
            message.options["error"] = type(exception).__name__
            super().after_process_message(broker, message, result=result, exception=exception)  # type: ignore[no-untyped-call]  # Of Dramatiq.
        except Exception:
            message.fail()
            raise

    def before_enqueue(self, broker: Broker, message: Any, delay: int | None) -> None:  # noqa: ARG002  # Of Dramatiq.
        """Leave the text of the error behind."""
        message.options.pop("traceback", None)
