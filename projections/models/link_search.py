"""The search for links, and counters of how many links each organization has.

Links are counted as they come and change, so that no page has to count them.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    CTE,
    BigInteger,
    Column,
    Connection,
    Row,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    func,
    select,
    true,
    union,
)

from domain.links.link import LINK_STATES, LinkState
from projections.engine.hot_reads import HotStatement, OneOf, as_id, run
from projections.engine.inserting import insert_new, upsert
from projections.engine.read_model import ReadModel
from projections.engine.trigrams import ESCAPE, pattern


class StateChange(NamedTuple):
    """How the state of a link of an organization changes; `before` is None for a new one."""

    organization_id: UUID
    before: LinkState | None
    after: LinkState


class LinkCounts:
    """A row per organization that has a link, with a column for each status."""

    def __init__(self, model: ReadModel) -> None:
        self.rows: Table = model.table(
            "link_counts",
            Column("organization_id", Uuid, primary_key=True),
            *(Column(status, BigInteger, nullable=False) for status in LINK_STATES),
        )
        organization_id = self.rows.c.organization_id
        # Built once, because every page runs it.
        self._one = select(self.rows).where(organization_id == bindparam("organization"))
        self._some = HotStatement(select(self.rows).where(OneOf(organization_id, "organizations")))

    def total(self, connection: Connection, organization_id: UUID, status: LinkState | None) -> int:
        """Return how many links an organization has, of one status or in all."""
        row = connection.execute(self._one, {"organization": organization_id}).one_or_none()
        if row is None:
            return 0
        counts = dict(zip(LINK_STATES, row[1:], strict=True))
        return sum(counts.values()) if status is None else counts[status]

    def change(self, connection: Connection, changes: Iterable[StateChange]) -> Counter[UUID]:
        """Count new (no status before) and changed links; return the totals from before."""
        moved = Counter[tuple[UUID, LinkState]]()
        for organization_id, before, after in changes:
            moved[organization_id, after] += 1
            if before is not None:
                moved[organization_id, before] -= 1
        if not moved:
            return Counter()
        organizations = sorted({organization_id for organization_id, _ in moved})
        found = run(connection, self._some, organizations=organizations)
        known = {as_id(row[0]): row[1:] for row in found}
        rows = []
        for organization_id in organizations:
            old = known.get(organization_id, (0,) * len(LINK_STATES))
            row: dict[str, Any] = {"organization_id": organization_id}
            for status, count in zip(LINK_STATES, old, strict=True):
                row[status] = count + moved[organization_id, status]
            rows.append(row)
        upsert(connection, self.rows, rows)
        return Counter({organization_id: sum(old) for organization_id, old in known.items()})


BETWEEN = "\n"  # Separates the texts of a link; it is in no ICCID and no id.


def fold(text: str) -> str:
    """Return a text in a form in which texts that differ only in case are equal."""
    return text.casefold()


def texts_of(iccid: str, name: str | None, link_id: UUID) -> str:
    """Return every text of its own by which a link is searched, joined for one index."""
    folded = "" if name is None else fold(name).replace(BETWEEN, " ")
    return BETWEEN.join((iccid, folded, str(link_id)))


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """Which links to list.

    `search` is a part of the ICCID, name, id or plan name, in any case; links in `also` match
    because of something that is known elsewhere, such as their phone number.
    """

    status: LinkState | None = None
    search: str | None = None
    also: Collection[UUID] = ()


class LinkSearch:
    """Finds links by their own texts, and by the names of the plans on them.

    An organization has few plans and many links, so a search looks up the names of plans first. A
    name stays when the last link has lost the plan; it then leads to no link.
    """

    def __init__(self, model: ReadModel, links: Table, activations: Table) -> None:
        self._links, self._activations = links, activations
        self.shown = [each for each in links.c if each.name not in {"texts", "name_key"}]
        self.plans: Table = model.table(
            "link_plan_names",
            Column("organization_id", Uuid, primary_key=True),
            Column("folded_name", String, primary_key=True),
        )
        # Built once, because building one takes longer than running it.
        self._any, self._of_status = self._statement(), self._statement(of_status=True)

    def add_plans(self, connection: Connection, plans: Iterable[tuple[UUID, str]]) -> None:
        """Note the case-folded names of plans that were put on links."""
        names = sorted({*plans})
        rows = [{"organization_id": who, "folded_name": name} for who, name in names]
        insert_new(connection, self.plans, rows)

    def page(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: LinkFilter,
        *,
        offset: int,
        limit: int,
    ) -> tuple[list[Row[Any]], int]:
        """Return one page of matching links, newest first, and how many links match in all."""
        assert wanted.search is not None
        term = fold(wanted.search)
        bound = {
            "organization": organization_id,
            "status": wanted.status,
            "text": "" if BETWEEN in term else pattern(term),  # No text is empty.
            "plan": pattern(term),
            "also": [*wanted.also],
            "offset": offset,
            "limit": limit,
        }
        statement = self._any if wanted.status is None else self._of_status
        rows = connection.execute(statement, bound).all()
        return [row for row in rows if row.id is not None], rows[0].total

    def _statement(self, *, of_status: bool = False) -> Select[Any]:
        """Select a page of what is found, beside the total.

        `found` is used twice and evaluated once. The outer join keeps a row with the total when the
        page is empty.
        """
        found = self._found(of_status=of_status)
        total = select(func.count().label("total")).select_from(found).subquery()
        page = select(found.c.position).order_by(found.c.position.desc())
        page = page.offset(bindparam("offset")).limit(bindparam("limit"))
        part, links = page.subquery(), self._links
        rows = total.outerjoin(part, true())
        rows = rows.outerjoin(links, links.c.position == part.c.position)
        statement = select(total.c.total, *self.shown).select_from(rows)
        return statement.order_by(part.c.position.desc())

    def _found(self, *, of_status: bool) -> CTE:
        """Select the positions of all matching links; each way to match has its own index."""
        link = self._links.c
        own = link.organization_id == bindparam("organization")
        position = select(link.position)
        if of_status:
            position = position.where(link.status == bindparam("status"))
        # The ids suffice to find a row. `IS TRUE` keeps SQLite from using the index on the
        # organization, with which it would read all links of the organization.
        by_id = position.where(own.is_(true()))
        return union(
            position.where(own, link.texts.like(bindparam("text"), escape=ESCAPE)),
            by_id.where(link.id.in_(bindparam("also", expanding=True))),
            by_id.where(link.id.in_(self._with_plan())),
        ).cte("found")

    def _with_plan(self) -> Select[tuple[UUID]]:
        activation, plan = self._activations.c, self.plans.c
        names = select(plan.folded_name).where(
            plan.organization_id == bindparam("organization"),
            plan.folded_name.like(bindparam("plan"), escape=ESCAPE),
        )
        return select(activation.link_id).where(
            activation.organization_id == bindparam("organization"),
            activation.removed_at.is_(None),
            activation.folded_plan_name.in_(names),
        )
