"""The catalogue: every plan, and which of them an organization may see.

A batch is reduced to its outcome first: of several changes of a plan only the last is written.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    BindParameter,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    Uuid,
    and_,
    bindparam,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from domain.catalogue.plan import CoverageType, Plan, PlanKey, PlanTerms, key_of
from domain.log.log import Recorded
from domain.regions import REGIONS
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement, as_id
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel, execute_many

Rows = list[dict[str, Any]]
Pair = tuple[UUID, UUID]  # A plan and an organization that it is hidden from.


class PlanBatch:
    """The rows to write, in this order: new plans, changes of older ones, their parts.

    `changed` and `switched` concern only plans of earlier batches. `countries` and `profiles` hold
    all rows of the plans that they mention. Pairs in `exclusions_touched` are deleted before those
    in `exclusions` are inserted.
    """

    def __init__(self, batch: Sequence[Recorded]) -> None:
        self._published: dict[UUID, Plan.Published] = {}
        self._terms: dict[UUID, PlanTerms] = {}
        self._enabled: dict[UUID, bool] = {}
        self._excluded: dict[Pair, bool] = {}
        for recorded in batch:
            self._add(recorded.event)

    def _add(self, event: object) -> None:
        match event:
            case Plan.Published():
                plan_id = event.originator_id
                self._published[plan_id] = event
                self._terms[plan_id] = event.terms
                self._enabled[plan_id] = event.enabled
                self._excluded |= {(plan_id, each): True for each in event.excluded_organizations}
            case Plan.Changed():
                self._terms[event.originator_id] = event.terms
            case Plan.Enabled() | Plan.Disabled():
                self._enabled[event.originator_id] = isinstance(event, Plan.Enabled)
            case Plan.OrganizationExcluded() | Plan.OrganizationIncluded():
                pair = (event.originator_id, event.organization_id)
                self._excluded[pair] = isinstance(event, Plan.OrganizationExcluded)

    @property
    def new(self) -> Rows:
        """Plans that the batch has published, in the state in which it leaves them."""
        return [
            {
                "id": plan_id,
                "organization_id": event.organization_id,
                "enabled": self._enabled[plan_id],
                **_columns(self._terms[plan_id]),
            }
            for plan_id, event in self._published.items()
        ]

    @property
    def changed(self) -> Rows:
        """New terms of plans of earlier batches."""
        return [
            {"plan": plan_id, **{f"new_{name}": each for name, each in _columns(terms).items()}}
            for plan_id, terms in self._terms.items()
            if plan_id not in self._published
        ]

    @property
    def switched(self) -> Rows:
        """Whether plans of earlier batches are enabled."""
        return [
            {"plan": plan_id, "on": enabled}
            for plan_id, enabled in self._enabled.items()
            if plan_id not in self._published
        ]

    @property
    def countries(self) -> Rows:
        """All countries of the plans that have new terms."""
        return [
            {"plan_id": plan_id, "country_code": code}
            for plan_id, terms in self._terms.items()
            for code in {each.country_code: None for each in terms.coverage}
        ]

    @property
    def profiles(self) -> Rows:
        """All sponsor profiles of the plans that have new terms."""
        return [
            {"plan_id": plan_id, "profile_id": profile_id, "name": name}
            for plan_id, terms in self._terms.items()
            for profile_id, name in {each.id: each.name for each in terms.sponsor_profiles}.items()
        ]

    @property
    def exclusions_touched(self) -> Rows:
        """Pairs of plan and organization whose exclusion has begun or ended."""
        return [{"plan": plan, "organization": each} for plan, each in self._excluded]

    @property
    def exclusions(self) -> Rows:
        """Pairs of plan and organization that are excluded."""
        return [
            {"plan_id": plan_id, "organization_id": organization_id}
            for (plan_id, organization_id), is_true in self._excluded.items()
            if is_true
        ]


def _columns(terms: PlanTerms) -> dict[str, Any]:
    return {
        "provider_plan_id": terms.provider_plan_id,
        "name": terms.name,
        "coverage_type": terms.coverage_type,
        "terms": msgspec.json.encode(terms).decode(),
    }


# Sorted by the bytes of UTF-8 in every database; the locale of the database must not decide.
NAME = String().with_variant(String(collation="C"), "postgresql")

_TERMS = msgspec.json.Decoder(PlanTerms)


class _Network(msgspec.Struct):
    network: str | None = None


_NETWORK = msgspec.json.Decoder(_Network)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One plan; `organization_id` is None for a global one, hidden from those in `excluded`."""

    id: UUID
    organization_id: UUID | None
    terms: PlanTerms
    enabled: bool
    excluded: list[UUID]

    def at(self, moment: datetime) -> "PlanRow":
        """Return the plan with the price that holds at a moment; a row has later prices too."""
        return replace(self, terms=self.terms.at(moment))


