"""Where work can be traced; nothing is, and no package of OpenTelemetry loaded, until `begin`.

`app/watch/spans.py` makes the spans, with the packages of requirements-tracing.lock.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from app.settings import Settings, WrongSetting
from domain.log.aggregate import Event
from domain.log.log import Around

if TYPE_CHECKING:
    from flask import Flask

MISSING = "OTEL_EXPORTER_OTLP_ENDPOINT needs what requirements-tracing.lock installs"


class Tracing:
    """Traces nothing."""

    is_on = False
    around: Around | None = None  # Traces an insert into the log.

    def watch(self, app: "Flask") -> None:
        """Trace the requests that Flask answers."""

    def dispatching(self, event: Event) -> AbstractContextManager[object]:  # noqa: ARG002  # Of the one that traces.
        """Trace the messages that this event asks for as work of its request."""
        return nullcontext()

    def carry(self, options: dict[str, Any]) -> None:
        """Put the trace into the options of a message."""

    def working(self, message: Any) -> AbstractContextManager[object]:  # noqa: ARG002  # As above.
        """Trace the work on a message."""
        return nullcontext()


_current = Tracing()


def tracing() -> Tracing:
    return _current


def start(settings: Settings, role: str) -> None:
    """Trace this process if a collector is named; call it before anything is connected."""
    global _current  # noqa: PLW0603  # The instrumentation is global to a process, too.
    if endpoint := settings.otel_exporter_otlp_endpoint:
        try:
            from app.watch.spans import Spans  # noqa: PLC0415  # An extra.
        except ModuleNotFoundError as error:
            raise WrongSetting(MISSING) from error
        _current = Spans(endpoint, role)
