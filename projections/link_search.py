"""The search for links: where in the log those stand that match, and how many there are."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    Column,
    Connection,
    Row,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    false,
    func,
    select,
    true,
    union,
)

from domain.links.network import LinkStatus
from projections.database import Database
from projections.inserting import insert_new
from projections.link_batch import BETWEEN, fold
from projections.quick import Quick
from projections.read_model import ReadModel
from projections.text_index import ESCAPE, TextIndex, Way, pattern, values


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """Which links to list.

    `search` is a part of ICCID, name, id or the name of a plan, whatever its case; links in `also`
    match a search by what is known of them elsewhere.
    """

    status: LinkStatus | None = None
    search: str | None = None
    also: Collection[UUID] = ()


class LinkSearch:
    """What is searched besides the rows of links: the index of their texts, and names of plans.

    An organization has few plans and many links, so a search looks at the names of plans first.
    A name stays when the last link with it has lost the plan; it then leads to no link.
    """

    def __init__(self, model: ReadModel, links: Table, activations: Table) -> None:
        self._links, self._activations = links, activations
        self.shown = [each for each in links.c if each.name != "texts"]
        name = model.named("link_texts")
        self.index = TextIndex(name, links, "organization_id", "texts", "position")
        self.plans: Table = model.table(
            "link_plan_names",
            Column("organization_id", Uuid, primary_key=True),
            Column("folded_name", String, primary_key=True),
        )
        columns = self.plans.c
        self._plans_like = Quick(
            select(columns.folded_name).where(
                columns.organization_id == bindparam("organization"),
                columns.folded_name.like(bindparam("pattern"), escape=ESCAPE),
            )
        )
        self._statements: dict[_Ways, Select[Any]] = {}

    def add_plans(self, connection: Connection, plans: Iterable[tuple[UUID, str]]) -> None:
        """Note the folded names of plans that came onto links."""
        names = sorted({*plans})
        rows = [{"organization_id": who, "folded_name": name} for who, name in names]
        insert_new(connection, self.plans, rows)

    def ask(self, database: Database, organization_id: UUID, wanted: LinkFilter) -> "Asked":
        """Return what is to be found: links by themselves, and by the plans that match."""
        assert wanted.search is not None
        term = fold(wanted.search)
        named = {"organization": organization_id, "pattern": pattern(term)}
        plans = [name for (name,) in database.rows(self._plans_like, **named)]
        return Asked(organization_id, wanted, term, plans)

    def page(
        self, connection: Connection, asked: "Asked", *, offset: int, limit: int
    ) -> tuple[list[Row[Any]], int]:
        """Return the rows of some matching links, newest first, and how many match in all."""
        term, wanted = asked.term, asked.wanted
        ways = _Ways(
            texts=BETWEEN not in term and "\0" not in term,
            way=self.index.way(connection, term),
            status=wanted.status is not None,
            also=bool(wanted.also),
            plans=bool(asked.plans),
        )
        bound = {
            "organization": asked.organization_id,
            "status": wanted.status,
            "plans": asked.plans,
            "also": [*wanted.also],
            "offset": offset,
            "limit": limit,
            **values(term),
        }
        rows = connection.execute(self._statement(ways), bound).all()
        return [row for row in rows if row.id is not None], rows[0].total

    def _statement(self, ways: "_Ways") -> Select[Any]:
        """Return the search in these ways; building one takes longer than the search."""
        if ways not in self._statements:
            found = self._found(ways)
            # Used twice and so found once: all is counted, and a page of it returned, if only as
            # one empty row.
            total = select(func.count().label("total")).select_from(found).subquery()
            page = select(found.c.position).order_by(found.c.position.desc())
            page = page.offset(bindparam("offset")).limit(bindparam("limit"))
            part, links = page.subquery(), self._links
            rows = total.outerjoin(part, true())
            rows = rows.outerjoin(links, links.c.position == part.c.position)
            statement = select(total.c.total, *self.shown).select_from(rows)
            self._statements[ways] = statement.order_by(part.c.position.desc())
        return self._statements[ways]

    def _found(self, ways: "_Ways") -> CTE:
        """Select the positions of all that match; each way to match is looked up by its index."""
        link = self._links.c
        own = link.organization_id == bindparam("organization")
        position = select(link.position)
        if ways.status:
            position = position.where(link.status == bindparam("status"))
        texts = self.index.holds(ways.way) if ways.texts else false()
        found = [position.where(own, texts)]
        # Ids say enough to find a row. As `is true` the organization is no key of an index, by
        # which SQLite would rather read all the links of it.
        by_id = position.where(own.is_(true()))
        if ways.also:
            found.append(by_id.where(link.id.in_(bindparam("also", expanding=True))))
        if ways.plans:
            found.append(by_id.where(link.id.in_(self._with_plan())))
        statement = found[0] if len(found) == 1 else union(*found)
        return statement.cte("found")

    def _with_plan(self) -> Select[tuple[UUID]]:
        columns = self._activations.c
        return select(columns.link_id).where(
            columns.organization_id == bindparam("organization"),
            columns.removed_at.is_(None),
            columns.folded_plan_name.in_(bindparam("plans", expanding=True)),
        )


@dataclass(frozen=True)
class Asked:
    """A search of an organization: its folded term, and the names of its plans that hold it."""

    organization_id: UUID
    wanted: LinkFilter
    term: str
    plans: Sequence[str]


@dataclass(frozen=True)
class _Ways:
    """In which ways something can match, and by which way `texts` are found."""

    texts: bool  # None holds what is between them, so a term with it is not looked for.
    way: Way
    status: bool
    also: bool
    plans: bool