@dataclass(frozen=True, slots=True)
class PlanFilter:
    """Which plans to list; `sponsor_profile` is an id or a name."""

    region: str | None = None
    country: str | None = None
    coverage_type: CoverageType | None = None
    sponsor_profile: str | None = None


# A literal, because a bound value would have to be given at each call.
COMMA: Any = literal_column("','")


class Plans(ReadModel):
    """One row per plan, and one for each country, sponsor profile and exclusion of it."""

    name = "plans"
    uses = (Plan.Event,)

    def build(self) -> Sequence[Table]:
        """Define the tables; `terms` are JSON, and fields that filters use have columns too."""
        self.rows = self.table(
            "plans",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid),
            Column("provider_plan_id", String),
            Column("name", NAME, nullable=False),
            Column("coverage_type", String, nullable=False),
            Column("enabled", Boolean, nullable=False),
            Column("terms", String, nullable=False),
            self.index("plans_by_name", "name", "id"),
            self.index("plans_by_owner", "organization_id", "provider_plan_id"),
        )
        self.countries = self.table(
            "plan_countries",
            Column("plan_id", Uuid, primary_key=True),
            Column("country_code", String, primary_key=True),
        )
        self.profiles = self.table(
            "plan_sponsor_profiles",
            Column("plan_id", Uuid, primary_key=True),
            Column("profile_id", String, primary_key=True),
            Column("name", String, nullable=False),
        )
        self.exclusions = self.table(
            "plan_exclusions",
            Column("plan_id", Uuid, primary_key=True),
            Column("organization_id", Uuid, primary_key=True),
        )
        is_visible = self._visible_to(bindparam("organization"))
        # Built once, because each creation of a link and each change of its plans runs it.
        self._one = HotStatement(
            self._select().where(self.rows.c.id == bindparam("plan"), is_visible)
        )
        return [self.rows, self.countries, self.profiles, self.exclusions]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write the outcome of the batch in a few statements, however many plans it concerns."""
        seen = PlanBatch(batch)
        plan_id: BindParameter[UUID] = bindparam("plan")
        insert_many(connection, self.rows, seen.new)
        update = self.rows.update().where(self.rows.c.id == plan_id)
        for column in ("name", "provider_plan_id", "coverage_type", "terms"):
            update = update.values({column: bindparam(f"new_{column}")})
        execute_many(connection, update, seen.changed)
        switch = self.rows.update().where(self.rows.c.id == plan_id)
        execute_many(connection, switch.values(enabled=bindparam("on")), seen.switched)
        for table, rows in ((self.countries, seen.countries), (self.profiles, seen.profiles)):
            old = table.delete().where(table.c.plan_id == plan_id)
            execute_many(connection, old, [{"plan": row["plan"]} for row in seen.changed])
            insert_many(connection, table, rows)
        pair = self.exclusions.c
        old = self.exclusions.delete().where(
            pair.plan_id == plan_id, pair.organization_id == bindparam("organization")
        )
        execute_many(connection, old, seen.exclusions_touched)
        insert_many(connection, self.exclusions, seen.exclusions)

    def page(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: PlanFilter,
        *,
        offset: int,
        limit: int,
    ) -> tuple[list[PlanRow], int]:
        """Return one page of the plans that an organization sees, by name, and how many match."""
        conditions = [self._visible_to(organization_id), *self._conditions(wanted)]
        count = select(func.count()).select_from(self.rows).where(*conditions)
        total = connection.execute(count).scalar_one()
        # Only ids are sorted, because whole rows would be read up to the offset.
        plan = self.rows.c
        ids = select(plan.id).where(*conditions).order_by(plan.name, plan.id)
        rows = self._select().where(plan.id.in_(ids.offset(offset).limit(limit)))
        return [_read(row) for row in connection.execute(rows)], total

    def get(self, database: Database, organization_id: UUID, plan_id: UUID) -> PlanRow | None:
        rows = database.rows(self._one, plan=plan_id, organization=organization_id)
        return _read(rows[0]) if rows else None

    def compatible(
        self,
        connection: Connection,
        organization_id: UUID,
        sponsor_profile_id: str | None,
        country: str | None = None,
    ) -> list[PlanRow]:
        """Return the plans that an organization sees and that can be put on a link of this profile.

        If the profile is known, only plans that have it and are connected to the network; if a
        country is named, only plans that cover it.
        """
        wanted = PlanFilter(country=country)
        conditions = [self._visible_to(organization_id), *self._conditions(wanted)]
        if sponsor_profile_id is not None:
            has_it = self.profiles.c.profile_id == sponsor_profile_id
            conditions += [
                self.rows.c.provider_plan_id.is_not(None),
                self._exists(self.profiles, has_it),
            ]
        return [_read(row) for row in connection.execute(self._select().where(*conditions))]

    def by_id(self, connection: Connection, plan_ids: Collection[UUID]) -> dict[UUID, PlanRow]:
        """Read plans by id, whoever may see them now; links show plans bought earlier."""
        if not plan_ids:
            return {}
        statement = self._select().where(self.rows.c.id.in_(plan_ids))
        return {row.id: _read(row) for row in connection.execute(statement)}

    def all(self, connection: Connection) -> list[PlanRow]:
        """Read every plan, by name."""
        return [_read(row) for row in connection.execute(self._select())]

    def keys(self, connection: Connection) -> Mapping[PlanKey, Sequence[UUID]]:
        """Return the ids of all plans by the key under which an import knows them."""
        columns = self.rows.c
        known_by = columns.organization_id, columns.provider_plan_id, columns.name
        statement = select(columns.id, *known_by, columns.terms)
        found: dict[PlanKey, list[UUID]] = {}
        for plan_id, owner, provider_plan_id, name, terms in connection.execute(statement):
            key = key_of(owner, provider_plan_id, name, _NETWORK.decode(terms).network)
            found.setdefault(key, []).append(plan_id)
        return found

    def _select(self) -> Select[Any]:
        """Select plans by name, then id, each with the organizations that it is hidden from."""
        columns, pair = self.rows.c, self.exclusions.c
        excluded = (
            select(func.aggregate_strings(cast(pair.organization_id, String), COMMA))
            .where(pair.plan_id == columns.id)
            .scalar_subquery()
        )
        return select(
            columns.id,
            columns.organization_id,
            columns.terms,
            columns.enabled,
            excluded.label("excluded"),
        ).order_by(columns.name, columns.id)

    def _visible_to(self, organization_id: UUID | BindParameter[UUID]) -> ColumnElement[bool]:
        """Select visible plans; an organization's copy hides the global plan even if disabled."""
        plan, own = self.rows.c, self.rows.alias("own")
        is_excluded = self._exists(
            self.exclusions, self.exclusions.c.organization_id == organization_id
        )
        is_copied = exists().where(
            own.c.organization_id == organization_id,
            own.c.provider_plan_id == plan.provider_plan_id,
        )
        is_global = and_(plan.organization_id.is_(None), ~is_excluded, ~is_copied)
        return and_(plan.enabled, or_(plan.organization_id == organization_id, is_global))

    def _conditions(self, wanted: PlanFilter) -> list[ColumnElement[bool]]:
        country, profile = self.countries.c, self.profiles.c
        conditions: list[ColumnElement[bool]] = []
        if wanted.region is not None:
            codes = REGIONS[wanted.region].countries
            conditions.append(self._exists(self.countries, country.country_code.in_(codes)))
        if wanted.country is not None:
            is_it = country.country_code == wanted.country
            conditions.append(self._exists(self.countries, is_it))
        if wanted.coverage_type is not None:
            conditions.append(self.rows.c.coverage_type == wanted.coverage_type)
        if wanted.sponsor_profile is not None:
            named = (profile.profile_id, profile.name)
            is_it = or_(*(column == wanted.sponsor_profile for column in named))
            conditions.append(self._exists(self.profiles, is_it))
        return conditions

    def _exists(self, table: Table, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        return exists().where(table.c.plan_id == self.rows.c.id, condition)


def _read(row: Sequence[Any]) -> PlanRow:
    plan_id, organization_id, terms, enabled, excluded = row
    return PlanRow(
        id=as_id(plan_id),
        organization_id=None if organization_id is None else as_id(organization_id),
        terms=_TERMS.decode(terms),
        enabled=bool(enabled),
        excluded=sorted(map(UUID, excluded.split(",")), key=str) if excluded else [],
    )
