"""Usage in money: what each organization was charged and refunded, by day, kind and plan.

A day is that of `charged_at` (UTC). A refund counts for the kind and the plan of its charge.
"""

from collections.abc import Sequence
from datetime import UTC, date
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Integer,
    String,
    Table,
    Uuid,
    func,
    literal_column,
    select,
)

from domain.accounts.wallet import Wallet, kind_refunded
from domain.log.log import Recorded
from projections.engine.inserting import upsert
from projections.engine.read_model import ReadModel

Dimension = Literal["day", "month", "kind", "plan"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
SUMS = ("charges", "charged_micros", "refunds", "refunded_micros")
DAY_CHARS = len("2026-11-21")
# Constants in the text of the statement. PostgreSQL takes two parameters for two expressions, so it
# would not find a selected expression among the grouped ones.
FIRST, LENGTH = literal_column("1", Integer), literal_column("7", Integer)


class UsageRow(NamedTuple):
    """The sums of one group; a dimension that does not group is None, and so is a missing plan."""

    charges: int
    charged_micros: int
    refunds: int
    refunded_micros: int
    day: str | None = None
    month: str | None = None
    kind: str | None = None
    plan_id: str | None = None
    plan_name: str | None = None


class Usage(ReadModel):
    """A row per organization, day, kind and plan; `plan_id` is "" for entries without a plan."""

    name = "usage"
    uses = (Wallet.Charged, Wallet.Refunded)

    def build(self) -> Sequence[Table]:
        self.rows = self.table(
            "usage",
            Column("organization_id", Uuid, primary_key=True),
            Column("day", String, primary_key=True),
            Column("kind", String, primary_key=True),
            Column("plan_id", String, primary_key=True),
            Column("plan_name", String, nullable=False),
            *(Column(name, BigInteger, nullable=False) for name in SUMS),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Add the entries of the batch to their rows, in one statement."""
        rows: dict[tuple[int, str, str, str], dict[str, Any]] = {}
        for _, event in batch:
            kind: str
            match event:
                case Wallet.Charged():
                    kind, count, micros = event.kind, "charges", "charged_micros"
                case Wallet.Refunded():
                    kind, count, micros = kind_refunded(event), "refunds", "refunded_micros"
                case _:
                    continue
            day = event.timestamp.astimezone(UTC).date().isoformat()
            plan = str(event.metadata.get("plan_id", ""))
            # By int, because UUIDs are hashed by slow Python code.
            key = (event.organization_id.int, day, kind, plan)
            row = rows.get(key)
            if row is None:
                names = {"day": day, "kind": kind, "plan_id": plan}
                row = {"organization_id": event.organization_id, **names, "plan_name": ""}
                row |= dict.fromkeys(SUMS, 0)
                rows[key] = row
            row["plan_name"] = str(event.metadata.get("plan_name", ""))
            row[count] += 1
            row[micros] += event.amount_micros
        upsert(connection, self.rows, [*rows.values()], added=frozenset(SUMS))

    def grouped(
        self,
        connection: Connection,
        organization_id: UUID,
        group_by: Sequence[Dimension],
        within: tuple[date | None, date | None],
        limit: int,
    ) -> list[UsageRow]:
        """Return the sums of the groups in order, from the first day until before the second."""
        columns = self.rows.c
        keys: dict[str, ColumnElement[Any]] = {
            "day": columns.day,
            "month": func.substr(columns.day, FIRST, LENGTH),
            "kind": columns.kind,
            "plan": columns.plan_id,
        }
        wanted = [keys[each] for each in group_by]
        names = ["plan_id" if each == "plan" else each for each in group_by]
        shown = [key.label(name) for key, name in zip(wanted, names, strict=True)]
        if "plan" in group_by:  # Its newest name: that of the last day.
            shown.append(func.max(columns.day.concat(columns.plan_name)).label("plan_name"))
        shown += [func.sum(columns[name]).label(name) for name in SUMS]
        statement = select(*shown).where(columns.organization_id == organization_id)
        since, until = within
        if since is not None:
            statement = statement.where(columns.day >= since.isoformat())
        if until is not None:
            statement = statement.where(columns.day < until.isoformat())
        statement = statement.group_by(*wanted).order_by(*wanted).limit(limit)
        return [_read(dict(row)) for row in connection.execute(statement).mappings()]


def _read(row: dict[str, Any]) -> UsageRow:
    row |= {name: int(row[name]) for name in SUMS}  # Sums are decimals on PostgreSQL.
    if "plan_id" in row:
        row["plan_id"] = row["plan_id"] or None
        row["plan_name"] = row["plan_name"][DAY_CHARS:] or None
    return UsageRow(**row)
