"""Lookups that the loop of the server answers: usual requests for which nothing has to wait.

All other requests go to a thread and the operation in `routes`, because only that one reports what
is wrong. So this module takes fewer requests than the operation, but its replies never differ.
"""

import logging
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec

from app.bootstrap.container import Container
from app.http.edge.callers import admit, caller_of
from app.http.edge.errors import Outages
from app.http.edge.input import is_key
from app.http.edge.problems import INTERNAL, Problem, problem_of
from app.http.edge.replies import ReplyMeta, failure_body, format_time
from app.http.edge.request import count_of, note_answer, request_id_of
from app.http.gateway import Reply, Scope, reply_in_json
from app.http.lookups.input import is_e164
from app.http.lookups.replies import lookup_reply
from app.http.lookups.routes import LOOKUP, SCOPE, is_enabled
from app.security.rate_limits import Admission
from app.watch.trouble import log_place
from domain.at_once import WouldWait, at_once
from domain.cause import Cause
from domain.errors import Conflict, Refused, ServiceUnavailable
from domain.lookups.single import Begun, LookupRequest

BODY_BYTES_MAX = 256  # A number in JSON, and some spaces.

# A number as nearly all clients write it; the operation reads every other spelling.
_QUERY = re.compile(rb"phone_number=(?:%2[Bb]|\+)([0-9]+)")
_BODY = re.compile(
    rb'[ \t\r\n]*\{[ \t\r\n]*"phone_number"[ \t\r\n]*:[ \t\r\n]*"\+([0-9]+)"'
    rb"[ \t\r\n]*\}[ \t\r\n]*"
)
_JSON = "application/json"
_LOOKED_AT = {
    b"authorization",
    b"content-encoding",
    b"content-type",
    b"idempotency-key",
    b"x-organization-id",
    b"x-request-id",
}

logger = logging.getLogger(__name__)


class LookupsAtOnce:
    """Begins lookups in a thread that must not wait; `paths` are those of the operation."""

    def __init__(
        self,
        container: Container,
        outages: Outages,
        paths: Collection[str],
        new_id: Callable[[], UUID],
    ) -> None:
        self.container = container
        self.outages = outages
        self.count = count_of(container)
        self._paths = {path.encode() for path in paths}
        self._new_id = new_id

    def begin(self, scope: Scope, body: bytes) -> "LookupAtOnce | None":
        """Do a lookup up to its commit; None, with nothing done, if a thread must answer it."""
        if scope["raw_path"] not in self._paths or scope["method"] != "POST":
            return None
        began_s = time.perf_counter()
        try:
            with at_once():
                if self.container.is_resting():
                    return None
                return self._begin(scope, body, began_s)
        except (WouldWait, Exception):  # noqa: BLE001  # A thread gets the same error and answers.
            return None

    def _begin(self, scope: Scope, body: bytes, began_s: float) -> "LookupAtOnce | None":
        headers = _headers(scope)
        number = _number(scope["query_string"], body, headers)
        key = headers.get(b"idempotency-key")
        if number is None or (key is not None and not is_key(key)):
            return None
        authorization = headers.get(b"authorization", "")
        organization = headers.get(b"x-organization-id")
        caller = caller_of(self.container, authorization, organization, SCOPE)
        settings = self.container.settings
        if not is_enabled(settings, caller):
            return None
        wanted = LookupRequest(
            caller.organization_id,
            number,
            settings.lookup_price_micros(caller.price_micros),
            settings.currency,
            key,
        )
        request_id = request_id_of(headers.get(b"x-request-id", ""), self._new_id)
        cause = Cause(self.container.clock(), request_id)
        admission = admit(self.container, caller)
        if admission is not None and admission.is_over:
            return None
        try:
            begun = self.container.single_lookup.begin(wanted, cause)
        except BaseException:
            self.give_back(caller.organization_id, admission)
            raise
        owner = caller.organization_id
        return LookupAtOnce(self, owner, request_id, began_s, begun, admission)

    def give_back(self, organization_id: UUID, admission: Admission | None) -> None:
        """Take back the count of a request, because a thread will count it again."""
        if admission is not None:
            self.container.rate_limits.give_back(organization_id)


@dataclass(eq=False, slots=True)
class LookupAtOnce:
    """A lookup that waits for its commit."""

    by: LookupsAtOnce
    organization_id: UUID
    request_id: str
    began_s: float
    begun: Begun
    admission: Admission | None

    def submit(self, tell: Callable[[], object], ring: Callable[[], object]) -> None:
        """Have it committed."""
        self.begun.submit(tell, ring)

    def expire(self, age_s: float) -> None:
        """End the lookup if it has waited too long."""
        self.begun.expire(age_s)

    def reply(self) -> Reply:
        """Return the reply to an outcome; WouldWait if nothing was committed.

        An unknown outcome is a 503, because something may have been committed.
        """
        self.begun.leave()
        try:
            result = self.begun.result()
        except ServiceUnavailable as error:
            self.by.outages.note(error)
            return self._problem(problem_of(error))
        except (Conflict, Refused):
            self.by.give_back(self.organization_id, self.admission)
            raise WouldWait from None
        except Exception as error:  # noqa: BLE001  # A bug of ours.
            log_place(logger, error)
            return self._problem(INTERNAL)
        return self._whole(200, lookup_reply(self.by.container, result, self._facts()))

    def _problem(self, problem: Problem) -> Reply:
        body = failure_body(problem, ReplyMeta(**self._facts()))
        return self._whole(problem.status, body, problem.headers)

    def _facts(self) -> dict[str, Any]:
        """Return the fields of `meta` that every reply has."""
        return {
            "timestamp": format_time(self.by.container.clock()),
            "response_time_ms": self._elapsed_ms(),
            "request_id": self.request_id,
        }

    def _whole(
        self, status: int, body: object, headers: Mapping[str, str] = MappingProxyType({})
    ) -> Reply:
        limits = self.admission.headers() if self.admission is not None else {}
        note_answer(
            self.by.count,
            "POST",
            LOOKUP,
            status,
            duration_ms=self._elapsed_ms(),
            request_id=self.request_id,
            organization_id=self.organization_id,
        )
        return reply_in_json(
            status,
            msgspec.json.encode(body),
            self.request_id,
            [*limits.items(), *headers.items()],
        )

    def _elapsed_ms(self) -> float:
        return round((time.perf_counter() - self.began_s) * 1000, 1)


def _headers(scope: Scope) -> dict[bytes, str]:
    """Return the headers that a lookup reads; WouldWait if one of them comes twice."""
    found: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _LOOKED_AT:
            if name in found:
                raise WouldWait
            found[name] = value.decode("latin-1")
    return found


def _number(query: bytes, body: bytes, headers: Mapping[bytes, str]) -> str | None:
    """Return the number; None if the query or the body holds anything else."""
    if not body:
        match = _QUERY.fullmatch(query)
    elif query or len(body) > BODY_BYTES_MAX or headers.get(b"content-type") != _JSON:
        return None
    else:
        match = _BODY.fullmatch(body) if b"content-encoding" not in headers else None
    if match is None:
        return None
    number = f"+{match[1].decode()}"
    return number if is_e164(number) else None
