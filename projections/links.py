"""Links as listed: what each is like by the log, and the plans on it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    LargeBinary,
    Row,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    select,
)

from domain.catalogue.plan import SponsorProfile
from domain.links.bought_plan import Activation, BoughtPlan
from domain.links.link import Link
from domain.links.network import LinkStatus
from domain.log.log import Recorded
from domain.personal import Sealed
from projections.database import Database, from_micros
from projections.inserting import insert_many
from projections.link_batch import CHANGING, LinkBatch
from projections.link_counts import Change, LinkCounts
from projections.link_search import LinkFilter, LinkSearch
from projections.read_model import ReadModel, execute_many

_PROFILE = msgspec.json.Decoder(SponsorProfile)
_PLAN = msgspec.json.Decoder(BoughtPlan)


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One link; `position` is that of its activation, `status` the network's as last seen."""

    id: UUID
    organization_id: UUID
    position: int
    iccid: str
    name: str | None
    status: LinkStatus
    sponsor_profile: SponsorProfile | None
    created_at: datetime
    lpa: Sealed | None
    installed_at: datetime | None
    first_used_at: datetime | None
    activations: list[Activation]  # All of them, also those removed, in order of purchase.

    @property
    def current_activations(self) -> list[Activation]:
        """The activations that have not been removed, in order of purchase."""
        return [each for each in self.activations if each.removed_at is None]


