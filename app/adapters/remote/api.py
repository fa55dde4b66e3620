"""One provider's HTTP API: every call has a time limit, and raises only errors of the port.

Nothing here logs or raises a path, a query, a header or a body, because they hold numbers and
secrets. Redirects are not followed. Proxies of the environment are not used.
"""

import logging
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import count
from math import inf
from threading import BoundedSemaphore, Event, Lock
from typing import TYPE_CHECKING, Final, TypedDict, Unpack
from urllib.parse import urlencode, urlsplit

import msgspec

from app.adapters.remote.exchange import (
    Busy,
    Malformed,
    Origin,
    Outcome,
    Query,
    Reply,
    Request,
    Unreachable,
)
from app.adapters.remote.limits import Pause
from app.watch.logging import request_id_here
from domain.blocking import blocking
from domain.cause import Clock
from domain.provider_errors import OutcomeUnknown, ProviderError, Unavailable

if TYPE_CHECKING:
    from app.adapters.remote.connection import Transport

# Adapters build a path of escaped parts; any other path could be another operation.
PATH = re.compile(r"/[A-Za-z0-9/_.~+:@=,;%-]*")
PAUSE_S = 0.05  # Doubled for each retry of a read, then shortened at random by up to half.
ATTEMPTS_MAX = 3  # Tries of a read; a change is sent once.
DEAF_S = 1.0  # A host that fails later than this drops our packets, so no retry would help.
TOO_MANY = 429
TROUBLE = {408, *range(500, 1000)}  # RFC 9110 §15.5.9, §15.6.

logger = logging.getLogger(__name__)


