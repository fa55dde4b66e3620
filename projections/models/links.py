"""Links as listed: their state by the log, and the plans on them.

A batch is reduced to its outcome first: of several changes of a link only the last is written.
Names are opened, because they are searched; an erasure takes them away with their keys.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
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

from domain.accounts.erasure import Erasure
from domain.catalogue.plan import SIMULATED, SponsorProfile
from domain.links.bought_plan import Activation, BoughtPlan, TakenOver
from domain.links.link import Link, LinkState, status_after
from domain.log.log import Recorded
from domain.personal import Sealed, open_text
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel, execute_many
from projections.engine.trigrams import trigram_index
from projections.models.link_search import (
    LinkCounts,
    LinkFilter,
    LinkSearch,
    StateChange,
    fold,
    texts_of,
)

Values = dict[str, Any]
Rows = list[Values]
RowsById = dict[UUID, Values]
FORGET_AT_ONCE = 500  # Links named in one statement.
Named = Link.Activated | Link.Renamed

# Columns of a link that events change; those in one tuple are changed by one event.
CHANGING = (("status",), ("lpa_month", "lpa_box"), ("installed_at",), ("first_used_at",))


class LinkBatch:
    """The rows to write: new links and activations, then changes of older ones.

    A link has a row from its activation on, so a link that failed has none.
    """

    def __init__(self, batch: Sequence[Recorded], open_name: Callable[[Named], Values]) -> None:
        self._open_name = open_name
        self._links: RowsById = {}
        self._changes: RowsById = {}
        self._activations: RowsById = {}
        self._removals: dict[UUID, int] = {}
        for recorded in batch:
            self._add(recorded.position, recorded.event)

    def _add(self, position: int, event: object) -> None:
        match event:
            case Link.Activated():
                row = _new_link(position, event) | self._open_name(event)
                self._links[event.originator_id] = row
                for each in event.taken_over:
                    self._put(position, event, each)
            case Link.PlanAdded():
                added = TakenOver(event.activation_id, event.plan, event.timestamp, event.addon_id)
                self._put(position, event, added)
            case Link.PlanRemoved():
                self._removals[event.activation_id] = to_micros(event.timestamp)
            case Link.Renamed():
                self._changes.setdefault(event.originator_id, {}).update(self._open_name(event))
            case Link.Event():
                changes = _changes(event)
                if changes:
                    self._changes.setdefault(event.originator_id, {}).update(changes)

    def _put(self, position: int, event: Link.Event, plan: TakenOver) -> None:
        self._activations[plan.activation_id] = {
            "id": plan.activation_id,
            "organization_id": event.organization_id,
            "link_id": event.originator_id,
            "position": position,
            "plan": _json(plan.plan),
            "addon_id": plan.addon_id,
            "bought_at": to_micros(plan.bought_at),
            "folded_plan_name": fold(plan.plan.name),
        }

    @property
    def links(self) -> Rows:
        """Links that the batch has activated."""
        changed = (row | self._changes.get(link_id, {}) for link_id, row in self._links.items())
        return [row | {"texts": texts_of(row["iccid"], row["name"], row["id"])} for row in changed]

    def changed(self, columns: Sequence[str]) -> Rows:
        """New values of these columns, for links of earlier batches."""
        return [
            {"link": link_id, **{f"new_{name}": changes[name] for name in columns}}
            for link_id, changes in self._changes.items()
            if link_id not in self._links and columns[0] in changes
        ]

    @property
    def activations(self) -> Rows:
        """Plans that the batch has put on links."""
        return [
            row | {"removed_at": self._removals.get(activation_id)}
            for activation_id, row in self._activations.items()
        ]

    @property
    def removals(self) -> Rows:
        """Plans of earlier batches that have been removed."""
        return [
            {"activation": activation_id, "at": at}
            for activation_id, at in self._removals.items()
            if activation_id not in self._activations
        ]


def _changes(event: Link.Event) -> Values:
    match event:
        case Link.LpaStored():
            return {"lpa_month": event.lpa.month, "lpa_box": event.lpa.box}
        case Link.Installed():
            return {"installed_at": to_micros(event.installed_at)}
        case Link.FirstUsed():
            return {"first_used_at": to_micros(event.first_used_at)}
        case _:
            status = status_after(event)
            return {"status": status} if status is not None else {}


def _new_link(position: int, event: Link.Activated) -> Values:
    profile, lpa = event.sponsor_profile, event.lpa
    return {
        "id": event.originator_id,
        "organization_id": event.organization_id,
        "position": position,
        "iccid": event.iccid,
        "status": "active",
        "sponsor_profile": None if profile is None else _json(profile),
        "created_at": to_micros(event.timestamp),
        "lpa_month": None if lpa is None else lpa.month,
        "lpa_box": None if lpa is None else lpa.box,
        "installed_at": None,
        "first_used_at": None,
    }


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


_PROFILE = msgspec.json.Decoder(SponsorProfile)
_PLAN = msgspec.json.Decoder(BoughtPlan)


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One link; `position` is that of its activation, `status` what its network last showed."""

    id: UUID
    organization_id: UUID
    position: int
    iccid: str
    name: str | None
    status: LinkState
    sponsor_profile: SponsorProfile | None
    created_at: datetime
    lpa: Sealed | None
    installed_at: datetime | None
    first_used_at: datetime | None
    activations: list[Activation]  # Including removed ones, in order of purchase.

    @property
    def current_activations(self) -> list[Activation]:
        """The activations that have not been removed, in order of purchase."""
        return [each for each in self.activations if each.removed_at is None]

    @property
    def network(self) -> str:
        """The network on which the link and all its plans run; its first plan is always listed."""
        return self.activations[0].plan.network or SIMULATED


