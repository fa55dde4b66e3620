"""Links as listed and searched: their state by the log, and the plans on them.

Names are opened, because they are searched; an erasure takes them away with their keys. Links are
counted as they come and change, so that no page has to count them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    func,
    or_,
    select,
    true,
    union,
)

from domain.accounts.erasure import Erasure
from domain.catalogue.plan import SIMULATED, SponsorProfile
from domain.ids import as_id
from domain.links.bought_plan import Activation
from domain.links.link import LINK_STATES, Link, LinkState, named, status_after
from domain.log.log import Recorded
from domain.personal import Sealed, open_text
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import upsert
from projections.engine.read_model import ReadModel
from projections.engine.shape import Stored, stored
from projections.engine.trigrams import ESCAPE, pattern, trigram_index

BATCH = 500  # Links named in one statement.
BETWEEN = "\n"  # Separates the texts of a link; it is in no ICCID and no id.


class LinkRow(Struct):
    """One link; `position` is that of its activation, `status` what its network last showed."""

    id: UUID
    organization_id: UUID
    position: int
    number: int  # 1, 2, 3 … within its organization.
    iccid: str
    name: str | None
    name_key: str | None  # The key that the name was sealed with.
    status: LinkState
    sponsor_profile: SponsorProfile | None
    created_at: datetime
    lpa: Annotated[Sealed | None, stored("parts")]
    installed_at: datetime | None
    first_used_at: datetime | None
    activations: list[Activation]  # Including removed ones, in order of purchase.
    changed_at: datetime  # By events; what its network shows of its usage is none.

    @property
    def current_activations(self) -> list[Activation]:
        """The activations that have not been removed, in order of purchase."""
        return [each for each in self.activations if each.removed_at is None]

    @property
    def network(self) -> str:
        """The network on which the link and all its plans run; its first plan is always listed."""
        return self.activations[0].plan.network or SIMULATED

    def texts(self) -> str:
        """Return every text by which the link is searched, joined for one index."""
        plans = [each.plan.name for each in self.current_activations]
        folded = (fold(each).replace(BETWEEN, " ") for each in (self.name or "", *plans))
        return BETWEEN.join((self.iccid, str(self.id), *folded))

    def follow(self, event: Link.Event) -> None:
        """Take over what an event says, but for a name."""
        self.changed_at = max(self.changed_at, event.timestamp)
        self.status = status_after(event) or self.status
        match event:
            case Link.LpaStored() | Link.Installed() | Link.FirstUsed():
                event.apply(self)
            case Link.PlanAdded():
                added = (event.activation_id, event.plan, event.timestamp, event.addon_id)
                self.activations.append(Activation(*added))
            case Link.PlanRemoved():
                for each in self.activations:
                    if each.id == event.activation_id:
                        each.removed_at = event.timestamp


STORED = Stored(LinkRow)
# Events that change the row of a link; it is there from its activation on.
CHANGING = (
    *(Link.LpaStored, Link.Installed, Link.FirstUsed, Link.PlanAdded, Link.PlanRemoved),
    *(Link.PlanStarted, Link.PlanEnded),
    *(Link.Renamed, Link.Suspended, Link.Reactivated, Link.Ended, Link.StatusSeen, Link.StatusKept),
)


def fold(text: str) -> str:
    """Return a text in a form in which texts that differ only in case are equal."""
    return text.casefold()


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """Which links to list.

    `search` is a part of the ICCID, name, id or name of a plan, in any case; links in `also` match
    because of something that is known elsewhere, such as their phone number. `since`, which goes
    without `search`: they have changed at that moment or later.
    """

    status: LinkState | None = None
    search: str | None = None
    also: Collection[UUID] = ()
    since: datetime | None = None


class ActivatedLink(NamedTuple):
    """A link with the position and time of its activation."""

    id: UUID
    organization_id: UUID
    network: str
    position: int
    activated_at: datetime


class Links(ReadModel):
    """A row per link from its activation on, and a row of counters per organization.

    The links of an organization are numbered without gaps, because none ever vanishes. So a page is
    a range of numbers, and a late page costs no more than the first.
    """

    name = "links"
    version = 7
    uses = (Link.Event, Erasure.Made)

    def build(self) -> Sequence[Table]:
        """Define the tables and the statements that run often."""
        self.index_of_texts = trigram_index(self.named("links_by_texts"), "texts")
        self.rows = self.table(
            "links",
            *STORED.columns("id"),
            Column("network", String, nullable=False),
            Column("texts", String, nullable=False),
            self.index("links_by_position", "position", unique=True),
            self.index("links_by_number", "organization_id", "number", unique=True),
            self.index("links_by_organization", "organization_id", "position"),
            self.index("links_by_status", "organization_id", "status", "position"),
            self.index("links_by_change", "organization_id", "changed_at", "status", "position"),
            self.index_of_texts,
        )
        self.counts = self.table(
            "link_counts",
            Column("organization_id", Uuid, primary_key=True),
            *(Column(status, BigInteger, nullable=False) for status in LINK_STATES),
        )
        self._shown = [self.rows.c[name] for name in STORED.names]
        some = select(*self._shown).where(OneOf(self.rows.c.id, "links"))
        self._some = HotStatement(some)
        theirs = OneOf(self.counts.c.organization_id, "organizations")
        self._counted = HotStatement(select(self.counts).where(theirs))
        # Built once, because building one takes longer than running it.
        self._search, self._search_of_status = self._page(), self._page(of_status=True)
        return [self.rows, self.counts]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write the outcome of the batch: the row of a link once, after one read of older rows."""
        for at, (_, event) in enumerate(batch):
            if isinstance(event, Erasure.Made):
                self.project(connection, batch[:at])
                self._forget_names(connection, event)
                self.project(connection, batch[at + 1 :])
                return
        new = {e.originator_id for _, e in batch if isinstance(e, Link.Activated)}
        old = {e.originator_id for _, e in batch if isinstance(e, CHANGING)} - new
        rows = self._read_rows(connection, old)
        before = {each.id: each.status for each in rows.values()}
        for position, event in batch:
            if isinstance(event, Link.Activated):
                rows[event.originator_id] = self._new(position, event)
            elif isinstance(event, CHANGING) and event.originator_id in rows:
                row = rows[event.originator_id]
                row.follow(event)
                if isinstance(event, Link.Renamed):
                    row.name, row.name_key = self._open_name(event)
        self._count(connection, rows.values(), before)
        self._write(connection, rows.values())

    def _new(self, position: int, event: Link.Activated) -> LinkRow:
        name, name_key = self._open_name(event)
        plans = ((p.activation_id, p.plan, p.bought_at, p.addon_id) for p in event.taken_over)
        return LinkRow(
            id=event.originator_id,
            organization_id=event.organization_id,
            position=position,
            number=0,
            iccid=event.iccid,
            name=name,
            name_key=name_key,
            status="active",
            sponsor_profile=event.sponsor_profile,
            created_at=event.timestamp,
            lpa=event.lpa,
            installed_at=None,
            first_used_at=None,
            activations=[Activation(*each) for each in plans],
            changed_at=event.timestamp,
        )

    def _count(
        self, connection: Connection, rows: Collection[LinkRow], before: Mapping[UUID, LinkState]
    ) -> None:
        """Count new links, which get their numbers, and those whose status has changed."""
        new = [row for row in rows if row.id not in before]
        totals = Counter[UUID]()
        if new:
            owners = sorted({row.organization_id for row in new})
            for owner, *counts in run(connection, self._counted, organizations=owners):
                totals[as_id(owner)] = sum(counts)
        for row in new:
            totals[row.organization_id] += 1
            row.number = totals[row.organization_id]
        moved = Counter((row.organization_id, row.status) for row in rows)
        moved.subtract((row.organization_id, before[row.id]) for row in rows if row.id in before)
        changed = sorted({owner for (owner, _), count in moved.items() if count})
        values = [
            {"organization_id": owner, **{each: moved[owner, each] for each in LINK_STATES}}
            for owner in changed
        ]
        upsert(connection, self.counts, values, added=frozenset(LINK_STATES))

    def _write(self, connection: Connection, rows: Iterable[LinkRow]) -> None:
        values = [{**STORED.row(row), "network": row.network, "texts": row.texts()} for row in rows]
        upsert(connection, self.rows, values)

    def _read_rows(self, connection: Connection, ids: Collection[UUID]) -> dict[UUID, LinkRow]:
        if not ids:
            return {}
        rows = map(STORED.read, run(connection, self._some, links=[*ids]))
        return {row.id: row for row in rows}

    def _open_name(self, event: Link.Activated | Link.Renamed) -> tuple[str | None, str | None]:
        """Return the name in an event, and the key that it was sealed with."""
        name, owner = named(event), event.organization_id
        text = open_text(self.vault, owner, event.originator_id, name)
        return text, name.month or None if name is not None else None

    def _forget_names(self, connection: Connection, erasure: Erasure.Made) -> None:
        """Take the names away that were sealed with what was erased, from the search too."""
        link, gone = self.rows.c, list[UUID]()
        theirs = select(link.id).where(link.organization_id == erasure.organization_id)
        for part in erasure.parts:
            found = connection.execute(theirs.where(link.name_key == part.key)).scalars().all()
            gone += sorted(found if part.streams is None else {*part.streams}.intersection(found))
        for start in range(0, len(gone), BATCH):
            rows = self._read_rows(connection, gone[start : start + BATCH])
            for row in rows.values():
                row.name = row.name_key = None
                row.changed_at = max(row.changed_at, erasure.timestamp)
            self._write(connection, rows.values())

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
            if wanted.search is not None:
                return self._searched(connection, organization_id, wanted, offset, limit)
            if wanted.since is not None:
                return self._changed(connection, organization_id, wanted, offset, limit)
            total = self._total(connection, organization_id, wanted.status)
            if offset >= total:
                return [], total
            link, newest = self.rows.c, total - offset
            rows = self._newest_first().where(link.organization_id == organization_id)
            if wanted.status is None:
                rows = rows.where(link.number <= newest, link.number > newest - limit)
            else:  # Positions from an index alone; whole rows would be read up to the offset.
                same = (link.organization_id == organization_id, link.status == wanted.status)
                found = select(link.position).where(*same).order_by(link.position.desc())
                rows = rows.where(link.position.in_(found.offset(offset).limit(limit)))
            return self._read(connection, rows), total

    def _total(
        self, connection: Connection, organization_id: UUID, status: LinkState | None
    ) -> int:
        """Return how many links an organization has, of one status or in all."""
        for _, *counts in run(connection, self._counted, organizations=[organization_id]):
            found = dict(zip(LINK_STATES, counts, strict=True))
            return sum(counts) if status is None else found[status]
        return 0

    def _changed(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: LinkFilter,
        offset: int,
        limit: int,
    ) -> tuple[list[LinkRow], int]:
        """Return one page of links that have changed; the index alone says which."""
        assert wanted.since is not None
        link, since = self.rows.c, to_micros(wanted.since)
        mine = [link.organization_id == organization_id, link.changed_at >= since]
        mine += [] if wanted.status is None else [link.status == wanted.status]
        total = connection.execute(select(func.count()).select_from(self.rows).where(*mine))
        found = select(link.position).where(*mine).order_by(link.position.desc())
        rows = self._newest_first().where(link.position.in_(found.offset(offset).limit(limit)))
        return self._read(connection, rows), total.scalar_one()

    def _searched(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: LinkFilter,
        offset: int,
        limit: int,
    ) -> tuple[list[LinkRow], int]:
        term = fold(wanted.search or "")
        bound = {
            "organization": organization_id,
            "status": wanted.status,
            "text": "" if BETWEEN in term else pattern(term),  # No text is empty.
            "also": [*wanted.also],
            "offset": offset,
            "limit": limit,
        }
        statement = self._search if wanted.status is None else self._search_of_status
        rows = connection.execute(statement, bound).all()
        return [STORED.read(row[1:]) for row in rows if row.id is not None], rows[0].total

    def _page(self, *, of_status: bool = False) -> Select[Any]:
        """Select a page of what is found, beside the total.

        `found` is used twice and evaluated once. The outer join keeps a row with the total when the
        page is empty.
        """
        link = self.rows.c
        own = link.organization_id == bindparam("organization")
        position = select(link.position)
        if of_status:
            position = position.where(link.status == bindparam("status"))
        found = union(
            position.where(own, link.texts.like(bindparam("text"), escape=ESCAPE)),
            # The ids suffice to find a row. `IS TRUE` keeps SQLite from using the index on the
            # organization, with which it would read all links of the organization.
            position.where(own.is_(true()), link.id.in_(bindparam("also", expanding=True))),
        ).cte("found")
        total = select(func.count().label("total")).select_from(found).subquery()
        page = select(found.c.position).order_by(found.c.position.desc())
        part = page.offset(bindparam("offset")).limit(bindparam("limit")).subquery()
        rows = total.outerjoin(part, true())
        rows = rows.outerjoin(self.rows, link.position == part.c.position)
        statement = select(total.c.total, *self._shown).select_from(rows)
        return statement.order_by(part.c.position.desc())

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
        link = self.rows.c
        found = select(link.id, link.organization_id, link.network, link.position, link.created_at)
        newer = found.where(link.position > position, link.status != "ended")
        rows = connection.execute(newer.order_by(link.position).limit(limit))
        return [
            ActivatedLink(
                each.id,
                each.organization_id,
                each.network,
                each.position,
                from_micros(each.created_at),
            )
            for each in rows
        ]

    def active_at(
        self, connection: Connection, organization_id: UUID, moment: datetime
    ) -> list[UUID]:
        """Return the links of an organization that were active at a moment, by id.

        Their streams say so. The monthly fee asks once a month, and nobody else.
        """
        link, at = self.rows.c, to_micros(moment)
        mine = select(link.id).where(link.organization_id == organization_id)
        mine = mine.where(or_(link.status != "ended", link.changed_at > at)).order_by(link.id)
        ids, since, found = connection.execute(mine).scalars().all(), dict[UUID, datetime](), set()
        for start in range(0, len(ids), BATCH):
            for _, event in self.log.streams(ids[start : start + BATCH]):
                link_id, status = event.originator_id, status_after(event)
                if status == "active":
                    since.setdefault(link_id, event.timestamp)
                elif status is not None:
                    until = event.timestamp
                    if since.pop(link_id, until) <= moment < until:
                        found.add(link_id)
        return sorted({*found, *(each for each, from_at in since.items() if from_at <= moment)})

    def networks_of(self, connection: Connection, names: Iterable[str]) -> list[str]:
        """Return those of these networks that a link runs on; perhaps reads all links."""
        network = self.rows.c.network
        of_one = {name: select(network).where(network == name).limit(1) for name in names}
        return [name for name, one in of_one.items() if connection.execute(one).first()]

    def _newest_first(self) -> Select[Any]:
        return select(*self._shown).order_by(self.rows.c.position.desc())

    def _read(self, connection: Connection, statement: Select[Any]) -> list[LinkRow]:
        return [*map(STORED.read, connection.execute(statement))]
