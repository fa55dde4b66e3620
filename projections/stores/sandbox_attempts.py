"""Counts attempts at sandbox numbers; losing the table replays the first attempt."""

from uuid import UUID

from sqlalchemy import Column, Integer, MetaData, String, Table, Uuid, select

from projections.engine.database import Database
from projections.engine.inserting import upsert


class SqlSandboxAttempts:
    """One counter per organization and number, shared by processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.metadata = MetaData()
        self._rows = Table(
            "sandbox_attempts",
            self.metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("phone_number", String, primary_key=True),
            Column("attempts", Integer, nullable=False),
        )

    def count(self, organization_id: UUID, phone_number: str) -> int:
        """Count one attempt; return the number of attempts so far."""
        columns = self._rows.c
        mine = (columns.organization_id == organization_id, columns.phone_number == phone_number)
        row = {"organization_id": organization_id, "phone_number": phone_number, "attempts": 1}
        with self._database.writing() as connection:
            upsert(connection, self._rows, [row], added=frozenset({"attempts"}))
            return int(connection.execute(select(columns.attempts).where(*mine)).scalar_one())
