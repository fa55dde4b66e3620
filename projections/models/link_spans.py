"""The periods in which links were active; the monthly fee counts them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, Table, Uuid, bindparam, or_, select

from domain.ids import as_id
from domain.links.link import Link, status_after
from domain.log.log import Recorded
from projections.engine.database import to_micros
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel, execute_many


class LinkSpans(ReadModel):
    """A row per period, with the position at which it began; `until_at` is null while it lasts."""

    name = "link_spans"
    uses = (Link.Event,)

    def build(self) -> Sequence[Table]:
        """Define the table; periods that still last have a separate index."""
        until_at = Column("until_at", BigInteger)
        self.rows = self.table(
            "link_spans",
            Column("link_id", Uuid, primary_key=True),
            Column("position", BigInteger, primary_key=True, autoincrement=False),
            Column("organization_id", Uuid, nullable=False),
            Column("from_at", BigInteger, nullable=False),
            until_at,
            self.index("link_spans_by_organization", "organization_id", "from_at"),
            self.index("link_spans_lasting", "link_id", unique=True, where=until_at.is_(None)),
        )
        columns = self.rows.c
        # Built once, because every batch with links runs both.
        end = self.rows.update().where(
            columns.link_id == bindparam("link"), columns.position == bindparam("began")
        )
        self._end = end.values(until_at=bindparam("at"))
        theirs = OneOf(columns.link_id, "links")
        ongoing = select(columns.link_id, columns.position).where(theirs, until_at.is_(None))
        self._ongoing = HotStatement(ongoing)
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Follow each link through the batch, from the period that lasts if it has one."""
        events = [each for each in batch if status_after(each.event) is not None]
        lasting = self._lasting(connection, {each.event.originator_id for each in events})
        new: dict[tuple[UUID, int], dict[str, Any]] = {}
        ended: list[dict[str, Any]] = []
        for recorded in events:
            event = recorded.event
            assert isinstance(event, Link.Event)
            link_id, at = event.originator_id, to_micros(event.timestamp)
            is_active = status_after(event) == "active"
            if is_active and link_id not in lasting:
                lasting[link_id] = recorded.position
                new[link_id, recorded.position] = _row(recorded.position, event)
            elif not is_active and link_id in lasting:
                began = lasting.pop(link_id)
                if (link_id, began) in new:
                    new[link_id, began]["until_at"] = at
                else:
                    ended.append({"link": link_id, "began": began, "at": at})
        # Ends first, because a link has at most one period that lasts.
        execute_many(connection, self._end, ended)
        insert_many(connection, self.rows, [*new.values()])

    def active_at(
        self, connection: Connection, organization_id: UUID, moment: datetime
    ) -> list[UUID]:
        """Return the links of an organization that were active at a moment, by id."""
        columns, at = self.rows.c, to_micros(moment)
        statement = (
            select(columns.link_id)
            .where(
                columns.organization_id == organization_id,
                columns.from_at <= at,
                or_(columns.until_at.is_(None), columns.until_at > at),
            )
            .distinct()  # Two periods of a link can overlap: the clocks of two processes differ.
            .order_by(columns.link_id)
        )
        return [*connection.execute(statement).scalars()]

    def _lasting(self, connection: Connection, link_ids: set[UUID]) -> dict[UUID, int]:
        """Return for each link the position at which the period that still lasts began."""
        if not link_ids:
            return {}
        found = run(connection, self._ongoing, links=[*link_ids])
        return {as_id(link_id): position for link_id, position in found}


def _row(position: int, event: Link.Event) -> dict[str, Any]:
    return {
        "link_id": event.originator_id,
        "position": position,
        "organization_id": event.organization_id,
        "from_at": to_micros(event.timestamp),
        "until_at": None,
    }
