"""One request: its context (id, start, caller), and the log line and the count at its end.

Nothing of the context outlives the request.
"""

import logging
import re
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from itertools import islice
from random import getrandbits
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from flask import Request, has_request_context
from flask.globals import request_ctx

from app.bootstrap.container import Container
from app.security.rate_limits import Admission
from domain.cause import Cause
from domain.errors import RateLimited

# An id has only characters that logs and other services take without escaping. Any other id is
# replaced by ours.
REQUEST_ID = r"^[A-Za-z0-9._~:/@=+-]{1,128}$"
_REQUEST_ID = re.compile(REQUEST_ID)
UUID_FORM = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

# What no part of an id may look like, because it is kept for ever, unencrypted: a phone number (a
# plus, or ten digits, also beside letters and divided), the number of a SIM (IMSI, ICCID), an
# activation code, a secret of ours, a token (RFC 7519).
_PERSONAL = re.compile(
    r"\+(?:[^0-9A-Za-z]*[0-9]){7}|[0-9](?:[^0-9A-Za-z]*[0-9]){9}"
    r"|[Ll][Pp][Aa]:|cls_|opk_|hov_|whsec_|eyJ"
)
# What is made by chance may hold ten digits: UUIDs, and the long hexadecimal ids of traces.
_RANDOM = re.compile(
    r"\b(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    r"|(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{32,})\b"
)

# A query as nearly all are, in which only the plus is encoded. Werkzeug, which reads all others,
# would take ten times as long.
_PAIR = r"[a-z_]+=(?:[A-Za-z0-9_.~-]|%2[Bb])*"
_PLAIN = re.compile(f"{_PAIR}(?:&{_PAIR})*")

NAME_CHARS_MAX = 64  # Of a name that a client has chosen, where a reply repeats it.
ADDRESS_CHARS_MAX = 100  # More than any address has, with brackets, zone and port.

# To read 64 KiB of one of these takes a tenth of a second; nobody needs so many words.
SHORT_HEADERS = (
    *("CONTENT_TYPE", "HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING", "HTTP_ACCEPT_LANGUAGE"),
    *("HTTP_PREFER", "HTTP_USER_AGENT"),
)
SHORT_HEADER_CHARS_MAX = 4096

METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

NO_SNIFF = ("X-Content-Type-Options", "nosniff")
NO_STORE = ("Cache-Control", "no-store")

Found = TypeVar("Found")

logger = logging.getLogger("app.http.access")


@dataclass(slots=True)
class Given(Generic[Found]):
    """One request to an installation, and what it brings once that has been checked.

    `extensions` are those of the application. `at` is when the checks have begun, in a thread when
    they have ended. `admission` says how the rate limit has counted the request, `found` is what
    the `resource` of its operation has found by the path. `stale`: the reply shows a read model
    that is behind; it shows the log as of `as_of`. `resources` are given back when the reply has
    been sent or given up.
    """

    parts: Container
    extensions: Mapping[str, Any]
    environ: dict[str, Any]
    request_id: str
    started_s: float = field(default_factory=time.perf_counter)
    operation: Any = None  # None: it is not known yet, or none of ours answers.
    at: datetime = field(init=False)
    organization_id: UUID | None = None
    admission: Admission | None = None  # None: no limit.
    path: Mapping[str, str] = field(init=False)
    found: Found = field(init=False)
    query: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, Any] = field(default_factory=dict)
    stale: bool = False
    as_of: datetime | None = None
    resources: ExitStack | None = None
    request: Request | None = None  # Where the loop answers, and something of it is asked for.
    _sent_query: Mapping[str, list[str]] | None = None

    @classmethod
    def of(cls, parts: Container, extensions: Mapping[str, Any], environ: dict[str, Any]) -> Self:
        """Return the context of a request; a header that is too long is as if it was not sent."""
        for name in SHORT_HEADERS:
            if len(environ.get(name, "")) > SHORT_HEADER_CHARS_MAX:
                del environ[name]
        return cls(parts, extensions, environ, request_id_of(environ))

    @property
    def sent_query(self) -> Mapping[str, list[str]]:
        """The values of each parameter of the query as sent, by its name."""
        if self._sent_query is None:
            self._sent_query = query_of(self.environ)
        return self._sent_query

    @property
    def key(self) -> str | None:
        return self.headers.get("key")

    def unknown_parameters(self, count: int) -> list[str]:
        """Return the first names in its query that its operation does not read."""
        if self.operation is None or self.operation.parameters.issuperset(self.sent_query):
            return []
        unknown = (name for name in self.sent_query if name not in self.operation.parameters)
        return [repeated(name) for name in islice(unknown, count)]

    def cause(self, at: datetime | None = None, of: str | None = None) -> Cause:
        """Return the cause of events; `of` is a client, where it has to stand in them."""
        return Cause(at or self.at, self.request_id, of and f"client:{of}")

    def refuse_over_limit(self) -> None:
        """Refuse it if its organization has sent too many in this minute."""
        admission = self.admission
        if admission is not None and admission.is_over:
            message = f"More than {admission.per_minute} requests came in this minute."
            raise RateLimited(message, retry_after_s=admission.resets_s)

    def elapsed_ms(self) -> float:
        """Return how long the request has taken so far, in ms with one decimal."""
        return round((time.perf_counter() - self.started_s) * 1000, 1)

    def end(self, given_method: str, route: str, status: int) -> list[tuple[str, str]]:
        """Log and count its reply; return the headers that every reply has.

        By its route, never by its path or query.
        """
        method = given_method if given_method in METHODS else "-"
        duration_ms = self.elapsed_ms()
        facts = {
            "method": method,
            "route": route,
            "status": status,
            "duration_ms": duration_ms,
            "request_id": self.request_id,
            "organization_id": str(self.organization_id or "-"),
            "command": f"{method} {route}",
        }
        logger.info("answered", extra=facts)
        if self.parts.settings.metrics_port:
            self.parts.metrics.answered(method, route, status, duration_ms / 1000)
        limits = {} if self.admission is None else self.admission.headers()
        return [("X-Request-Id", self.request_id), NO_SNIFF, *limits.items(), NO_STORE]

    def give_back(self) -> None:
        """Take back the count of the request, because a thread will count it again."""
        is_counted = self.admission is not None and not self.admission.is_over
        if is_counted and self.organization_id is not None:
            self.parts.rate_limits.give_back(self.organization_id)

    def acquire(self, slot: AbstractContextManager[object]) -> None:
        """Enter `slot` until the last byte of the reply is sent, or the client has gone."""
        if self.resources is None:
            self.resources = ExitStack()
        self.resources.enter_context(slot)


