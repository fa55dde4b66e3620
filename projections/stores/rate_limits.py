"""Counts the requests of each organization in this minute, for all processes together.

Losing the table restarts the count of the minute.
"""

from uuid import UUID

from sqlalchemy import BigInteger, Column, MetaData, Table, Uuid, bindparam, text

from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement
from projections.stores.faults import Faults

# Another process may be in the next minute already; that minute then counts for all.
_COUNT = HotStatement(
    text(
        "INSERT INTO rate_limits (organization_id, minute, taken)"
        " VALUES (:organization, :minute, :wanted)"
        " ON CONFLICT (organization_id) DO UPDATE SET"
        " taken = :wanted + CASE WHEN rate_limits.minute = :minute OR rate_limits.minute = :next"
        " THEN rate_limits.taken ELSE 0 END,"
        " minute = CASE WHEN rate_limits.minute = :next THEN rate_limits.minute ELSE :minute END"
        " RETURNING minute, taken"
    ).bindparams(bindparam("organization", type_=Uuid()))
)


class SqlRequestCounts:
    """One row for each organization that has a limit."""

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults
        self.metadata = MetaData()
        Table(
            "rate_limits",
            self.metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("minute", BigInteger, nullable=False),
            Column("taken", BigInteger, nullable=False),
        )

    def count(self, organization_id: UUID, minute: int, wanted: int) -> tuple[int, int] | None:
        """Count `wanted` requests; return the minute that has them, and how many it has in all.

        None if the table cannot be reached.
        """
        found = None
        with self._faults.swallowed("count requests"):
            found = self._database.rows(
                _COUNT, organization=organization_id, minute=minute, next=minute + 1, wanted=wanted
            )
        return (int(found[0][0]), int(found[0][1])) if found else None
