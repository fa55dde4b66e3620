"""How waitress answers by itself: its errors are JSON like ours, and a 304 keeps its connection.

Nor does it say more than we do: its log lines name no path, which may hold an ICCID.
"""

from collections.abc import Callable, MutableMapping
from logging import Logger, LoggerAdapter
from typing import Any
from uuid import UUID, uuid4

import msgspec
from waitress.channel import HTTPChannel
from waitress.task import ErrorTask, WSGITask

from app.http.envelope import failure_body, format_time
from app.http.problems import problem_of_status
from app.http.request_context import is_request_id
from domain.cause import Clock

HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


def answer_in_json(server: Any, clock: Clock, new_id: Callable[[], UUID] = uuid4) -> None:
    """Make a server of `waitress.create_server` answer its own errors in JSON; call before `run`.

    These are a request line or headers that cannot be read, a bad chunk, and a body past the limit
    of waitress. One that listens on several addresses is a map of servers.
    """
    channel = _channel_class(clock, new_id)
    for each in [server, *getattr(server, "map", {}).values()]:
        if hasattr(each, "channel_class"):
            each.channel_class = channel


class KeepingTask(WSGITask):
    """Keeps the connection open after a 304, which needs no length: pollers use it again."""

    def set_close_on_finish(self) -> None:
        """Close it after all when the client asks for that, or is of HTTP/1.0."""
        asked = self.request.headers.get("CONNECTION", "").lower() == "close"
        if asked or self.version != "1.1" or not self.status.startswith("304"):
            super().set_close_on_finish()


class PathlessLogger(LoggerAdapter[Logger]):
    """Cuts the path off the two lines of a channel that name one."""

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """Return what there is to log."""
        return str(msg).partition(" while serving ")[0], kwargs


def _channel_class(clock: Clock, new_id: Callable[[], UUID]) -> type[HTTPChannel]:
    class JsonErrorTask(ErrorTask):
        def execute(self) -> None:
            """Write the whole reply; the connection closes after it."""
            error = self.request.error
            given = self.request.headers.get("X_REQUEST_ID", "")
            request_id = given if is_request_id(given) else str(new_id())
            timestamp = format_time(clock())
            meta = {"timestamp": timestamp, "response_time_ms": 0.0, "request_id": request_id}
            body = msgspec.json.encode(failure_body(problem_of_status(error.code), meta))
            self.status = f"{error.code} {error.reason}"
            self.response_headers.extend([*HEADERS.items(), ("X-Request-Id", request_id)])
            self.set_close_on_finish()
            self.content_length = len(body)
            self.write(body)

    class JsonChannel(HTTPChannel):
        task_class = KeepingTask
        error_task_class = JsonErrorTask
        logger = PathlessLogger(HTTPChannel.logger)

    return JsonChannel
