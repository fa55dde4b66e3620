"""What the loop does by itself: it refuses, or starts what only has to wait for its commit.

It refuses unknown paths, wrong methods and tokens. The operations that it starts are the same
functions, behind the same checks, as in a thread of Flask. Where one would have to wait, it raises
WouldWait with nothing done, and a thread does it all again.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

import msgspec
from werkzeug.exceptions import HTTPException

from app.bootstrap.container import Container
from app.http.edge.callers import bearer_of
from app.http.edge.errors import told
from app.http.edge.operation import Operation
from app.http.edge.replies import Begun, Commit, Written, written
from app.http.edge.request import CURRENT, Given, caller_address
from app.http.server.connection import Environ, Exchange, Reply, in_json
from domain.at_once import NeedsThread, WouldWait
from domain.errors import Conflict, Refused, ServiceUnavailable, Unauthorized

BODY_BYTES_MAX = 1024  # To read more would keep all others waiting.

Close = Callable[[Given[Any], str, str, int], list[tuple[str, str]]]

ADDRESS_CHARS_MAX = 100  # More than any address has, with brackets, zone and port.
_address_of = lru_cache(1024)(caller_address)


class Started(NamedTuple):
    """A request of which only the commit is left to be submitted.

    `reply` returns the reply to its outcome; WouldWait if a thread must answer from scratch.
    """

    commit: Begun[Any]
    reply: Callable[[], Reply]


class AtOnce:
    """Starts requests on the loop, each in the task of its client, in which it sets CURRENT.

    `find` names the operation of a request (None: it is none of ours), or raises HTTPException.
    `open_` makes its context; `close` logs its reply, and returns the headers that every reply has.
    `started` are the operations that start here, by method and path.
    """

    def __init__(
        self,
        container: Container,
        find: Callable[[Environ], Operation | None],
        open_: Callable[[Environ], Given[Any]],
        close: Close,
        started: Mapping[tuple[str, str], Operation],
    ) -> None:
        self._verifier, self._proxies = container.verifier, container.settings.trusted_proxies
        self._find = find
        self._open_context = open_
        self._close = close
        self._operations = started

    def identify(self, exchange: Exchange) -> None:
        """Say whose turn a request takes: an organization or machine client, or an address.

        What a token claims counts only once it has been verified: anybody could take the turns of
        others.
        """
        token = bearer_of(exchange.environ.get("HTTP_AUTHORIZATION", ""))
        exchange.claims = None if token is None else self._verifier.proven(token)
        if (claims := exchange.claims) is None:
            exchange.owner = self._address(exchange.environ)
        else:  # An organization, or the client that may act for any: not that of its header.
            exchange.owner = claims.organization_id or claims.client_id

    def forget(self) -> None:
        """Let go of the request, whose body its context holds: its client may stay long."""
        CURRENT.set(cast("Any", None))

    def start(self, exchange: Exchange) -> Started | Reply | None:
        """Refuse a request, or start it; None: it is for a thread.

        Called where nobody may wait. Raises WouldWait where it would have to, for what others may
        be reading already.
        """
        environ = exchange.environ
        started = self._operations.get((environ["REQUEST_METHOD"], environ["REQUEST_URI"]))
        try:
            operation = started or self._find(environ)
        except HTTPException as error:
            return self._reply("-", self._open(exchange), told(error))
        if operation is None or operation.group.scope is None:
            return None
        if exchange.claims is None:
            return self._refuse(exchange, operation)
        if started is None or len(exchange.content) > BODY_BYTES_MAX:
            return None
        return self._start(exchange, started)

    def _refuse(self, exchange: Exchange, operation: Operation) -> Reply | None:
        """Refuse a request without a token; to verify one takes too long here."""
        if bearer_of(exchange.environ.get("HTTP_AUTHORIZATION", "")) is not None:
            return None
        context = self._open(exchange)
        try:
            operation.enter()
        except Unauthorized as error:
            return self._reply(operation.route, context, told(error))
        except Exception:  # noqa: BLE001, S110  # A thread gets the same error and answers.
            pass
        return None

    def _start(self, exchange: Exchange, operation: Operation) -> Started | Reply | None:
        """Do what comes before the commit that the function returns, or refuse; None: a thread."""
        context = self._open(exchange)
        reply = partial(self._reply, operation.route, context)
        try:
            commit = operation.begin()
            assert isinstance(commit, Commit), commit
            begun = commit.begin()
        except (Refused, HTTPException) as error:
            return reply(told(error))
        except (NeedsThread, Exception):  # noqa: BLE001  # A thread gets the same error and answers.
            context.give_back()
            return None
        except WouldWait:
            context.give_back()
            raise
        return Started(begun, partial(self._end, commit, begun, context, reply))

    def _end(
        self,
        commit: Commit[Any],
        begun: Begun[Any],
        context: Given[Any],
        reply: Callable[[Written], Reply],
    ) -> Reply:
        """Return the reply to the outcome; WouldWait if nothing was committed.

        An unknown outcome is a 503, because something may have been committed.
        """
        try:
            return reply(written(commit.answer(begun.result())))
        except Exception as error:  # noqa: BLE001  # There is an answer to every error.
            is_nothing = isinstance(error, Conflict | Refused)
            if is_nothing and not isinstance(error, ServiceUnavailable):
                context.give_back()
                raise WouldWait from None
            return reply(told(error))

    def _open(self, exchange: Exchange) -> Given[Any]:
        context = self._open_context(exchange.attempt())
        CURRENT.set(context)
        return context

    def _reply(self, route: str, context: Given[Any], reply: Written) -> Reply:
        body, status, headers = reply
        more = self._close(context, context.environ["REQUEST_METHOD"], route, status)
        sent = in_json(status, msgspec.json.encode(body), more)
        return sent._replace(headers=[*(headers or {}).items(), *sent.headers])

    def _address(self, environ: Environ) -> str:
        peer: str = environ["REMOTE_ADDR"]
        if not self._proxies:
            return _address_of(peer, "", 0)
        entries = environ.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", self._proxies)
        # What is remembered must not be as long as a caller likes.
        last = ",".join(each.strip()[:ADDRESS_CHARS_MAX] for each in entries[-self._proxies :])
        return _address_of(peer, last, self._proxies)
