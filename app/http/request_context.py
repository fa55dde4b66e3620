"""What belongs to one request at the edge: its id, its start, who asks; nothing outlives it."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import cast
from uuid import UUID

from flask import Flask, current_app, g, has_request_context, request

from app.container import Container

EXTENSION = "container"

# What logs and other services take without escaping; anything else gets an id of ours.
# Nor does one in the form of a phone number pass: the id is kept for ever, in clear.
_REQUEST_ID = re.compile(r"(?!\+[0-9]+\Z)[A-Za-z0-9._~:/@=+-]{1,128}")


@dataclass(slots=True)
class RequestContext:
    """One request; `scope` is what its operation asks for, once that is known.

    `stale`: its reply shows a read model that is behind, and shows the log `as_of` a moment.
    """

    request_id: str
    started_s: float
    scope: str | None = None
    organization_id: UUID | None = None
    stale: bool = False
    as_of: datetime | None = None

    def elapsed_ms(self) -> float:
        """Return how long the request has taken so far, to a tenth of a millisecond."""
        return round((time.perf_counter() - self.started_s) * 1000, 1)


def register(app: Flask, container: Container, new_id: Callable[[], UUID]) -> None:
    """Give every request of an app its context, and views their container."""
    app.extensions[EXTENSION] = container

    @app.before_request
    def begin() -> None:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if is_request_id(given) else str(new_id())
        g.context = RequestContext(request_id, time.perf_counter())


def is_request_id(given: str) -> bool:
    """Tell whether the id that a request brings is taken over."""
    return _REQUEST_ID.fullmatch(given) is not None


def container() -> Container:
    """Return the parts of the installation that this app serves."""
    return cast("Container", current_app.extensions[EXTENSION])


def request_context() -> RequestContext:
    """Return the context of the request that is being answered."""
    return cast("RequestContext", g.context)


def current_request_id() -> str | None:
    """Return the id of the request that this thread answers, if any, for log lines."""
    return request_context().request_id if has_request_context() and "context" in g else None
