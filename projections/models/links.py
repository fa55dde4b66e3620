"""Links as listed and searched: their state by the log, and the plans on them.

Names are opened, because they are searched; an erasure takes them away with their keys.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, get_args
from uuid import UUID

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    String,
    Table,
    Uuid,
    and_,
    asc,
    bindparam,
    desc,
    func,
    or_,
    select,
    true,
    union,
)

from domain.accounts.operator_acts import Erasure
from domain.accounts.organization import Organization
from domain.catalogue.plan import SIMULATED, SponsorProfile
from domain.links.bought_plan import Activation
from domain.links.link import Link, LinkState, named, status_after
from domain.log.log import Recorded
from domain.personal import Sealed, open_text
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import insert_many, upsert
from projections.engine.read_model import ReadModel, execute_many
from projections.engine.shape import Stored, stored
from projections.engine.trigrams import ESCAPE, fold, pattern, trigram_index

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
    status: Literal[LinkState, "unlisted"]  # The last of one that ended before a reset.
    sponsor_profile: SponsorProfile | None
    created_at: datetime
    lpa: Annotated[Sealed | None, stored("parts")]
    installed_at: datetime | None
    first_used_at: datetime | None
    activations: list[Activation]  # Including removed ones, in order of purchase.
    ends: dict[str, datetime | None]  # Of plans in use; None: used up, removed or over.
    expires_at: datetime | None  # The last of them.
    changed_at: datetime  # By events; what its network shows of its usage is none.

    @property
    def current_activations(self) -> list[Activation]:
        """The activations that have not been removed, in order of purchase."""
        return [each for each in self.activations if each.removed_at is None]

    @property
    def plan_ids(self) -> set[UUID]:
        """The plans that are on it, whatever is left of them."""
        return {each.plan.plan_id for each in self.current_activations}

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
        self._follow_ends(event)
        if not isinstance(event, OF_USAGE):
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

    def _follow_ends(self, event: Link.Event) -> None:
        match event:
            case Link.PlanStarted() | Link.ExpiryNear():  # The second may know it better.
                known = self.ends.get(str(event.activation_id), event.expires_at)
                self.ends[str(event.activation_id)] = known and event.expires_at
            case Link.PlanEnded() | Link.PlanRemoved() | Link.UsageReached(percent=100):
                self.ends[str(event.activation_id)] = None
            case Link.Ended():
                self.ends = {}
        self.expires_at = max(filter(None, self.ends.values()), default=None)


STORED = Stored(LinkRow)
UNLISTED: Final = "unlisted"
OVER = ("ended", UNLISTED)
OF_USAGE = (Link.UsageReached, Link.ExpiryNear)
# Events that change the row of a link; it is there from its activation on.
CHANGING = (
    *OF_USAGE,
    *(Link.LpaStored, Link.Installed, Link.FirstUsed, Link.PlanAdded, Link.PlanRemoved),
    *(Link.PlanStarted, Link.PlanEnded),
    *(Link.Renamed, Link.Suspended, Link.Reactivated, Link.Ended, Link.StatusSeen, Link.StatusKept),
)


def _order(link: Any, sort: str) -> Sequence[ColumnElement[Any]]:
    """Return by what links are sorted; their activation decides between those that are alike."""
    way = asc if sort[:1] not in {"", "-"} else desc
    keys = {"created_at": way(link.created_at), "expires_at": way(link.expires_at).nulls_last()}
    return *(key for name, key in keys.items() if name in sort), way(link.position)


Sort = Literal["created_at", "-created_at", "expires_at", "-expires_at"]
SORTS: Sequence[Sort] = get_args(Sort)


class LinkFilter(Struct, frozen=True):
    """Which links to list, and how; without `sort` the newest come first.

    `search` is a part of the ICCID, name, id or name of a plan, in any case; links in `also` match
    because of something that is known elsewhere, such as their phone number. Times are inclusive
    but for `created_to` and `expires_before`. A link that has no end stands last, whichever way it
    is sorted; links that are alike stand by their activation, from behind where the sort is.
    """

    status: LinkState | None = None
    search: str | None = None
    also: Collection[UUID] = ()
    changed_since: datetime | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    plan_id: UUID | None = None
    expires_before: datetime | None = None
    sort: Sort | None = None


class Links(ReadModel):
    """A row per link from its activation on, and one for each plan that it has now.

    The listed links of an organization are numbered without gaps, because none vanishes but by a
    reset of its sandbox, after which the others get new numbers. So a page of all is a range of
    numbers, and a late page costs no more than the first.
    """

    name = "links"
    version = 8
    uses = (Link.Event, Erasure.Made, Organization.SandboxReset)

    def build(self) -> Sequence[Table]:
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
            self.index(
                "links_by_creation",
                "organization_id",
                "created_at",
                "position",
                "status",
                "expires_at",
            ),
            self.index("links_by_end", "organization_id", "expires_at", "position", "status"),
            self.index_of_texts,
        )
        self.plans = self.table(
            "link_plans",
            Column("organization_id", Uuid, primary_key=True),
            Column("plan_id", Uuid, primary_key=True),
            Column("position", BigInteger, primary_key=True, autoincrement=False),
        )
        self._shown = [self.rows.c[name] for name in STORED.names]
        some = select(*self._shown).where(OneOf(self.rows.c.id, "links"))
        self._some = HotStatement(some)
        theirs = self.rows.c.organization_id == bindparam("organization")
        self._last = HotStatement(select(func.max(self.rows.c.number)).where(theirs))
        self._pages: dict[tuple[str, ...], Select[Any]] = {}  # By what is asked for.
        # In the order in which readers lock them, so that a swap cannot deadlock with a reader.
        return [self.rows, self.plans]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write the outcome of the batch: the row of a link once, after one read of older rows."""
        for at, (_, event) in enumerate(batch):
            if isinstance(event, Erasure.Made | Organization.SandboxReset):
                self.project(connection, batch[:at])
                if isinstance(event, Erasure.Made):
                    self._forget_names(connection, event)
                else:
                    self._unlist(connection, event.originator_id)
                self.project(connection, batch[at + 1 :])
                return
        new = {e.originator_id for _, e in batch if isinstance(e, Link.Activated)}
        old = {e.originator_id for _, e in batch if isinstance(e, CHANGING)} - new
        rows = self._read_rows(connection, old)
        had = {each.id: each.plan_ids for each in rows.values()}
        for position, event in batch:
            if isinstance(event, Link.Activated):
                rows[event.originator_id] = self._new(position, event)
            elif isinstance(event, CHANGING) and event.originator_id in rows:
                row = rows[event.originator_id]
                row.follow(event)
                if isinstance(event, Link.Renamed):
                    row.name, row.name_key = self._open_name(event)
        self._number(connection, [row for row in rows.values() if row.id in new])
        self._write(connection, rows.values())
        self._write_plans(connection, rows.values(), had)

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
            ends={},
            expires_at=None,
            changed_at=event.timestamp,
        )

    def _number(self, connection: Connection, new: Iterable[LinkRow]) -> None:
        """Number new links, those of each organization behind its last one."""
        last = dict[UUID, int]()
        for row in new:
            owner = row.organization_id
            last[owner] = row.number = 1 + (last.get(owner) or self._total(connection, owner))

    def _total(self, connection: Connection, organization_id: UUID) -> int:
        """Return how many links an organization has: the number of the last one."""
        ((number,),) = run(connection, self._last, organization=organization_id)
        return max(0, int(number or 0))

    def _unlist(self, connection: Connection, organization_id: UUID) -> None:
        """Take what has ended out of the lists, and number anew what has not: mostly nothing."""
        link = self.rows.c
        theirs = self.rows.update().where(link.organization_id == organization_id)
        ended = theirs.where(link.status == "ended")
        connection.execute(ended.values(status=UNLISTED, number=-link.position))
        left = select(link.id).where(link.organization_id == organization_id, link.number > 0)
        ids = connection.execute(left.order_by(link.number)).scalars().all()
        for number, link_id in enumerate(ids, 1):  # None is higher than before, so none collides.
            connection.execute(theirs.where(link.id == link_id).values(number=number))

    def _write(self, connection: Connection, rows: Iterable[LinkRow]) -> None:
        values = ({"network": row.network, "texts": row.texts()} | STORED.row(row) for row in rows)
        upsert(connection, self.rows, [*values])

    def _write_plans(
        self, connection: Connection, rows: Iterable[LinkRow], had: Mapping[UUID, set[UUID]]
    ) -> None:
        got, lost = list[dict[str, Any]](), list[dict[str, Any]]()
        for row in rows:
            key = {"organization_id": row.organization_id, "position": row.position}
            then = had.get(row.id, set())
            got += [{**key, "plan_id": each} for each in row.plan_ids - then]
            lost += [{**key, "plan_id": each} for each in then - row.plan_ids]
        same = (column == bindparam(column.name) for column in self.plans.c)
        execute_many(connection, self.plans.delete().where(*same), lost)
        insert_many(connection, self.plans, got)

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
        self, database: Database, organization_id: UUID, wanted: LinkFilter, part: slice
    ) -> tuple[list[LinkRow], int]:
        """Return a part of an organization's links, and how many match in all."""
        given = {name: value for name, value in asdict(wanted).items() if value is not None}
        also, sort = given.pop("also"), given.pop("sort", "")
        with database.reading() as connection:
            if not sort and not given:
                return self._newest(connection, organization_id, part)
            key = (sort, *given)
            if key not in self._pages:  # Building one takes longer than running it.
                self._pages[key] = self._page(sort, given)
            bound = {n: to_micros(v) if isinstance(v, datetime) else v for n, v in given.items()}
            term = fold(wanted.search or "")
            bound["text"] = "" if BETWEEN in term else pattern(term)  # No text is empty.
            span = {"offset": part.start, "limit": part.stop - part.start}
            bound |= {"organization": organization_id, "also": [*also], **span}
            rows = connection.execute(self._pages[key], bound).all()
        return [STORED.read(row[1:]) for row in rows if row.id is not None], rows[0].total

    def _newest(
        self, connection: Connection, organization_id: UUID, part: slice
    ) -> tuple[list[LinkRow], int]:
        """Return a part of all links, which is a range of numbers."""
        link, total = self.rows.c, self._total(connection, organization_id)
        numbers = link.number.between(total - part.stop + 1, total - part.start)
        rows = self._newest_first().where(link.organization_id == organization_id, numbers)
        return self._read(connection, rows), total

    def _page(self, sort: str, given: Collection[str]) -> Select[Any]:
        """Select a page of what is found, beside the total.

        `found` is used twice; a search is evaluated once. The outer join keeps a row with the total
        when the page is empty.
        """
        link, plan = self.rows.c, self.plans.c
        own = and_(link.organization_id == bindparam("organization"), link.status != UNLISTED)
        on_it = (
            plan.organization_id == bindparam("organization"),
            plan.plan_id == bindparam("plan_id"),
        )
        conditions = {
            "status": link.status == bindparam("status"),
            "changed_since": link.changed_at >= bindparam("changed_since"),
            "created_from": link.created_at >= bindparam("created_from"),
            "created_to": link.created_at < bindparam("created_to"),
            "plan_id": link.position.in_(select(plan.position).where(*on_it)),
            "expires_before": link.expires_at < bindparam("expires_before"),
        }
        matching = select(link.position, link.created_at, link.expires_at)
        matching = matching.where(*(conditions[name] for name in given if name != "search"))
        found: FromClause = matching.where(own).subquery()
        if "search" in given:
            found = union(
                matching.where(own, link.texts.like(bindparam("text"), escape=ESCAPE)),
                # The ids suffice to find a row. `IS TRUE` keeps SQLite from using the index on the
                # organization, with which it would read all links of the organization.
                matching.where(own.is_(true()), link.id.in_(bindparam("also", expanding=True))),
            ).cte("found")
        total = select(func.count().label("total")).select_from(found).subquery()
        page = select(found.c.position).order_by(*_order(found.c, sort))
        part = page.offset(bindparam("offset")).limit(bindparam("limit")).subquery()
        rows = total.outerjoin(part, true())
        rows = rows.outerjoin(self.rows, link.position == part.c.position)
        statement = select(total.c.total, *self._shown).select_from(rows)
        return statement.order_by(*_order(link, sort))

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
    ) -> list[tuple[UUID, UUID, str, int, datetime]]:
        """Return links that became active after a position and have not ended, oldest first.

        That is of each its id, organization and network, and where and when it was activated.
        """
        link = self.rows.c
        found = select(link.id, link.organization_id, link.network, link.position, link.created_at)
        newer = found.where(link.position > position, link.status.not_in(OVER))
        rows = connection.execute(newer.order_by(link.position).limit(limit))
        return [(*facts, from_micros(at)) for *facts, at in rows]

    def active_at(
        self, connection: Connection, organization_id: UUID, moment: datetime
    ) -> list[UUID]:
        """Return the links of an organization that were active at a moment, by id.

        Their streams say so. The monthly fee asks once a month, and nobody else.
        """
        link, at = self.rows.c, to_micros(moment)
        mine = select(link.id).where(link.organization_id == organization_id)
        mine = mine.where(or_(link.status.not_in(OVER), link.changed_at > at)).order_by(link.id)
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
