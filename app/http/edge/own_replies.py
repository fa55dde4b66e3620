"""Replies of the front itself: `/livez`, and problems with requests that it does not pass on."""

from collections.abc import Callable, Collection, Iterable, Sequence
from http import HTTPStatus
from uuid import UUID, uuid4

import msgspec

from app.http.edge.oauth_errors import oauth_body_of
from app.http.edge.problems import Problem
from app.http.edge.replies import ReplyMeta, failure_body, format_time
from app.http.edge.request import Count, note_answer, request_id_of
from app.http.edge.request_threads import Request, head, split_target
from domain.cause import Clock

LIVEZ = "/livez"
ALIVE = msgspec.json.encode({"ok": True})

Headers = Sequence[tuple[bytes, bytes]]


class OwnReplies:
    """Makes these replies; they look like the application's, and are logged and counted alike."""

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
        """Return the reply to a request that needs no thread; None for every other request."""
        if request.method not in {"GET", "HEAD"} or request.path not in self._livez:
            return None
        request_id = self._request_id(request.headers)
        self._note(request.method, LIVEZ, 200, request_id)
        reply = reply_in_json(200, ALIVE, request_id, request, keep=keep)
        return reply.removesuffix(ALIVE) if request.method == "HEAD" else reply

    def problem(self, problem: Problem, target: bytes, headers: Headers) -> bytes:
        """Return a reply after which the connection closes; parts of the request may be missing."""
        request_id = self._request_id(headers)
        self._note("-", "-", problem.status, request_id)
        if split_target(target)[0] in self._token_paths:
            body = msgspec.json.encode(oauth_body_of(problem))
        else:
            timestamp = format_time(self._clock())
            meta = ReplyMeta(timestamp=timestamp, response_time_ms=0.0, request_id=request_id)
            body = msgspec.json.encode(failure_body(problem, meta))
        more = problem.headers.items()
        return reply_in_json(problem.status, body, request_id, None, keep=False, more=more)

    def _request_id(self, headers: Headers) -> str:
        given = [value for name, value in headers if name.lower() == b"x-request-id"]
        text = given[0].decode("latin-1") if len(given) == 1 else ""
        return request_id_of(text, self._new_id)

    def _note(self, method: str, route: str, status: int, request_id: str) -> None:
        note_answer(self._count, method, route, status, duration_ms=0.0, request_id=request_id)


def reply_in_json(  # noqa: PLR0913  # Each is a part of the reply.
    status: int,
    body: bytes,
    request_id: str,
    request: Request | None,
    *,
    keep: bool,
    more: Iterable[tuple[str, str]] = (),
) -> bytes:
    """Return the bytes of a reply in JSON; `more` are headers that not every reply has."""
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("X-Request-Id", request_id),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
        *more,
    ]
    return head(f"{status} {HTTPStatus(status).phrase}", headers, request, keep=keep) + body
