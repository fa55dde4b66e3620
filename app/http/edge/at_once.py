"""What the loop of the server answers by itself, and in whose queue all other requests wait.

It refuses unknown paths, wrong methods and tokens. It begins operations that only have to wait for
their commit: they are the same functions, behind the same checks, as in a thread of Flask. Where
one would have to wait, it raises WouldWait with nothing done, and a thread does it all again.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from werkzeug.exceptions import HTTPException

from app.bootstrap.container import Container
from app.http.edge.callers import bearer_of
from app.http.edge.errors import told
from app.http.edge.operation import Operation
from app.http.edge.replies import Answer, Begun, Commit, Written, written
from app.http.edge.request import CURRENT, Given, caller_address
from app.http.gateway import Pending, Reply, Scope, environ_of, in_json
from app.security.tokens import Claims
from domain.at_once import NeedsThread, WouldWait
from domain.errors import Conflict, Refused, ServiceUnavailable, Unauthorized
from domain.limiter import Owner

BODY_BYTES_MAX = 1024  # To read more would keep all others waiting.
# Wrong tokens of an address that the loop checks in a second: the signatures take it 2 ms.
WRONG_MAX = 20

Close = Callable[[Given[Any], str, str, int], list[tuple[str, str]]]

ADDRESS_CHARS_MAX = 100  # More than any address has, with brackets, zone and port.
_address_of = lru_cache(1024)(caller_address)


class AtOnce:
    """Begins requests on the loop.

    `find` names the operation of a request (None: it is none of ours), or raises HTTPException.
    `begin` makes its context; `end` logs its reply, and returns the headers that every reply has.
    `begun` are the operations that begin here, by method and path.
    """

    def __init__(
        self,
        container: Container,
        find: Callable[[Scope], Operation | None],
        begin: Callable[[dict[str, Any]], Given[Any]],
        end: Close,
        begun: Mapping[tuple[str, bytes], Operation],
    ) -> None:
        self._verifier, self._proxies = container.verifier, container.settings.trusted_proxies
        self._find = find
        self._open = begin
        self._end = end
        self._begun = begun
        self._second, self._wrong = 0, Counter[str]()  # Wrong tokens in it, by address.

    def owner(self, scope: Scope) -> Owner:
        """Return whose turn a request takes: an organization or machine client, or an address.

        What a token claims counts only once it has been verified: anybody could take the turns of
        others.
        """
        claims = self._proven(scope)
        return self._address(scope) if claims is None else _owner_of(claims)

    def begin(self, scope: Scope, body: bytes) -> tuple[Owner, Pending | Reply | None]:
        """Refuse a request, or begin its commit; None: it is for a thread, in that owner's queue.

        Called where nobody may wait. Raises WouldWait where it would have to, for what others may
        be reading already.
        """
        begun = self._begun.get((scope["method"], scope["raw_path"]))
        try:
            operation = begun or self._find(scope)
        except HTTPException as error:
            return None, self._asked(scope, b"", "-").refusal(error)
        if operation is None or operation.group.scope is None:
            return self._address(scope), None
        claims = self._proven(scope) or self._enter(scope, operation)
        if not isinstance(claims, Claims):
            return self._address(scope), claims
        if begun is None or len(body) > BODY_BYTES_MAX:
            return _owner_of(claims), None
        return _owner_of(claims), self._asked(scope, body, begun.route).begin(begun)

    def _enter(self, scope: Scope, operation: Operation) -> Claims | Reply | None:
        """Verify a token that is not known here, or refuse it; None: a thread must."""
        address = self._address(scope)
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._wrong = second, Counter()
        if _token_of(scope) is not None and self._wrong[address] >= WRONG_MAX:
            return None
        asked = self._asked(scope, b"", operation.route)
        before = CURRENT.set(asked.context)
        try:
            return operation.enter()
        except Unauthorized as error:
            self._wrong[address] += 1
            return asked.refusal(error)
        except Exception:  # noqa: BLE001  # A thread gets the same error and answers.
            return None
        finally:
            CURRENT.reset(before)

    def _proven(self, scope: Scope) -> Claims | None:
        token = _token_of(scope)
        return None if token is None else self._verifier.proven(token)

    def _address(self, scope: Scope) -> str:
        peer = scope["client"][0] if scope["client"] else ""
        if not self._proxies:
            return _address_of(peer, "", 0)
        named = (value for name, value in scope["headers"] if name == b"x-forwarded-for")
        entries = b",".join(named).decode("latin-1").rsplit(",", self._proxies)[-self._proxies :]
        # What is remembered must not be as long as a caller likes.
        last = ",".join(each.strip()[:ADDRESS_CHARS_MAX] for each in entries)
        return _address_of(peer, last, self._proxies)

    def _asked(self, scope: Scope, body: bytes, route: str) -> "_Asked":
        context = self._open(environ_of(scope, body))
        return _Asked(context, scope["method"], route, self._end)


def _token_of(scope: Scope) -> str | None:
    """Return the token of a request, if it has one that may be right."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    return bearer_of(given[0].decode("latin-1")) if len(given) == 1 else None


def _owner_of(claims: Claims) -> Owner:
    """Return the organization, or the client that may act for any: not that of its header."""
    return claims.organization_id or claims.client_id


class _Asked:
    """A request that the loop answers, perhaps after its commit."""

    answer: Callable[[Any], Answer]
    begun: Begun[Any]

    def __init__(self, context: Given[Any], method: str, route: str, end: Close) -> None:
        self.context = context
        self._method, self._route = method, route
        self._end = end

    def begin(self, operation: Operation) -> "Pending | Reply | None":
        """Do what comes before the commit that the function returns, or refuse; None: a thread."""
        before = CURRENT.set(self.context)
        try:
            commit = operation.begin()
            assert isinstance(commit, Commit), commit
            self.answer, self.begun = commit.answer, commit.begin()
        except (Refused, HTTPException) as error:
            return self.whole(told(error))
        except (NeedsThread, Exception):  # noqa: BLE001  # A thread gets the same error and answers.
            self.context.give_back()
            return None
        except WouldWait:
            self.context.give_back()
            raise
        finally:
            CURRENT.reset(before)
        return self

    def refusal(self, error: Exception) -> Reply:
        """Return the reply that tells of an error."""
        before = CURRENT.set(self.context)
        try:
            return self.whole(told(error))
        finally:
            CURRENT.reset(before)

    def submit(self, tell: Callable[[], object], ring: Callable[[], object]) -> None:
        """Have it committed."""
        self.begun.submit(tell, ring)

    def expire(self, age_s: float) -> None:
        """End it if it has waited too long."""
        self.begun.expire(age_s)

    def reply(self) -> Reply:
        """Return the reply to the outcome; WouldWait if nothing was committed.

        An unknown outcome is a 503, because something may have been committed.
        """
        before = CURRENT.set(self.context)
        try:
            return self.whole(written(self.answer(self.begun.result())))
        except ServiceUnavailable as error:
            return self.whole(told(error))
        except (Conflict, Refused):
            self.context.give_back()
            raise WouldWait from None
        except Exception as error:  # noqa: BLE001  # A bug of ours.
            return self.whole(told(error))
        finally:
            CURRENT.reset(before)

    def whole(self, reply: Written) -> Reply:
        body, status, headers = reply
        more = self._end(self.context, self._method, self._route, status)
        sent = in_json(status, msgspec.json.encode(body), more)
        return sent._replace(headers=[*(headers or {}).items(), *sent.headers])