CURRENT: ContextVar[Given[Any]] = ContextVar("request")


def request_id_of(environ: Mapping[str, Any]) -> str:
    """Return the id that a request brings; if that is not allowed, a new one.

    `uuid4` would make a system call, at which threads would switch.
    """
    given = environ.get("HTTP_X_REQUEST_ID", "")
    if _REQUEST_ID.fullmatch(given) and not _PERSONAL.search(_RANDOM.sub("x", given)):
        return str(given)
    return str(UUID(int=getrandbits(128), version=4))


def current_request() -> Request:
    """Return the request that is being answered, without a proxy."""
    if has_request_context():
        return request_ctx.request
    context = CURRENT.get()
    if context.request is None:
        context.request = Request(context.environ)
    return context.request


def caller_address(environ: Mapping[str, Any], proxies: int) -> str:
    """Return the address that a request counts for; of IPv6 the /64, all of which a caller has.

    Of X-Forwarded-For the last `proxies` entries are from proxies that we trust. The first of these
    that is an address is taken: where one wrote something else, its own address, which the next one
    wrote, stands for the caller.
    """
    peer: str = environ.get("REMOTE_ADDR", "")
    seen = environ.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", proxies)[-proxies:]
    for each in [*(seen if proxies else ()), peer]:
        address = _address(each.strip()[:ADDRESS_CHARS_MAX])
        if isinstance(address, IPv6Address):
            return str(IPv6Network((address, 64), strict=False))
        if address is not None:
            return str(address)
    return peer


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Read an address that may have brackets, a port and a zone."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def query_of(environ: dict[str, Any]) -> Mapping[str, list[str]]:
    """Return the values of each parameter of a query, by its name."""
    text = environ.get("QUERY_STRING", "")
    if not _PLAIN.fullmatch(text):
        return Request(environ).args.to_dict(flat=False) if text else {}
    found: dict[str, list[str]] = {}
    for pair in text.split("&"):
        name, _, value = pair.partition("=")
        found.setdefault(name, []).append(value.replace("%2B", "+").replace("%2b", "+"))
    return found


def repeated(name: str) -> str:
    """Return a name that the client has chosen as a reply repeats it: short, and printable."""
    shown = name[:NAME_CHARS_MAX]
    return "".join(each if each.isprintable() else "\ufffd" for each in shown)


def below(url: str, root: str) -> str:
    """Return our URL with `root` added, unless it ends with the root already."""
    return url if not root or urlsplit(url).path.endswith(root) else url + root


def reached(url: str) -> str:
    """Return our URL as the client of this request reaches it."""
    return below(url, current_request().script_root)


def current_request_id() -> str | None:
    """Return the id of the request that this thread answers, if any; for log lines."""
    context = CURRENT.get(None)
    return None if context is None else context.request_id
