"""The catalogue: every plan, and which of them an organization may see."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Literal, NamedTuple, get_args
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

from domain.catalogue.plan import CoverageType, LaterPrice, Plan, PlanKey, PlanTerms, key_of
from domain.log.aggregate import Root
from domain.regions import REGIONS, countries_named
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement
from projections.engine.inserting import insert_many
from projections.engine.read_model import Snapshot, execute_many
from projections.engine.trigrams import fold

# Sorted by the bytes of UTF-8 in every database; the locale of the database must not decide.
NAME = String().with_variant(String(collation="C"), "postgresql")


Sort = Literal["name", "-name", "price", "-price"]
SORTS: Sequence[Sort] = get_args(Sort)


class _Known(Struct):
    """What of the terms is read of many plans: decoding all of them takes 20 times as long."""

    retail_price_micros: int
    network: str | None = None
    later_prices: Sequence[LaterPrice] | None = None

    def price_micros(self, moment: datetime) -> int:
        prices = self.later_prices or ()
        started = (each.retail_price_micros for each in prices if each.starts_at <= moment)
        return [self.retail_price_micros, *started][-1]


_KNOWN = msgspec.json.Decoder(_Known)


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


class PlanFilter(NamedTuple):
    """Which plans to list, and how; prices are those that hold `at` a moment.

    `sponsor_profile` is an id or a name, `search` a part of a name, an id, or a country's name in
    any case, `max_price` in micro-units. Plans that `sort` finds alike stand by name, then id.
    """

    at: datetime
    region: str | None = None
    country: str | None = None
    coverage_type: CoverageType | None = None
    sponsor_profile: str | None = None
    search: str = ""
    max_price: int | None = None
    sort: Sort = "name"


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
        parts = [(each.id, _parts_of(each)) for each in plans]
        for at, table in enumerate((self.countries, self.profiles, self.exclusions)):
            gone = table.delete().where(table.c.plan_id == bindparam("plan"))
            execute_many(connection, gone, [{"plan": each.id} for each in plans])
            rows = [{"plan_id": plan, **part} for plan, its in parts for part in its[at]]
            insert_many(connection, table, rows)

    def page(
        self, connection: Connection, organization_id: UUID, wanted: PlanFilter, part: slice
    ) -> tuple[list[PlanRow], int]:
        """Return a part of the plans that an organization sees, and how many match in all."""
        ids = self._ordered(organization_id, wanted)
        # No column has prices, or texts in one case.
        if wanted.search or wanted.max_price is not None or "price" in wanted.sort:
            found = self._scan(connection, ids, wanted)
            return self._at(connection, found[part], wanted.at), len(found)
        count = select(func.count()).select_from(ids.order_by(None).subquery())
        total = connection.execute(count).scalar_one()
        # Only ids are sorted, because whole rows would be read up to the part.
        of_part = connection.execute(ids.slice(part.start, part.stop)).scalars().all()
        return self._at(connection, of_part, wanted.at), total

    def _ordered(self, organization_id: UUID, wanted: PlanFilter) -> Select[Any]:
        """Select the ids of the plans that meet the conditions, by name."""
        plan = self.rows.c
        name = plan.name.desc() if wanted.sort == "-name" else plan.name
        conditions = (self._visible_to(organization_id), *self._conditions(wanted))
        return select(plan.id).where(*conditions).order_by(name, plan.id)

    def _scan(self, connection: Connection, ids: Select[Any], wanted: PlanFilter) -> list[UUID]:
        """Return the ids of those plans that match besides, as they are sorted."""
        plan, text = self.rows.c, fold(wanted.search)
        is_named = self.countries.c.country_code.in_(countries_named(text))
        covers = self._exists(self.countries, is_named)
        every = ids.add_columns(plan.terms, covers, plan.name, plan.provider_plan_id)
        found = list[tuple[int, UUID]]()
        for plan_id, terms, is_there, name, sold_as in connection.execute(every):
            price = _KNOWN.decode(terms).price_micros(wanted.at)
            is_cheap = wanted.max_price is None or price <= wanted.max_price
            texts = (fold(name), str(plan_id), fold(sold_as or ""))
            if is_cheap and (is_there or any(text in each for each in texts)):
                found.append((price, plan_id))
        if "price" in wanted.sort:
            found.sort(key=itemgetter(0), reverse=wanted.sort == "-price")
        return [plan_id for _, plan_id in found]

    def _at(
        self, connection: Connection, plan_ids: Sequence[UUID], moment: datetime
    ) -> list[PlanRow]:
        plans = self.by_id(connection, plan_ids)
        return [plans[each].at(moment) for each in plan_ids]

    def load_visible(
        self, database: Database, organization_id: UUID, plan_id: UUID
    ) -> PlanRow | None:
        rows = database.rows(self._of_one, plan=plan_id, organization=organization_id)
        return self.stored.read(rows[0]) if rows else None

    def compatible(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: PlanFilter,
        sponsor_profile_id: str | None,
    ) -> list[PlanRow]:
        """Return the plans that an organization sees and that can be put on a link of this profile.

        If the profile is known, only plans that have it and are connected to the network.
        """
        ids = self._ordered(organization_id, wanted)
        if sponsor_profile_id is not None:
            has_it = self._exists(self.profiles, self.profiles.c.profile_id == sponsor_profile_id)
            ids = ids.where(self.rows.c.provider_plan_id.is_not(None), has_it)
        return self._at(connection, self._scan(connection, ids, wanted), wanted.at)

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
            key = key_of(owner, provider_plan_id, name, _KNOWN.decode(terms).network)
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

    def _conditions(self, wanted: PlanFilter) -> Iterator[ColumnElement[bool]]:
        code, profile = self.countries.c.country_code, self.profiles.c
        if wanted.region is not None:
            yield self._exists(self.countries, code.in_(REGIONS[wanted.region].countries))
        if wanted.country is not None:
            yield self._exists(self.countries, code == wanted.country)
        if wanted.coverage_type is not None:
            yield self.rows.c.coverage_type == wanted.coverage_type
        if wanted.sponsor_profile is not None:
            named = (each == wanted.sponsor_profile for each in (profile.profile_id, profile.name))
            yield self._exists(self.profiles, or_(*named))

    def _exists(self, table: Table, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        return exists().where(table.c.plan_id == self.rows.c.id, condition)


def _parts_of(plan: Plan) -> Sequence[Sequence[Part]]:
    """Return the rows of its countries, of its sponsor profiles, and of those it is hidden from."""
    codes = dict.fromkeys(each.country_code for each in plan.terms.coverage)
    names = {each.id: each.name for each in plan.terms.sponsor_profiles}
    countries = [{"country_code": code} for code in codes]
    profiles = [{"profile_id": each, "name": name} for each, name in names.items()]
    return countries, profiles, [{"organization_id": each} for each in plan.excluded]
