"""The catalogue: every plan, and which of them an organization may see."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    Uuid,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
)
from sqlalchemy.schema import SchemaItem

from domain.catalogue.plan import CoverageType, Plan, PlanKey, PlanTerms, key_of
from domain.log.aggregate import Root
from domain.regions import REGIONS
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement
from projections.engine.inserting import insert_many
from projections.engine.read_model import Snapshot, execute_many

# Sorted by the bytes of UTF-8 in every database; the locale of the database must not decide.
NAME = String().with_variant(String(collation="C"), "postgresql")


class _Network(Struct):
    network: str | None = None


_NETWORK = msgspec.json.Decoder(_Network)


class PlanRow(Struct, frozen=True):
    """One plan; `organization_id` is None for a global one, hidden from those in `excluded`."""

    id: UUID
    organization_id: UUID | None
    terms: PlanTerms
    enabled: bool
    excluded: set[UUID]

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


FILTERED = ("provider_plan_id", "name", "coverage_type")
Part = Mapping[str, Any]  # A row of what belongs to a plan.


class Plans(Snapshot[PlanRow]):
    """One row per plan, and one for each country, sponsor profile and exclusion of it."""

    name = "plans"
    version = 2
    uses = (Plan.Event,)
    of_kind, row = Plan, PlanRow

    def build(self) -> Sequence[Table]:
        """Define the tables; fields of the terms that filters use have columns too."""
        super().build()
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
        self._parts = {
            self.countries: _countries_of,
            self.profiles: _profiles_of,
            self.exclusions: _exclusions_of,
        }
        is_visible = self._visible_to(bindparam("organization"))
        # Built once, because each creation of a link and each change of its plans runs it.
        self._of_one = HotStatement(self._select().where(self.by == bindparam("plan"), is_visible))
        return [self.rows, self.countries, self.profiles, self.exclusions]

    def besides(self) -> Sequence[SchemaItem]:
        return [
            Column("provider_plan_id", String),
            Column("name", NAME, nullable=False),
            Column("coverage_type", String, nullable=False),
            self.index("plans_by_name", "name", "id"),
            self.index("plans_by_owner", "organization_id", "provider_plan_id"),
        ]

    def derived(self, row: PlanRow) -> Mapping[str, Any]:
        return {name: getattr(row.terms, name) for name in FILTERED}

    def write(self, connection: Connection, aggregates: Sequence[Root]) -> None:
        """Write plans, and all rows of what belongs to them anew."""
        super().write(connection, aggregates)
        plans = [each for each in aggregates if isinstance(each, Plan)]
        for table, parts_of in self._parts.items():
            gone = table.delete().where(table.c.plan_id == bindparam("plan"))
            execute_many(connection, gone, [{"plan": each.id} for each in plans])
            rows = ({"plan_id": p.id, **part} for p in plans for part in parts_of(p))
            insert_many(connection, table, [*rows])

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
        return [*map(self.stored.read, connection.execute(rows))], total

    def load_visible(
        self, database: Database, organization_id: UUID, plan_id: UUID
    ) -> PlanRow | None:
        rows = database.rows(self._of_one, plan=plan_id, organization=organization_id)
        return self.stored.read(rows[0]) if rows else None

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
        return [*map(self.stored.read, connection.execute(self._select().where(*conditions)))]

    def by_id(self, connection: Connection, plan_ids: Collection[UUID]) -> dict[UUID, PlanRow]:
        """Read plans by id, whoever may see them now; links show plans bought earlier."""
        if not plan_ids:
            return {}
        statement = self._select().where(self.rows.c.id.in_(plan_ids))
        return {row.id: row for row in map(self.stored.read, connection.execute(statement))}

    def all(self, connection: Connection) -> list[PlanRow]:
        """Read every plan, by name."""
        return [*map(self.stored.read, connection.execute(self._select()))]

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
        return select(self.rows).order_by(self.rows.c.name, self.rows.c.id)

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


def _countries_of(plan: Plan) -> Iterable[Part]:
    codes = {each.country_code: None for each in plan.terms.coverage}
    return ({"country_code": code} for code in codes)


def _profiles_of(plan: Plan) -> Iterable[Part]:
    names = {each.id: each.name for each in plan.terms.sponsor_profiles}
    return ({"profile_id": each, "name": name} for each, name in names.items())


def _exclusions_of(plan: Plan) -> Iterable[Part]:
    return ({"organization_id": each} for each in plan.excluded)
