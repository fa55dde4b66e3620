"""Decides which client is calling, for which organization: by one indexed row, or by the log."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, bindparam, case, func, or_, select

from app.security.tokens import Claims
from domain.accounts.organization import ApiClient, Organization, Status
from domain.blocking import may_block, renew_soon
from domain.cause import Clock
from domain.errors import (
    InsufficientScope,
    OrganizationInactive,
    OrganizationNotFound,
    OrganizationSuspended,
    Unauthorized,
)
from domain.log.log import Log
from domain.log.signal import Streams
from projections.engine.database import Database, to_micros
from projections.engine.hot_reads import HotStatement
from projections.engine.positions import Positions
from projections.models.api_clients import ApiClients
from projections.models.organizations import Organizations

# Read models older than this are not trusted, because a stuck projector would miss a revocation.
TRUSTED = timedelta(seconds=1)
TRUSTED_MICROS = TRUSTED // timedelta(microseconds=1)
AHEAD_S = 0.3  # So long before its end a remembered row is read anew.
KNOWN_MAX = 10_000  # Pairs of client and organization.

REVOKED = "The client of this access token has been revoked."
NO_CLIENT = "The client of this access token does not exist."
OTHERS = "The access token names another organization than that of its client."
NOT_APPROVED = "The access token names no organization, and its client is not approved to."
NO_HEADER = "The header X-Organization-Id is missing; this client names its organization there."
HEADER_TWICE = "The header X-Organization-Id must be given once."
NOT_A_UUID = "The header X-Organization-Id must be the UUID of an organization."

Whose = tuple[str, UUID | None]


@dataclass(frozen=True, slots=True)
class Caller:
    """An organization that may act now; `price_micros` is its own price per lookup, if any."""

    client_id: str
    organization_id: UUID
    price_micros: int | None
    lookup_enabled: bool
    per_minute: int  # How many requests its organization may send; 0: any number.


class _State(NamedTuple):
    """What is known of a client and an organization; None for what does not exist.

    `bound_to` is the client's own organization; None for a machine-to-machine client.
    """

    revoked: bool | None
    bound_to: UUID | None
    status: Status | None
    price_micros: int | None = None
    lookup_enabled: bool = True
    rate_limit: int | None = None


NOBODY = _State(revoked=None, bound_to=None, status=None)


class _Remembered(NamedTuple):
    """The last row that was read. Wall and monotonic clock both limit its age: one may be set."""

    state: _State
    caught_up_at: int
    until_s: float  # On the monotonic clock.


@dataclass(slots=True)
class _Known:
    """What is remembered of a client and an organization; times in microseconds since 1970."""

    met_at: int  # Since then this process hears of commits to the two.
    outdated_at: int = 0  # A row as of this moment or earlier may lack events.
    row: _Remembered | None = None


class Memory:
    """The last rows read, and which of them no longer count because the log has moved on.

    A remembered row counts only while a row just read could be as old, and only while this process
    hears of the commits of all processes. After a commit to its client or organization, or when
    the log has contradicted it, the log is read until there is a newer row.
    """

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._lock = Lock()
        self._outdated_at = 0  # For all rows.
        self._known: dict[Whose, _Known] = {}
        self._by_stream: dict[str, set[Whose]] = {}
        log.appended.observer = self._hear

    def recall(self, whose: Whose, read: Callable[[Whose], object], now: datetime) -> _State | None:
        """Return the state of a remembered row, if it still counts; near its end have it read."""
        known = self._known.get(whose)
        row = known.row if known is not None else None
        if known is None or row is None or not self._log.appended.hears_others:
            return None
        left_s = row.until_s - time.monotonic()
        if left_s < 0:
            return None
        if left_s < AHEAD_S:
            renew_soon(whose, partial(read, whose))
        return row.state if self.believes(known, row.caught_up_at, now, known.met_at) else None

    def meet(self, whose: Whose) -> _Known:
        """Return what is known, and hear of its commits from now on; call this before reading."""
        known = self._known.get(whose)
        if known is None:
            client_id, organization_id = whose
            with self._lock:
                if len(self._known) >= KNOWN_MAX:
                    self._outdated_at = self._now()
                    self._known, self._by_stream = {}, {}
                known = self._known.setdefault(whose, _Known(self._now()))
                for stream in filter(None, (ApiClient.id_of(client_id), organization_id)):
                    self._by_stream.setdefault(stream.hex, set()).add(whose)
        return known

    def believes(self, known: _Known, caught_up_at: int, now: datetime, since: int = 0) -> bool:
        """Tell whether a row as of a moment counts: it is neither too old nor outdated."""
        is_near = abs(to_micros(now) - caught_up_at) <= TRUSTED_MICROS
        return is_near and caught_up_at > max(known.outdated_at, self._outdated_at, since)

    def save(self, known: _Known, state: _State, caught_up_at: int) -> None:
        """Remember a row for which `believes` is true."""
        now_s, left = time.monotonic(), caught_up_at + TRUSTED_MICROS - self._now()
        until_s = now_s + min(left, TRUSTED_MICROS) / 1e6
        known.row = _Remembered(state, caught_up_at, until_s)

    def contradict(self, known: _Known) -> None:
        """Note that the log has just told another state than the row."""
        known.outdated_at = self._now()

    def _now(self) -> int:
        return to_micros(self._clock())

    def _hear(self, streams: Streams | None) -> None:
        """Hear of a commit of any process to these streams; None: to any stream."""
        if streams is None:
            # While this process does not hear of others, `recall` returns no row anyway.
            if self._log.appended.hears_others:
                self._outdated_at = self._now()
        elif not self._by_stream.keys().isdisjoint(streams):
            with self._lock:
                for whose in {a for each in streams for a in self._by_stream.get(each, ())}:
                    self._known[whose].outdated_at = self._now()


class Authorizer:
    """Checks client, organization and scope, in this order."""

    def __init__(  # noqa: PLR0913  # The one statement reads three tables.
        self,
        log: Log,
        database: Database,
        positions: Positions,
        organizations: Organizations,
        clients: ApiClients,
        clock: Clock,
        usual_limit: int,  # Of requests per minute; an organization may have its own.
    ) -> None:
        self._log, self._usual_limit = log, usual_limit
        self._database = database
        self._statement = HotStatement(_statement(positions, organizations, clients))
        self._memory, self._clock = Memory(log, clock), clock

    def authorize(self, claims: Claims, named: str | None, scope: str, now: datetime) -> Caller:
        """Return the client and the organization that it acts for.

        Without an organization in the token that `named` in the header counts, for
        machine-to-machine clients only. Raises Unauthorized for a revoked client or a claim that is
        not the client's own organization. Then it checks the organization, and at last raises
        InsufficientScope.
        """
        claimed = claims.organization_id
        wanted = claimed if claimed is not None else _uuid_of(named)
        state = self._state((claims.client_id, wanted), now)
        _require_client(state)
        if claimed is not None and claimed != state.bound_to:
            raise Unauthorized(OTHERS)
        if claimed is None and state.bound_to is not None:
            raise OrganizationNotFound(NOT_APPROVED)
        if wanted is None:
            # WSGI joins the values of a repeated header.
            odd = HEADER_TWICE if "," in (named or "") else NOT_A_UUID
            raise OrganizationNotFound(odd if (named or "").strip() else NO_HEADER)
        if state.status is None:
            raise OrganizationNotFound
        if state.status == "suspended":
            raise OrganizationSuspended
        if state.status != "active":
            raise OrganizationInactive
        if scope not in claims.scopes:
            raise _lacking(scope)
        price_micros, enabled = state.price_micros, state.lookup_enabled
        limit = self._usual_limit if state.rate_limit is None else state.rate_limit
        return Caller(claims.client_id, wanted, price_micros, enabled, limit)

    def authorize_machine(self, claims: Claims, scope: str, now: datetime) -> None:
        """Check a machine-to-machine client that acts for no organization.

        Raises Unauthorized for a revoked client, and InsufficientScope for a client of one
        organization, or without the scope.
        """
        state = self._state((claims.client_id, None), now)
        _require_client(state)
        is_bound = claims.organization_id is not None or state.bound_to is not None
        if is_bound or scope not in claims.scopes:
            raise _lacking(scope)

    def _state(self, whose: Whose, now: datetime) -> _State:
        remembered = self._memory.recall(whose, self._read, now)
        if remembered is not None:
            return remembered
        may_block(whose, partial(self._read, whose))
        return self._read(whose)

    def _read(self, whose: Whose) -> _State:
        (client_id, organization_id), memory = whose, self._memory
        known = memory.meet(whose)
        row, caught_up_at = self._state_of_row(client_id, organization_id)
        # The read model may not have the organization yet, so then the log decides.
        is_whole = organization_id is None or row.status is not None
        if row is not NOBODY and is_whole and memory.believes(known, caught_up_at, self._clock()):
            memory.save(known, row, caught_up_at)
            return row
        state = self._state_of_log(client_id, organization_id)
        # Also if there was no row, because the first row may still show an older state.
        if state != row:
            memory.contradict(known)
        return state

    def _state_of_row(self, client_id: str, organization_id: UUID | None) -> tuple[_State, int]:
        found = self._database.rows(self._statement, client=client_id, wanted=organization_id)
        if not found:
            return NOBODY, 0
        revoked, bound_to, status, price_micros, enabled, rate_limit, caught_up_at = found[0]
        whose = UUID(bound_to) if isinstance(bound_to, str) else bound_to
        may_look_up = enabled is None or bool(enabled)
        state = _State(bool(revoked), whose, status, price_micros, may_look_up, rate_limit)
        return state, caught_up_at or 0

    def _state_of_log(self, client_id: str, organization_id: UUID | None) -> _State:
        client = self._log.find(ApiClient, ApiClient.id_of(client_id))
        its = None if organization_id is None else self._log.find(Organization, organization_id)
        revoked, bound_to = (client.revoked, client.organization_id) if client else (None, None)
        if its is None:
            return _State(revoked, bound_to, None)
        limit = its.rate_limit_per_minute
        return _State(revoked, bound_to, its.status, its.price_micros, its.lookup_enabled, limit)


def _require_client(state: _State) -> None:
    if state.revoked is not False:
        raise Unauthorized(REVOKED if state.revoked else NO_CLIENT)


def _lacking(scope: str) -> InsufficientScope:
    return InsufficientScope(f"The access token lacks the scope {scope}.")


def _statement(
    positions: Positions, organizations: Organizations, clients: ApiClients
) -> Select[*tuple[Any, ...]]:
    """Select a client, an organization, and how fresh both are; NULLs without an organization."""
    known, client, organization = positions.rows.c, clients.rows.c, organizations.rows.c
    # A model that never caught up has NULL there, which `min` would ignore.
    names = (clients.name, organizations.name)
    oldest = func.min(func.coalesce(known.caught_up_at, 0))
    caught_up_at = (
        select(case((func.count() == len(names), oldest), else_=0))
        .where(or_(*(known.name == name for name in names)))
        .scalar_subquery()
    )
    wanted = organization.id == bindparam("wanted", type_=organization.id.type)
    return (
        select(
            client.revoked,
            client.organization_id,
            organization.status,
            organization.price_micros,
            organization.lookup_enabled,
            organization.rate_limit_per_minute,
            caught_up_at.label("caught_up_at"),
        )
        .select_from(clients.rows.outerjoin(organizations.rows, wanted))
        .where(client.client_id == bindparam("client"))
    )


def _uuid_of(named: str | None) -> UUID | None:
    text = (named or "").strip()
    with suppress(ValueError):
        if str(parsed := UUID(text)) == text.lower():
            return parsed
    return None
