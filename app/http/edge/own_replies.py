"""What the front answers by itself: that it lives, and requests that it hands to nobody."""

import logging
from collections.abc import Callable, Collection, Sequence
from uuid import UUID, uuid4

import msgspec

from app.http.edge.calling import Request, head, split_target
from app.http.edge.oauth_errors import oauth_body_of
from app.http.edge.problems import Problem
from app.http.edge.replies import ReplyMeta, failure_body, format_time
from app.http.edge.request import is_request_id
from domain.cause import Clock

LIVEZ = "/livez"
ALIVE = msgspec.json.encode({"ok": True})

logger = logging.getLogger("app.http.access")

Headers = Sequence[tuple[bytes, bytes]]
Count = Callable[[str, str, int, float], None]


class OwnReplies:
    """Makes them. They look like those of the application, and are logged and counted like them."""

    def __init__(
        self,
        clock: Clock,
        *,
        livez: Collection[str] = (LIVEZ,),
        token_paths: Collection[str] = (),
        count: Count | None = None,
        new_id: Callable[[], UUID] = uuid4,
    ) -> None:
        self._clock = clock
        self._livez = {path.encode() for path in livez}
        self._token_paths = {path.encode() for path in token_paths}
        self._count = count
        self._new_id = new_id

    def to(self, request: Request, *, keep: bool) -> bytes | None:
        """Return the reply to a request that needs no thread; None for every other one."""
        if request.method not in {"GET", "HEAD"} or request.path not in self._livez:
            return None
        request_id = self._request_id(request.headers)
        self._log(request.method, LIVEZ, 200, request_id)
        start = head("200 OK", _headers(ALIVE, request_id), request, keep=keep)
        return start if request.method == "HEAD" else start + ALIVE

    def problem(self, problem: Problem, target: bytes, headers: Headers) -> bytes:
        """Return a reply after which the connection closes; parts of the request may be missing."""
        request_id = self._request_id(headers)
        self._log("-", "-", problem.status, request_id)
        if split_target(target)[0] in self._token_paths:
            body = msgspec.json.encode(oauth_body_of(problem))
        else:
            timestamp = format_time(self._clock())
            meta = ReplyMeta(timestamp=timestamp, response_time_ms=0.0, request_id=request_id)
            body = msgspec.json.encode(failure_body(problem, meta))
        status = f"{problem.status} {problem.phrase}"
        named = [*_headers(body, request_id), *problem.headers.items()]
        return head(status, named, None, keep=False) + body

    def _request_id(self, headers: Headers) -> str:
        given = [value for name, value in headers if name.lower() == b"x-request-id"]
        text = given[0].decode("latin-1") if len(given) == 1 else ""
        return text if is_request_id(text) else str(self._new_id())

    def _log(self, method: str, route: str, status: int, request_id: str) -> None:
        facts = {"method": method, "route": route, "status": status, "duration_ms": 0.0}
        more = {"request_id": request_id, "organization_id": "-", "command": f"{method} {route}"}
        logger.info("answered", extra=facts | more)
        if self._count is not None:
            self._count(method, route, status, 0.0)


def _headers(body: bytes, request_id: str) -> list[tuple[str, str]]:
    return [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("X-Request-Id", request_id),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
    ]
