"""Calls to the API of BICS SIM for Things with a login; result codes become our errors.

A 401, also one inside a 200, means that nothing was done.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from app.adapters.networks.bics.wire import Outcome
from app.adapters.remote.api import RemoteApi
from app.adapters.remote.exchange import Malformed, OddRecord, Reply, decode
from app.adapters.remote.login import Login, LoginRefused
from domain.links.network import NoSuchEndpoint
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected, Unavailable, becoming

T = TypeVar("T")
Deadline = Callable[[], float]  # How many seconds the calls of one operation have left.

RESPONSE = "Response"  # Holds all of every reply but that to a login.
AJAX = {"X-Requested-With": "XMLHttpRequest"}
UNAUTHORIZED = 401
REFUSALS = range(400, 500)
# No list of result codes is published, so these two cases are recognized by their description.
GONE = re.compile(
    r"end\s?point.*(not (found|exist|available)|invalid|unknown)"
    r"|(invalid|unknown|no such) end\s?point",
    re.IGNORECASE,
)
OF_ONE = {"iccid", "endPointId"}  # A read with one of these is about one eSIM.
UNSETTLED = re.compile(r"time\s?d?[ -]?out|in progress|pending|internal|system", re.IGNORECASE)


class Session:
    """The API with a login of its own. Thread-safe."""

    def __init__(self, api: RemoteApi, username: str, password: str) -> None:
        self._api = api
        self._credentials = {"username": username, "password": password}
        self._login = Login("BICS", self._log_in, _headers, _is_refused_login)

    def read(
        self,
        path: str,
        query: Mapping[str, str],
        kind: type[T],
        deadline: Deadline,
        *path_to: str,
        nothing: frozenset[str] = frozenset(),
    ) -> T:
        """Send a read and return what its answer holds below a path.

        Codes in `nothing` mean that there is no data. Raises Unavailable, or NoSuchEndpoint.
        """
        reply = self._authorized(self._api.read, deadline, method="GET", path=path, query=query)
        outcome = decode(reply, Outcome, RESPONSE)
        if outcome.result_code == "0" or outcome.code in nothing:
            return decode(reply, kind, RESPONSE, *path_to)
        text = outcome.result_param.result_description
        is_of_one = OF_ONE & query.keys() and UNSETTLED.search(text) is None
        raise _gone(outcome) or (OddRecord if is_of_one else Unavailable)(_refusal(outcome))

    def change(  # noqa: PLR0913  # The parts of a call.
        self,
        method: str,
        path: str,
        request: Mapping[str, Any],
        deadline: Deadline,
        kind: type[T],
        done: frozenset[str] = frozenset(),
    ) -> T:
        """Send a change; codes in `done` mean that it is done, now or by an earlier call.

        Raises Unavailable, OutcomeUnknown, NoSuchEndpoint, or Rejected.
        """
        parts = {"method": method, "path": path, "json": {"Request": request}}
        reply = self._authorized(self._api.change, deadline, **parts)
        if reply.status in REFUSALS:
            raise Rejected(f"the API of bics refuses a change ({reply.status})")
        with becoming(Malformed):
            outcome = decode(reply, Outcome, RESPONSE)
            if outcome.result_code == "0" or outcome.code in done:
                return decode(reply, kind, RESPONSE)
        if UNSETTLED.search(outcome.result_param.result_description) is not None:
            raise OutcomeUnknown(_refusal(outcome))
        raise _gone(outcome) or Rejected(_refusal(outcome))

    def _authorized(self, send: Callable[..., Reply], deadline: Deadline, **parts: Any) -> Reply:
        reply = self._login.call(send, deadline, **parts)
        if _is_refused_login(reply):
            raise Unavailable("the API of bics does not take the token that it gave")
        return reply

    def _log_in(self, timeout_s: float) -> str:
        reply = self._api.read(
            "POST", "/login", json=self._credentials, headers=AJAX, timeout_s=timeout_s
        )
        if reply.status in REFUSALS or _is_refused_login(reply):
            raise LoginRefused(f"the API of bics refuses our login ({reply.status})")
        return decode(reply, str, "AccessToken")


def _headers(token: str) -> Mapping[str, str]:
    return {**AJAX, "X-Authorization": f"Bearer {token}"}


def _is_refused_login(reply: Reply) -> bool:
    """Tell whether the API no longer accepts the token: a 401, also inside a 200."""
    if reply.status == UNAUTHORIZED:
        return True
    try:
        outcome = decode(reply, Outcome, RESPONSE)
    except Malformed:
        return False
    return "401" in {outcome.result_code, outcome.code}


def _gone(outcome: Outcome) -> ProviderError | None:
    if GONE.search(outcome.result_param.result_description) is None:
        return None
    return NoSuchEndpoint("bics knows no such endpoint")


def _refusal(outcome: Outcome) -> str:
    """Return a text without the description, which may hold an ICCID."""
    code = outcome.code if re.fullmatch(r"[0-9]{1,6}", outcome.code) else "without a code"
    return f"the API of bics refuses the call ({code} at $.Response.resultParam)"
