"""How many links each organization has: counted as they come and change, never by looking."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import BigInteger, Column, Connection, Table, Uuid, bindparam, select

from domain.links.network import LinkStatus
from projections.inserting import upsert
from projections.one_of import OneOf
from projections.quick import Quick, as_id, run
from projections.read_model import ReadModel

STATUSES: Sequence[LinkStatus] = get_args(LinkStatus)

Change = tuple[UUID, LinkStatus | None, LinkStatus]  # Organization, status before and after.


class LinkCounts:
    """A row per organization that has a link, with a column for each status."""

    def __init__(self, model: ReadModel) -> None:
        self.rows: Table = model.table(
            "link_counts",
            Column("organization_id", Uuid, primary_key=True),
            *(Column(status, BigInteger, nullable=False) for status in STATUSES),
        )
        organization_id = self.rows.c.organization_id
        # Built once: every page asks the first one.
        self._one = select(self.rows).where(organization_id == bindparam("organization"))
        self._some = Quick(select(self.rows).where(OneOf(organization_id, "organizations")))

    def total(
        self, connection: Connection, organization_id: UUID, status: LinkStatus | None
    ) -> int:
        """Return how many links an organization has, of one status or in all."""
        row = connection.execute(self._one, {"organization": organization_id}).one_or_none()
        if row is None:
            return 0
        counts = dict(zip(STATUSES, row[1:], strict=True))
        return sum(counts.values()) if status is None else counts[status]

    def change(self, connection: Connection, changes: Iterable[Change]) -> Counter[UUID]:
        """Count new links (no status before) and others; return how many there were of each."""
        moved = Counter[tuple[UUID, LinkStatus]]()
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
            old = known.get(organization_id, (0,) * len(STATUSES))
            row: dict[str, Any] = {"organization_id": organization_id}
            for status, count in zip(STATUSES, old, strict=True):
                row[status] = count + moved[organization_id, status]
            rows.append(row)
        upsert(connection, self.rows, rows)
        return Counter({organization_id: sum(old) for organization_id, old in known.items()})
