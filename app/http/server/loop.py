"""What the loop of the server answers by itself, and in whose queue all other requests wait.

It answers probes that ask nobody, and refuses unknown paths, wrong methods and tokens. It starts
operations that only have to wait for their commit: they are the same functions, behind the same
checks, as in a thread of Flask. Where one would have to wait, it raises WouldBlock with nothing
done, and a thread does it all again.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple
from wsgiref.types import WSGIApplication

import msgspec
from werkzeug.exceptions import HTTPException

from app.bootstrap.container import Container
from app.http.edge import replies
from app.http.edge.callers import bearer_of
from app.http.edge.errors import reply_of
from app.http.edge.operation import Operation
from app.http.edge.problems import TOKEN_PATH, retry_after
from app.http.edge.request import CURRENT, NO_SNIFF, NO_STORE, Given, caller_address
from app.security.tokens import Claims
from domain.blocking import WouldBlock
from domain.errors import Conflict, Refused, ServiceUnavailable, Unauthorized
from domain.limiter import Owner
from domain.lookups.single import PendingLookup

BODY_BYTES_MAX = 1024  # To read more would keep all others waiting.
# Wrong tokens of an address that the loop checks in a second: the signatures take it 2 ms.
WRONG_MAX = 20
LIVEZ = "/livez"
ID = "X-Request-Id"

# A request as WSGI has it; `REQUEST_URI` is its path as it was sent.
Environ = dict[str, Any]


class Reply(NamedTuple):
    """A whole reply."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Started(NamedTuple):
    """What has only to be committed, and what makes the reply to its outcome.

    That raises WouldBlock if a thread must answer the request from scratch.
    """

    pending: PendingLookup
    reply: Callable[[], Reply]


def in_json(status: int, data: object, headers: Iterable[tuple[str, str]]) -> Reply:
    """Return a reply in JSON with more headers than those of its body."""
    body = msgspec.json.encode(data)
    own = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return Reply(status, [*own, *headers], body)


ALIVE = in_json(200, {"ok": True}, [(ID, ""), NO_SNIFF, NO_STORE])


