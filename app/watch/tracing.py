"""Where work can be traced; nothing is, and no package of OpenTelemetry loaded, until `begin`.

`app/watch/spans.py` makes the spans, with the packages of requirements-tracing.lock.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from dramatiq import Middleware
from eventsourcing.persistence import StoredEvent

from app.settings import Settings, WrongSetting
from app.watch.logging import carried
from domain.log.aggregate import Event

if TYPE_CHECKING:
    from flask import Flask

A = TypeVar("A")
R = TypeVar("R")

MISSING = "OTEL_EXPORTER_OTLP_ENDPOINT needs what requirements-tracing.lock installs"


class Tracing:
    """Traces nothing."""

    is_on = False

    def watch(self, app: "Flask") -> None:
        """Trace the requests that Flask answers."""

    def middleware(self) -> list[Middleware]:
        """Return what traces the messages of a broker."""
        return []

    def dispatching(self, event: Event) -> AbstractContextManager[object]:  # noqa: ARG002  # Of the one that traces.
        """Trace the messages that this event asks for as work of its request."""
        return nullcontext()

    def committing(self, stored: Sequence[StoredEvent]) -> AbstractContextManager[object]:  # noqa: ARG002  # As above.
        """Trace one insert into the log."""
        return nullcontext()

    def carried(self, run: Callable[[A], R]) -> Callable[[A], R]:
        """Wrap `run` for other threads, so that what it does there belongs to this work."""
        return carried(run)


_OFF = Tracing()
_current = _OFF


def tracing() -> Tracing:
    """Return what traces this process."""
    return _current


def check(settings: Settings) -> None:
    """Raise WrongSetting if a collector is named and what is needed for it is not installed."""
    is_there = False
    with suppress(ModuleNotFoundError):
        is_there = find_spec("opentelemetry.instrumentation.flask") is not None
    if settings.otel_exporter_otlp_endpoint and not is_there:
        raise WrongSetting(MISSING)


def begin(settings: Settings, role: str) -> None:
    """Trace this process if a collector is named; call it before anything is connected."""
    global _current  # noqa: PLW0603  # The instrumentation is global to a process, too.
    if not settings.otel_exporter_otlp_endpoint:
        return
    check(settings)
    from app.watch.spans import Spans  # noqa: PLC0415  # An extra.

    _current = Spans(settings.otel_exporter_otlp_endpoint, role)