class ActivatedLink(NamedTuple):
    """A link with the position and time of its activation."""

    id: UUID
    organization_id: UUID
    network: str
    position: int
    activated_at: datetime


class Links(ReadModel):
    """A row per link from its activation on, and a row per activation.

    The links of an organization are numbered without gaps, because none ever vanishes. So a page is
    a range of numbers, and a late page costs no more than the first.
    """

    name = "links"
    version = 5
    uses = (Link.Event, Erasure.Made)

    def build(self) -> Sequence[Table]:
        """Define the tables; the searched texts have a case-folded column of their own."""
        self.index_of_texts = trigram_index(self.named("links_by_texts"), "texts")
        self.rows, self.activations = self._links(), self._activations()
        self._counts = LinkCounts(self)
        self._search = LinkSearch(self, self.rows, self.activations)
        self._build_statements()
        return [self.rows, self.activations, self._counts.rows, self._search.plans]

    def _build_statements(self) -> None:
        """Build the statements of batches and of most reads once."""
        link, activation = self.rows.c, self.activations.c
        change = self.rows.update().where(link.id == bindparam("link"))
        self._updates = {
            columns: change.values({name: bindparam(f"new_{name}") for name in columns})
            for columns in CHANGING
        }
        named = ("name", "name_key", "texts")
        self._renaming = change.values({name: bindparam(f"new_{name}") for name in named})
        removal = self.activations.update().where(activation.id == bindparam("activation"))
        self._removal = removal.values(removed_at=bindparam("at"))
        self._one = select(*self._search.shown).where(
            link.id == bindparam("link"), link.organization_id == bindparam("organization")
        )
        theirs = activation.link_id.in_(bindparam("links", expanding=True))
        self._theirs = (
            select(self.activations)
            .where(theirs)
            .order_by(activation.position, activation.bought_at)
        )

    def _links(self) -> Table:
        return self.table(
            "links",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("position", BigInteger, nullable=False),
            Column("iccid", String, nullable=False),
            Column("name", String),
            Column("name_key", String),
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
            self.index_of_texts,
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
                where=removed_at.is_(None),
            ),
        )

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write the outcome of the batch in a few statements, however many links it concerns."""
        for at, (_, event) in enumerate(batch):
            if isinstance(event, Erasure.Made):
                self.project(connection, batch[:at])
                self._forget_names(connection, event)
                self.project(connection, batch[at + 1 :])
                return
        seen = LinkBatch(batch, self._open_name)
        self._add(connection, seen)
        for columns, update in self._updates.items():
            execute_many(connection, update, seen.changed(columns))
        self._rename(connection, seen.changed(("name", "name_key")))
        insert_many(connection, self.activations, seen.activations)
        plans = ((row["organization_id"], row["folded_plan_name"]) for row in seen.activations)
        self._search.add_plans(connection, plans)
        execute_many(connection, self._removal, seen.removals)

    def _add(self, connection: Connection, seen: LinkBatch) -> None:
        """Count new and changed links, and write the new ones with their numbers."""
        links = seen.links
        changes = [StateChange(row["organization_id"], None, row["status"]) for row in links]
        changes += self._switches(connection, seen)
        totals = self._counts.change(connection, changes)
        for row in links:
            totals[row["organization_id"]] += 1
            row["number"] = totals[row["organization_id"]]
        insert_many(connection, self.rows, links)

    def _open_name(self, event: Named) -> Values:
        """Return the name in an event, and the key that it was sealed with."""
        sealed, name = event.sealed_name, event.name
        if sealed is not None:
            name = open_text(self.vault, event.organization_id, event.originator_id, sealed)
        return {"name": name, "name_key": None if sealed is None else sealed.month}

    def _forget_names(self, connection: Connection, erasure: Erasure.Made) -> None:
        """Take the names away that were sealed with what was erased, from the search too."""
        link = self.rows.c
        theirs = select(link.id).where(link.organization_id == erasure.organization_id)
        none, gone = {"new_name": None, "new_name_key": None}, list[UUID]()
        for part in erasure.parts:
            found = connection.execute(theirs.where(link.name_key == part.key)).scalars().all()
            chosen = found if part.streams is None else set(part.streams).intersection(found)
            gone += sorted(chosen)
        for start in range(0, len(gone), FORGET_AT_ONCE):
            some = gone[start : start + FORGET_AT_ONCE]
            self._rename(connection, [{"link": each, **none} for each in some])

    def _rename(self, connection: Connection, changed: Rows) -> None:
        """Write new names of older links, and have the links found by them."""
        if not changed:
            return
        names = {each["link"]: each for each in changed}
        known = select(self.rows.c.id, self.rows.c.iccid).where(self.rows.c.id.in_(names))
        rows = [
            names[link_id] | {"new_texts": texts_of(iccid, names[link_id]["new_name"], link_id)}
            for link_id, iccid in connection.execute(known)
        ]
        execute_many(connection, self._renaming, rows)

    def _switches(self, connection: Connection, seen: LinkBatch) -> list[StateChange]:
        """Return how the status of older links changes; not written yet."""
        new = {each["link"]: each["new_status"] for each in seen.changed(("status",))}
        if not new:
            return []
        link = self.rows.c
        before = select(link.id, link.organization_id, link.status).where(link.id.in_(new))
        return [
            StateChange(row.organization_id, row.status, new[row.id])
            for row in connection.execute(before)
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
        """Return one page of an organization's links, newest first, and how many match in all."""
        with database.reading() as connection:
            if wanted.search is None:
                return self._listed(connection, organization_id, wanted, offset, limit)
            rows, total = self._search.page(
                connection, organization_id, wanted, offset=offset, limit=limit
            )
            return self._with_activations(connection, rows), total

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
        self, organization_id: UUID, status: LinkState, offset: int, limit: int
    ) -> Select[Any]:
        """Select positions from an index alone; whole rows would be read up to the offset."""
        link = self.rows.c
        same = (link.organization_id == organization_id, link.status == status)
        found = select(link.position).where(*same).order_by(link.position.desc())
        return self._newest_first().where(link.position.in_(found.offset(offset).limit(limit)))

    def get(self, connection: Connection, organization_id: UUID, link_id: UUID) -> LinkRow | None:
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
        """Read links of one organization or of all, newest first; `before` is a position."""
        columns = self.rows.c
        statement = self._newest_first().limit(limit)
        if before is not None:
            statement = statement.where(columns.position < before)
        if organization_id is not None:
            statement = statement.where(columns.organization_id == organization_id)
        return self._read(connection, statement)

    def activated_after(
        self, connection: Connection, position: int, limit: int
    ) -> list[ActivatedLink]:
        """Return links that became active after a position and have not ended, oldest first."""
        link, first = self.rows.c, self.activations.c
        same = (first.link_id == link.id) & (first.position == link.position)
        found = select(link.id, link.organization_id, first.plan, link.position, link.created_at)
        found = found.join_from(self.rows, self.activations, same)
        newer = (link.position > position, link.status != "ended")
        rows = connection.execute(found.where(*newer).order_by(link.position).limit(limit))
        return [
            ActivatedLink(
                row.id,
                row.organization_id,
                _PLAN.decode(row.plan).network or SIMULATED,
                row.position,
                from_micros(row.created_at),
            )
            for row in rows
        ]

    def networks_of(self, connection: Connection, names: Iterable[str]) -> list[str]:
        """Return those of these networks that have a plan on a link; reads all plans on links."""
        plan = self.activations.c.plan
        named = {name: plan.contains(f'"network":"{name}"', autoescape=True) for name in names}
        if SIMULATED in named:
            named[SIMULATED] = ~plan.contains('"network":', autoescape=True)
        bought = select(1).select_from(self.activations)
        found = {name: bought.where(one).limit(1) for name, one in named.items()}
        return [name for name, one in found.items() if connection.execute(one).first()]

    def _newest_first(self) -> Select[Any]:
        return select(*self._search.shown).order_by(self.rows.c.position.desc())

    def _read(self, connection: Connection, statement: Select[Any]) -> list[LinkRow]:
        return self._with_activations(connection, connection.execute(statement).all())

    def _with_activations(self, connection: Connection, rows: Sequence[Row[Any]]) -> list[LinkRow]:
        """Return links with their activations, which are read in one more statement for all."""
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
        installed_at=from_micros(row.installed_at),
        first_used_at=from_micros(row.first_used_at),
        activations=[*activations],
    )


def _activation(row: Row[Any]) -> Activation:
    return Activation(
        id=row.id,
        plan=_PLAN.decode(row.plan),
        bought_at=from_micros(row.bought_at),
        addon_id=row.addon_id,
        removed_at=from_micros(row.removed_at),
    )