# Called after each try with the provider, how the try ended, and how long it took.
OnCall = Callable[[str, Outcome, float], None]
# Takes the next turn of a rate limit that all processes share, for calls a second, a burst, and the
# longest wait; returns in how many seconds it is, None if that is too late.
Pace = Callable[[float, int, float], float | None]
Record = Callable[[Request, Reply | Outcome, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRules:
    """The limits of a provider's API, and how we call it.

    `calls_per_s` is what it allows all our processes together, None where there is no limit; after
    a pause `burst` calls may come at once. A read waits for its turn at most `read_pace_s`, so that
    many reads do not delay a change.
    """

    calls_max: int = 32  # Calls at the same time, per process.
    calls_per_s: float | None = None
    burst: int = 1
    read_pace_s: float = inf
    body_bytes_max: int = 1 << 20


class Parts(TypedDict, total=False):
    """What a request has besides its method and path; `json` or `form` is its body."""

    query: Query | None
    json: object
    form: Mapping[str, str] | None
    headers: Mapping[str, str] | None


# How a try failed, in words, and the error that it becomes.
FAILURES: Final[Mapping[Outcome, tuple[type[Unavailable], str]]] = {
    "held": (Busy, "is not asked now, because of its limits or ours"),
    "unreachable": (Unreachable, "cannot be reached"),
    "limited": (Busy, "limits our calls"),
    "failed": (Unavailable, "answers with an error of its own"),
    "lost": (Unavailable, "has not answered completely in time"),
    "malformed": (Malformed, "sends more than is allowed"),
}
NOT_SENT: Final = {"held", "unreachable", "limited"}  # After others the provider may have acted.
FINAL: Final = {"held", "malformed"}  # After others another try may succeed.


class RemoteApi:
    """The API of the provider `name` below `base_url`; thread-safe, `close()` ends its pool.

    `headers` go with each call. Raises ValueError for a base URL that is not https; http is allowed
    to this machine only. A time-out covers a whole call: waiting for a place, resolving names,
    connecting, sending, the whole reply, and retries.
    """

    def __init__(  # noqa: PLR0913  # Everything after the URL has a default or comes from one place.
        self,
        name: str,
        base_url: str,
        *,
        clock: Clock,
        headers: Mapping[str, str] | None = None,
        rules: RemoteRules | None = None,
        on_call: OnCall = lambda provider, outcome, seconds: None,  # noqa: ARG005  # The shape of it.
        pace: Pace = lambda calls_per_s, burst, within_s: 0.0,  # noqa: ARG005  # As above.
        record: Record | None = None,
    ) -> None:
        self.name = name
        self._rules = rules = rules or RemoteRules()
        self._origin, self._base = _parts(base_url)
        self._headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        self._headers |= {"User-Agent": "carrier-links", **(headers or {})}
        self._transport: Transport | None = None
        self._opening = Lock()
        self._slots = BoundedSemaphore(rules.calls_max)
        self._pause, self._pace = Pause(clock), pace
        self._on_call, self._record = on_call, record
        self._closing = Event()

    def read(self, method: str, path: str, *, timeout_s: float, **parts: Unpack[Parts]) -> Reply:
        """Send a read, and retry it if that may help; raises Unavailable.

        Returns any complete reply except 429, 408 and 5xx.
        """
        ends_s = time.monotonic() + timeout_s
        request = self._request(method, path, **parts)
        for attempt in count(1):
            started_s = time.monotonic()
            with blocking():
                found = self._try(request, ends_s, self._rules.read_pace_s, alone=False)
            if isinstance(found, Reply):
                return found
            if found == "unreachable" and time.monotonic() - started_s > DEAF_S:
                raise self._error(found)
            pause_s = PAUSE_S * 2**attempt * (0.5 + random.random() / 2)  # noqa: S311  # No secret.
            in_time = attempt < ATTEMPTS_MAX and time.monotonic() + pause_s < ends_s
            if found in FINAL or not in_time or self._closing.wait(pause_s):
                raise self._error(found)
        raise AssertionError  # The loop has no end of its own.

    def change(self, method: str, path: str, *, timeout_s: float, **parts: Unpack[Parts]) -> Reply:
        """Send a change, at most once.

        Raises Unavailable if nothing was sent or the provider limits our calls. Raises
        OutcomeUnknown if the change was sent, and the reply is incomplete or is 5xx.
        """
        request = self._request(method, path, **parts)
        with blocking():
            found = self._try(request, time.monotonic() + timeout_s, inf, alone=True)
        if isinstance(found, Reply):
            return found
        error = self._error(found)
        if found not in NOT_SENT:
            raise OutcomeUnknown(f"{error}; it may have acted")
        raise error

    def close(self) -> None:
        """End pauses and close idle connections; later calls are Unavailable. Safe to repeat."""
        self._closing.set()
        with self._opening:
            if self._transport is not None:
                self._transport.close()

    def _error(self, outcome: Outcome) -> ProviderError:
        kind, meaning = FAILURES[outcome]
        return kind(f"the API of {self.name} {meaning}")

    def _request(self, method: str, path: str, **parts: Unpack[Parts]) -> Request:
        if not PATH.fullmatch(path) or "/../" in f"{path}/":
            raise ValueError("a path of a provider's API is not escaped")
        sent = {**self._headers, **(parts.get("headers") or {})}
        body, query = None, parts.get("query")
        if (json := parts.get("json")) is not None:
            body, sent["Content-Type"] = msgspec.json.encode(json), "application/json"
        elif (form := parts.get("form")) is not None:
            body = urlencode(form).encode()
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        if request_id := request_id_here():
            sent["X-Request-Id"] = request_id
        url = self._base + path + (f"?{urlencode(query, doseq=True)}" if query else "")
        return Request(method, url, body, sent)

    def _try(
        self, request: Request, ends_s: float, pace_s: float, *, alone: bool
    ) -> Reply | Outcome:
        refused = self._closing.is_set() or not self._may_call(ends_s, pace_s)
        if refused or not self._slots.acquire(timeout=_left_s(ends_s)):
            self._on_call(self.name, "held", 0.0)
            return "held"
        started_s = time.monotonic()
        try:
            reply = self._send(request, ends_s, alone=alone)
        finally:
            self._slots.release()
        found, seconds = _judged(reply), time.monotonic() - started_s
        if isinstance(reply, Reply):
            self._pause.extend(reply.status, reply.headers)
        self._on_call(self.name, "answered" if isinstance(found, Reply) else found, seconds)
        if self._record is not None:
            self._record(request, reply, seconds)
        return found

    def _may_call(self, ends_s: float, pace_s: float) -> bool:
        """Wait until the limits allow a call; False if that takes longer than its time-out.

        `pace_s` is the longest wait for a turn at the pace that all processes share.
        """
        if time.monotonic() >= ends_s:  # The reply to a change sent now could only be lost.
            return False
        wait_s, rules = self._pause.left_s(), self._rules
        if rules.calls_per_s is not None and wait_s < _left_s(ends_s):
            paced_s = self._pace(rules.calls_per_s, rules.burst, min(_left_s(ends_s), pace_s))
            wait_s = inf if paced_s is None else max(wait_s, paced_s)
        if wait_s >= _left_s(ends_s):
            return False
        return not (wait_s and self._closing.wait(wait_s))

    def _send(self, request: Request, ends_s: float, *, alone: bool) -> Reply | Outcome:
        """Return the reply or the outcome; raise nothing, because errors hold the address."""
        try:
            return self._open().send(request, _left_s(ends_s), alone=alone)
        except Exception as error:  # noqa: BLE001  # The request may have been sent.
            logger.warning("a call to %s raised %s", self.name, type(error).__name__)
            return "lost"

    def _open(self) -> "Transport":
        """Return the connections; the first call loads the HTTP client."""
        with self._opening:
            if self._transport is None:
                from app.adapters.remote.connection import Transport  # noqa: PLC0415  # As above.

                self._transport = Transport(self._origin, self._rules)
            return self._transport


def _judged(reply: Reply | Outcome) -> Reply | Outcome:
    if isinstance(reply, Reply) and reply.status == TOO_MANY:
        return "limited"
    if isinstance(reply, Reply) and reply.status in TROUBLE:
        return "failed"
    return reply


def _left_s(ends_s: float) -> float:
    """Return the rest of a call's time; never 0, which urllib3 does not accept."""
    return max(ends_s - time.monotonic(), 0.001)


def _parts(base_url: str) -> tuple[Origin, str]:
    parts = urlsplit(base_url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    if not host or parts.query or parts.fragment or parts.username:
        raise ValueError("must be an https URL without query, fragment and user")
    if not secure and not (parts.scheme == "http" and _is_loopback(host)):
        raise ValueError("must be an https URL; http is allowed to this machine only")
    port = parts.port or (443 if secure else 80)
    return Origin(parts.scheme, host, port), parts.path.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
