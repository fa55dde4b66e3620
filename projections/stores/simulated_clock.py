"""How far the simulated network's clock is ahead of ours; losing the row sets it back."""

from datetime import timedelta

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, select

from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement
from projections.engine.inserting import upsert

_MICROSECOND = timedelta(microseconds=1)


class SqlSimulatedClock:
    """One row, shared by processes; without it the network is not ahead."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.metadata = MetaData()
        self._rows = Table(
            "simulated_clock",
            self.metadata,
            Column("id", Integer, primary_key=True, autoincrement=False),
            Column("ahead", BigInteger, nullable=False),  # In microseconds.
        )
        self._ahead = HotStatement(select(self._rows.c.ahead))

    def ahead(self) -> timedelta:
        """Return how far the network's clock is ahead."""
        found = self._database.rows(self._ahead)
        return int(found[0][0]) * _MICROSECOND if found else timedelta(0)

    def advance(self, by: timedelta) -> timedelta:
        """Set the network's clock ahead; return how far it is ahead then."""
        row = {"id": 1, "ahead": by // _MICROSECOND}
        with self._database.writing(durable=True) as connection:
            upsert(connection, self._rows, [row], added=frozenset({"ahead"}))
        return self.ahead()
