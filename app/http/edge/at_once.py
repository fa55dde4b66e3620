"""Operations that the loop of the server answers while nothing has to wait but their commit.

They are the same functions, behind the same checks, as in a thread of Flask. Where one would have
to wait, it raises WouldWait with nothing done, and a thread does it all again.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from werkzeug.exceptions import HTTPException

from app.http.edge.errors import told
from app.http.edge.operation import Operation
from app.http.edge.replies import Answer, Begun, Commit, Written, written
from app.http.edge.request import CURRENT, RequestContext
from app.http.gateway import Pending, Reply, Scope, environ_of, in_json
from domain.at_once import NeedsThread, WouldWait
from domain.errors import Conflict, Refused, ServiceUnavailable

BODY_BYTES_MAX = 1024  # To read more would keep all others waiting.

Open = Callable[[dict[str, Any]], RequestContext]
Close = Callable[[RequestContext, str, str, int], list[tuple[str, str]]]


class AtOnce:
    """Begins requests on the loop.

    `begin` makes the context of a request; `end` logs its reply, and returns the headers that
    every reply has.
    """

    def __init__(
        self, operations: Iterable[Operation], prefixes: Iterable[str], begin: Open, end: Close
    ) -> None:
        self._open = begin
        self._end = end
        self._known = {
            (method, (prefix + path).encode()): operation
            for operation in operations
            for method, path in [operation.line.split()]
            for prefix in prefixes
        }

    def begin(self, scope: Scope, body: bytes) -> Pending | Reply | None:
        """Check a request and begin its commit, or refuse it; None: a thread answers.

        Called where nobody may wait. Raises WouldWait where it would have to, for what others may
        be reading already.
        """
        operation = self._known.get((scope["method"], scope["raw_path"]))
        if operation is None or len(body) > BODY_BYTES_MAX:
            return None
        asked = _Asked(self._open(environ_of(scope, body)), operation.line, self._end)
        before = CURRENT.set(asked.context)
        try:
            asked.begin(operation.begin())
        except (Refused, HTTPException) as error:
            return asked.whole(told(error))
        except (NeedsThread, Exception):  # noqa: BLE001  # A thread gets the same error and answers.
            asked.give_back()
            return None
        except WouldWait:
            asked.give_back()
            raise
        finally:
            CURRENT.reset(before)
        return asked


class _Asked:
    """A request that waits for its commit."""

    answer: Callable[[Any], Answer]
    begun: Begun[Any]

    def __init__(self, context: RequestContext, line: str, end: Close) -> None:
        self.context = context
        self._line = line
        self._end = end

    def begin(self, commit: object) -> None:
        """Do what comes before the commit that the function has returned."""
        assert isinstance(commit, Commit), commit
        self.answer, self.begun = commit.answer, commit.begin()

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
            self.give_back()
            raise WouldWait from None
        except Exception as error:  # noqa: BLE001  # A bug of ours.
            return self.whole(told(error))
        finally:
            CURRENT.reset(before)

    def give_back(self) -> None:
        """Take back the count of the request, because a thread will count it again."""
        context = self.context
        if context.admission is not None and not context.admission.is_over:
            assert context.organization_id is not None
            context.container.rate_limits.give_back(context.organization_id)

    def whole(self, reply: Written) -> Reply:
        body, status, headers = reply
        method, route = self._line.split()
        more = self._end(self.context, method, route, status)
        sent = in_json(status, msgspec.json.encode(body), more)
        return sent._replace(headers=[*(headers or {}).items(), *sent.headers])
