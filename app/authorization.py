"""Who is calling, for which organization: decided on one indexed row, or on the log itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, bindparam, case, func, or_, select

from domain.application import Log
from domain.cause import Clock
from domain.errors import (
    InsufficientScope,
    OrganizationInactive,
    OrganizationNotFound,
    OrganizationSuspended,
    Unauthorized,
)
from domain.organization import ApiClient, Organization, Status, api_client_id
from projections.api_clients import ApiClients
from projections.database import Database, to_micros
from projections.organizations import Organizations
from projections.positions import Positions
from projections.quick import Quick

TRUSTED = timedelta(seconds=1)  # Older read models are not believed: a stuck projector is no pass.
OVERTAKEN_MAX = 10_000  # Pairs of client and organization.

REVOKED = "The client of this access token has been revoked."
NO_CLIENT = "The client of this access token does not exist."
OTHERS = "The access token names another organization than that of its client."
NOT_APPROVED = "The access token names no organization, and its client is not approved to."
NO_HEADER = "The header X-Organization-Id is missing; this client names its organization there."
HEADER_TWICE = "The header X-Organization-Id must be given once."
NOT_A_UUID = "The header X-Organization-Id must be the UUID of an organization."

Asked = tuple[str, UUID | None]


@dataclass(frozen=True, slots=True)
class Caller:
    """An organization that may act now; `price_micros` is its own price per lookup, if any."""

    client_id: str
    organization_id: UUID
    price_micros: int | None
    lookup_enabled: bool


@dataclass(frozen=True, slots=True)
class _State:
    """What is known of a client and an organization; None where there is none.

    `bound_to` is the client's own organization; None for a machine-to-machine client.
    """

    revoked: bool | None
    bound_to: UUID | None
    status: Status | None
    price_micros: int | None = None
    lookup_enabled: bool = True


NOBODY = _State(revoked=None, bound_to=None, status=None)


class _Row(NamedTuple):
    """What the one statement selects."""

    revoked: int
    bound_to: Any  # Its organization, as the database writes it; None for all.
    status: Status | None
    price_micros: int | None
    lookup_enabled: int | None
    caught_up_at: int | None


class Overtaken:
    """Rows that lag behind what the log has said here: nobody is told the older state again.

    It is remembered until the read models have read the log once more, within a second or so.
    """

    def __init__(self) -> None:
        self._asked_at: dict[Asked, int] = {}

    def note(self, asked: Asked, now: datetime) -> None:
        """The log has just said something else than the row."""
        if len(self._asked_at) >= OVERTAKEN_MAX:
            for each, asked_at in [*self._asked_at.items()]:
                if not _is_near(asked_at, now):
                    self._asked_at.pop(each, None)
        self._asked_at[asked] = to_micros(now)

    def by(self, asked: Asked, caught_up_at: int, now: datetime) -> bool:
        """Tell whether a row that is as of a moment may be older than what the log has said."""
        asked_at = self._asked_at.get(asked)
        if asked_at is None:
            return False
        if _is_near(asked_at, now) and caught_up_at <= asked_at:
            return True
        self._asked_at.pop(asked, None)
        return False


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
    ) -> None:
        self._log = log
        self._database = database
        self._clock = clock
        self._statement = Quick(_statement(positions, organizations, clients))
        self._overtaken = Overtaken()

    def authorize(
        self,
        client_id: str,
        claimed: UUID | None,
        named: Sequence[str],
        granted: frozenset[str],
        scope: str,
    ) -> Caller:
        """Return who is calling.

        `claimed` is the organization of the token; without it the `named` header values count, for
        approved machine-to-machine clients only. Raises Unauthorized for a revoked client and for
        a claim that is not the client's own, then the refusals of the organization, then
        InsufficientScope.
        """
        wanted = claimed if claimed is not None else _single_uuid(named)
        state = self._state(client_id, wanted)
        if state.revoked is not False:
            raise Unauthorized(REVOKED if state.revoked else NO_CLIENT)
        if claimed is not None and claimed != state.bound_to:
            raise Unauthorized(OTHERS)
        if claimed is None and state.bound_to is not None:
            raise OrganizationNotFound(NOT_APPROVED)
        if wanted is None:
            raise OrganizationNotFound(_header_problem(named))
        if state.status is None:
            raise OrganizationNotFound
        if state.status == "suspended":
            raise OrganizationSuspended
        if state.status != "active":
            raise OrganizationInactive
        if scope not in granted:
            message = f"The access token lacks the scope {scope}."
            raise InsufficientScope(message)
        return Caller(client_id, wanted, state.price_micros, state.lookup_enabled)

    def _state(self, client_id: str, organization_id: UUID | None) -> _State:
        asked, row = (client_id, organization_id), self._row(client_id, organization_id)
        told = NOBODY if row is None else _state_of(row)
        if row is not None and self._is_believed(asked, row):
            return told
        state = self._state_of_log(client_id, organization_id)
        if state != told:  # Also of a row that is yet to come: its first state may be a past one.
            self._overtaken.note(asked, self._clock())
        return state

    def _is_believed(self, asked: Asked, row: _Row) -> bool:
        """Tell whether the row decides; one that is missing or from the future does not."""
        now = self._clock()
        if (asked[1] is not None and row.status is None) or row.caught_up_at is None:
            return False
        fresh = _is_near(row.caught_up_at, now)
        return fresh and not self._overtaken.by(asked, row.caught_up_at, now)

    def _row(self, client_id: str, organization_id: UUID | None) -> _Row | None:
        found = self._database.rows(self._statement, client=client_id, wanted=organization_id)
        return _Row(*found[0]) if found else None

    def _state_of_log(self, client_id: str, organization_id: UUID | None) -> _State:
        client = self._log.find(ApiClient, api_client_id(client_id))
        organization = None
        if organization_id is not None:
            organization = self._log.find(Organization, organization_id)
        return _State(
            revoked=None if client is None else client.revoked,
            bound_to=None if client is None else client.organization_id,
            status=None if organization is None else organization.status,
            price_micros=None if organization is None else organization.price_micros,
            lookup_enabled=organization is None or organization.lookup_enabled,
        )


def _state_of(row: _Row) -> _State:
    return _State(
        revoked=bool(row.revoked),
        bound_to=UUID(row.bound_to) if isinstance(row.bound_to, str) else row.bound_to,
        status=row.status,
        price_micros=row.price_micros,
        lookup_enabled=row.lookup_enabled is None or bool(row.lookup_enabled),
    )


def _is_near(micros: int, now: datetime) -> bool:
    return to_micros(now - TRUSTED) <= micros <= to_micros(now + TRUSTED)


def _statement(
    positions: Positions, organizations: Organizations, clients: ApiClients
) -> Select[*tuple[Any, ...]]:
    """Select a client, an organization and how fresh both are; NULLs for no organization."""
    places, client, organization = positions.rows.c, clients.rows.c, organizations.rows.c
    # A model that never caught up has NULL there, which `min` would pass over.
    names = (clients.name, organizations.name)
    oldest = func.min(func.coalesce(places.caught_up_at, 0))
    caught_up_at = (
        select(case((func.count() == len(names), oldest), else_=0))
        .where(or_(*(places.name == name for name in names)))
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
            caught_up_at.label("caught_up_at"),
        )
        .select_from(clients.rows.outerjoin(organizations.rows, wanted))
        .where(client.client_id == bindparam("client"))
    )


def _header_problem(values: Sequence[str]) -> str:
    """Return why the values of the header name no organization."""
    if not any(value.strip() for value in values):
        return NO_HEADER
    # WSGI joins the values of a header that is repeated.
    return HEADER_TWICE if "," in ",".join(values) else NOT_A_UUID


def _single_uuid(values: Sequence[str]) -> UUID | None:
    if len(values) != 1:
        return None
    text = values[0].strip()
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text.lower() else None