class Links(ReadModel):
    """A row per link from its activation on, and a row per activation.

    The links of an organization are numbered, without gaps because none ever vanishes: so a page
    is found by its place, however deep it lies.
    """

    name = "links"
    version = 2
    uses = (Link.Event,)

    def build(self) -> Sequence[Table]:
        """Define the tables; what is searched stands in a column of its own, folded."""
        self.rows, self.activations = self._links(), self._activations()
        self._counts = LinkCounts(self)
        self._search = LinkSearch(self, self.rows, self.activations)
        self._build_statements()
        return [self.rows, self.activations, self._counts.rows, self._search.plans]

    def _build_statements(self) -> None:
        """Build once what batches and most reads run."""
        link, activation = self.rows.c, self.activations.c
        change = self.rows.update().where(link.id == bindparam("link"))
        self._updates = {
            columns: change.values({name: bindparam(f"new_{name}") for name in columns})
            for columns in CHANGING
        }
        removal = self.activations.update().where(activation.id == bindparam("activation"))
        self._removal = removal.values(removed_at=bindparam("at"))
        self._one = select(*self._search.shown).where(
            link.id == bindparam("link"), link.organization_id == bindparam("organization")
        )
        theirs = activation.link_id.in_(bindparam("links", expanding=True))
        self._theirs = select(self.activations).where(theirs).order_by(activation.position)

    def names(self, connection: Connection) -> list[str]:
        """Name the index of texts too, where it is a table."""
        index = self._search.index
        own = [index.name] if index.is_separate(connection) else []
        return [*super().names(connection), *own]

    def _links(self) -> Table:
        return self.table(
            "links",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("position", BigInteger, nullable=False),
            Column("iccid", String, nullable=False),
            Column("name", String),
            Column("status", String, nullable=False),
            Column("sponsor_profile", String),
            Column("created_at", BigInteger, nullable=False),
            Column("lpa_month", String),
            Column("lpa_box", LargeBinary),
            Column("installed_at", BigInteger),
            Column("first_used_at", BigInteger),
            Column("number", BigInteger, nullable=False),
            Column("texts", String, nullable=False),
            self.index("links_by_position", "position", unique=True),
            self.index("links_by_number", "organization_id", "number", unique=True),
            self.index("links_by_organization", "organization_id", "position"),
            self.index("links_by_status", "organization_id", "status", "position"),
        )

    def _activations(self) -> Table:
        removed_at = Column("removed_at", BigInteger)
        return self.table(
            "link_activations",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("link_id", Uuid, nullable=False),
            Column("position", BigInteger, nullable=False),
            Column("plan", String, nullable=False),
            Column("addon_id", String),
            Column("bought_at", BigInteger, nullable=False),
            removed_at,
            Column("folded_plan_name", String, nullable=False),
            self.index("link_activations_by_link", "link_id", "position"),
            self.index(
                "link_activations_by_plan",
                "organization_id",
                "folded_plan_name",
                "link_id",
                sqlite_where=removed_at.is_(None),
                postgresql_where=removed_at.is_(None),
            ),
        )

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write what the batch comes to: a few statements, however many links it concerns."""
        seen = LinkBatch(batch)
        self._add(connection, seen)
        for columns, update in self._updates.items():
            execute_many(connection, update, seen.changed(columns))
        insert_many(connection, self.activations, seen.activations)
        plans = ((row["organization_id"], row["folded_plan_name"]) for row in seen.activations)
        self._search.add_plans(connection, plans)
        execute_many(connection, self._removal, seen.removals)

    def _add(self, connection: Connection, seen: LinkBatch) -> None:
        """Count what is new and what changes, and write the new links with their numbers."""
        links = seen.links
        changes: list[Change] = [(row["organization_id"], None, row["status"]) for row in links]
        changes += self._switches(connection, seen)
        totals = self._counts.change(connection, changes)
        for row in links:
            totals[row["organization_id"]] += 1
            row["number"] = totals[row["organization_id"]]
        insert_many(connection, self.rows, links)
        self._search.index.add(connection, links)

    def _switches(self, connection: Connection, seen: LinkBatch) -> list[Change]:
        """Return from what to what the status of older links changes; not yet written."""
        new = {each["link"]: each["new_status"] for each in seen.changed(("status",))}
        if not new:
            return []
        link = self.rows.c
        before = select(link.id, link.organization_id, link.status).where(link.id.in_(new))
        return [
            (row.organization_id, row.status, new[row.id]) for row in connection.execute(before)
        ]

    def page(
        self,
        database: Database,
        organization_id: UUID,
        wanted: LinkFilter,
        *,
        offset: int,
        limit: int,
    ) -> tuple[list[LinkRow], int]:
        """Return some links of an organization, newest first, and how many match in all."""
        if wanted.search is not None:
            asked = self._search.ask(database, organization_id, wanted)
            with database.reading() as connection:
                rows, total = self._search.page(connection, asked, offset=offset, limit=limit)
                return self._with_activations(connection, rows), total
        with database.reading() as connection:
            return self._listed(connection, organization_id, wanted, offset, limit)

    def _listed(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: LinkFilter,
        offset: int,
        limit: int,
    ) -> tuple[list[LinkRow], int]:
        total = self._counts.total(connection, organization_id, wanted.status)
        if offset >= total:
            return [], total
        if wanted.status is not None:
            page = self._of_status(organization_id, wanted.status, offset, limit)
        else:
            number, newest = self.rows.c.number, total - offset
            page = self._of(organization_id).where(number <= newest, number > newest - limit)
        return self._read(connection, page), total

    def _of(self, organization_id: UUID) -> Select[Any]:
        return self._newest_first().where(self.rows.c.organization_id == organization_id)

    def _of_status(
        self, organization_id: UUID, status: LinkStatus, offset: int, limit: int
    ) -> Select[Any]:
        """Select by positions from an index alone: whole rows would be read up to the offset."""
        link = self.rows.c
        same = (link.organization_id == organization_id, link.status == status)
        found = select(link.position).where(*same).order_by(link.position.desc())
        return self._newest_first().where(link.position.in_(found.offset(offset).limit(limit)))

    def get(self, connection: Connection, organization_id: UUID, link_id: UUID) -> LinkRow | None:
        """Read one link of an organization."""
        about = {"link": link_id, "organization": organization_id}
        found = self._with_activations(connection, connection.execute(self._one, about).all())
        return found[0] if found else None

    def all(
        self,
        connection: Connection,
        organization_id: UUID | None,
        *,
        before: int | None = None,
        limit: int,
    ) -> list[LinkRow]:
        """Read links of one organization or of all, newest first; `before` names a position."""
        columns = self.rows.c
        statement = self._newest_first().limit(limit)
        if before is not None:
            statement = statement.where(columns.position < before)
        if organization_id is not None:
            statement = statement.where(columns.organization_id == organization_id)
        return self._read(connection, statement)

    def _newest_first(self) -> Select[Any]:
        return select(*self._search.shown).order_by(self.rows.c.position.desc())

    def _read(self, connection: Connection, statement: Select[Any]) -> list[LinkRow]:
        return self._with_activations(connection, connection.execute(statement).all())

    def _with_activations(self, connection: Connection, rows: Sequence[Row[Any]]) -> list[LinkRow]:
        """Return links with their activations, which one more statement reads for all of them."""
        if not rows:
            return []
        activations: dict[UUID, list[Activation]] = {row.id: [] for row in rows}
        for each in connection.execute(self._theirs, {"links": [*activations]}):
            activations[each.link_id].append(_activation(each))
        return [_link(row, activations[row.id]) for row in rows]


def _link(row: Row[Any], activations: Iterable[Activation]) -> LinkRow:
    profile = row.sponsor_profile
    return LinkRow(
        id=row.id,
        organization_id=row.organization_id,
        position=row.position,
        iccid=row.iccid,
        name=row.name,
        status=row.status,
        sponsor_profile=None if profile is None else _PROFILE.decode(profile),
        created_at=from_micros(row.created_at),
        lpa=None if row.lpa_box is None else Sealed(row.lpa_month, row.lpa_box),
        installed_at=_moment(row.installed_at),
        first_used_at=_moment(row.first_used_at),
        activations=[*activations],
    )


def _activation(row: Row[Any]) -> Activation:
    return Activation(
        id=row.id,
        plan=_PLAN.decode(row.plan),
        bought_at=from_micros(row.bought_at),
        addon_id=row.addon_id,
        removed_at=_moment(row.removed_at),
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