class Loop:
    """Answers probes and refusals, and starts operations, each in an asyncio task of its own.

    Everything else is for a thread, where `app` answers. `edge` is the same if it is ours, which
    finds operations and makes contexts. `started` are the operations that start here, by
    method and path, `probes` are routes by their paths.
    """

    def __init__(
        self,
        container: Container,
        app: WSGIApplication,
        edge: Any = None,
        started: Mapping[tuple[str, str], Operation] = {},
        probes: Mapping[str, str] = {},
    ) -> None:
        settings = container.settings
        self.app, self._edge, self._started, self._probes = app, edge, started, probes
        self._parts, self.count = container, container.metrics.connections.set
        self._address = partial(caller_address, proxies=settings.trusted_proxies)
        paths = {TOKEN_PATH, *settings.further_token_paths}  # Refusals there have another shape.
        self._token_paths = paths | {settings.path_prefix + each for each in paths}
        self._second, self._wrong = 0, Counter[str]()  # Wrong tokens in it, by address.

    def probe(self, environ: Environ) -> str | None:
        """Return the route of a probe, which has the same reply for all; None for any other."""
        is_read = environ["REQUEST_METHOD"] in {"GET", "HEAD"}
        return self._probes.get(environ["REQUEST_URI"]) if is_read else None

    def again(self, reply: Reply, route: str, environ: Environ) -> Reply:
        """Return the reply to another caller for this one."""
        context: Given[Any] = Given.of(self._parts, {}, environ)
        own, *_ = context.end(environ["REQUEST_METHOD"], route, reply.status)
        return reply._replace(headers=[own if each[0] == ID else each for each in reply.headers])

    def problem(self, problem: Refused, environ: Environ) -> Reply:
        """Return the reply to a request that is not passed on; parts of it may be missing."""
        context: Given[Any] = Given.of(self._parts, {}, environ)
        is_token = environ["REQUEST_URI"] in self._token_paths
        meta = replies.ReplyMeta(**replies.common_meta(context))
        body = replies.oauth_body(problem) if is_token else replies.failure_body(problem, meta)
        headers = [*context.end("-", "-", problem.status), *retry_after(problem).items()]
        return in_json(problem.status, body, headers)

    def owner(self, environ: Environ) -> Owner:
        """Return whose turn a request takes: an organization or machine client, or an address.

        What a token claims counts only once it has been verified: anybody could take the turns of
        others.
        """
        claims = self._proven(environ)
        if claims is None:
            return self._address(environ)
        return claims.organization_id or claims.client_id  # Not that of its header.

    def start(self, environ: Environ, body: bytes) -> Started | Reply | None:
        """Start or answer a request; None: it is for a thread.

        Called where nobody may wait. Raises WouldBlock, with nothing done, where it would have to.
        """
        if self._edge is None:
            return None
        method = environ["REQUEST_METHOD"]
        started = self._started.get((method, environ["REQUEST_URI"]))
        try:
            operation = started or self._edge.operation_of(environ)
        except HTTPException as error:
            self._enter(environ)
            return self._whole(method, "-", reply_of(error))
        if operation is None or operation.group.scope is None:
            return None
        claims = self._proven(environ) or self._verify(environ, operation)
        if not isinstance(claims, Claims):
            return claims
        if started is None or len(body) > BODY_BYTES_MAX:
            return None
        return self._commit(self._enter(environ, body), started)

    def _enter(self, environ: Environ, body: bytes = b"") -> Given[Any]:
        """Enter the context of a request, which its task keeps to its end."""
        context: Given[Any] = self._edge.open({**environ, "wsgi.input": BytesIO(body)})
        CURRENT.set(context)
        return context

    def _verify(self, environ: Environ, operation: Operation) -> Claims | Reply | None:
        """Verify a token that is not known here, or refuse it; None: a thread must."""
        address = self._address(environ)
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._wrong = second, Counter()
        if self._wrong[address] >= WRONG_MAX and bearer_of(environ) is not None:
            return None
        self._enter(environ)
        try:
            return operation.enter()
        except Unauthorized as error:
            self._wrong[address] += 1
            return self._whole(environ["REQUEST_METHOD"], operation.route, reply_of(error))
        except Exception:  # noqa: BLE001  # A thread gets the same error and answers.
            return None

    def _commit(self, context: Given[Any], operation: Operation) -> Started | Reply | None:
        """Do what comes before the commit that the function returns, or refuse; None: a thread."""
        method, route = operation.line.split()
        whole = partial(self._whole, method, route)
        try:
            commit = operation.call()
            assert isinstance(commit, replies.Commit), commit
            pending = commit.prepare()
        except (Refused, HTTPException) as error:
            return whole(reply_of(error))
        except Exception:  # noqa: BLE001  # A thread gets the same error and answers.
            context.give_back()
            return None
        except WouldBlock:
            context.give_back()
            raise

        def reply() -> Reply:
            """Return the reply to the outcome; WouldBlock if nothing was committed.

            An unknown outcome is a 503, because something may have been committed.
            """
            try:
                return whole(replies.written(commit.answer(pending.result())))
            except ServiceUnavailable as error:
                return whole(reply_of(error))
            except (Conflict, Refused):
                context.give_back()
                raise WouldBlock from None
            except Exception as error:  # noqa: BLE001  # A bug of ours.
                return whole(reply_of(error))

        return Started(pending, reply)

    def _whole(self, method: str, route: str, reply: replies.Written) -> Reply:
        body, status, headers = reply
        sent = in_json(status, body, CURRENT.get().end(method, route, status))
        return sent._replace(headers=[*(headers or {}).items(), *sent.headers])

    def _proven(self, environ: Environ) -> Claims | None:
        token = bearer_of(environ)
        return None if token is None else self._parts.verifier.proven(token)
