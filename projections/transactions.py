"""The transaction stream: every entry of every wallet, in log order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Row,
    String,
    Table,
    Uuid,
    func,
    select,
)

from domain.application import Recorded
from domain.wallet import Metadata, Reference, Wallet
from projections.database import from_micros, to_micros
from projections.read_model import ReadModel, execute_many

KINDS = (
    "activation",
    "topup",
    "refund",
    "monthly_link_fee",
    "lookup",
    "bulk_lookup",
    "deposit",
    "adjustment",
)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One entry; `amount_micros` is positive and `direction` says which way it went."""

    id: UUID
    organization_id: UUID
    sequence: int
    position: int
    kind: str
    direction: str
    amount_micros: int
    balance_micros: int
    currency: str
    charged_at: datetime
    description: str
    reference: Reference
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Filter:
    """Which transactions to list: `since` is inclusive, `until` is not."""

    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    reference: str | None = None


class Transactions(ReadModel):
    """One row per entry, found by organization and sequence."""

    name = "transactions"

    def build(self) -> Sequence[Table]:
        """Define the one table; every index begins with the organization."""
        self.rows = self.table(
            "transactions",
            Column("id", Uuid, primary_key=True),
            Column("organization_id", Uuid, nullable=False),
            Column("sequence", BigInteger, nullable=False),
            Column("position", BigInteger, nullable=False),
            Column("kind", String, nullable=False),
            Column("direction", String, nullable=False),
            Column("amount_micros", BigInteger, nullable=False),
            Column("balance_micros", BigInteger, nullable=False),
            Column("currency", String, nullable=False),
            Column("charged_at", BigInteger, nullable=False),
            Column("description", String, nullable=False),
            Column("reference_type", String, nullable=False),
            Column("reference_id", String, nullable=False),
            Column("metadata", String, nullable=False),
            self.index("transactions_by_sequence", "organization_id", "sequence", unique=True),
            self.index("transactions_by_kind", "organization_id", "kind", "sequence"),
            self.index("transactions_by_reference", "organization_id", "reference_id", "sequence"),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert the entries of the batch in one statement."""
        rows = [
            _row(recorded.position, recorded.event)
            for recorded in batch
            if isinstance(recorded.event, Wallet.Moved)
        ]
        execute_many(connection, self.rows.insert(), rows)

    def get(
        self, connection: Connection, organization_id: UUID, transaction_id: UUID
    ) -> Transaction | None:
        """Read one transaction of an organization."""
        columns = self.rows.c
        statement = select(self.rows).where(
            columns.id == transaction_id, columns.organization_id == organization_id
        )
        row = connection.execute(statement).one_or_none()
        return _read(row) if row else None

    def page(
        self,
        connection: Connection,
        organization_id: UUID,
        wanted: Filter,
        *,
        offset: int,
        limit: int,
    ) -> tuple[list[Transaction], int]:
        """Return some transactions, newest first, and how many match in all."""
        columns = self.rows.c
        conditions = [columns.organization_id == organization_id, *self._conditions(wanted)]
        if len(conditions) == 1:  # Sequences have no gap, so the newest one is the count.
            statement = select(func.coalesce(func.max(columns.sequence), 0)).where(*conditions)
        else:
            statement = select(func.count()).where(*conditions)
        total = connection.execute(statement).scalar_one()
        if len(conditions) == 1:
            conditions.append(columns.sequence <= total - offset)
            offset = 0
        newest = columns.sequence.desc()
        rows = select(self.rows).where(*conditions).order_by(newest).offset(offset).limit(limit)
        return [_read(row) for row in connection.execute(rows)], total

    def _conditions(self, wanted: Filter) -> list[ColumnElement[bool]]:
        columns = self.rows.c
        conditions: list[ColumnElement[bool]] = []
        if wanted.kind is not None:
            conditions.append(columns.kind == wanted.kind)
        if wanted.since is not None:
            conditions.append(columns.charged_at >= to_micros(wanted.since))
        if wanted.until is not None:
            conditions.append(columns.charged_at < to_micros(wanted.until))
        if wanted.reference is not None:
            conditions.append(columns.reference_id == wanted.reference)
        return conditions


def kind_and_direction(event: Wallet.Moved) -> tuple[str, str]:
    """Return what an entry is called in the stream and whether it takes or gives."""
    match event:
        case Wallet.Charged():
            return event.kind, "debit"
        case Wallet.Refunded():
            return "refund", "credit"
        case Wallet.Deposited():
            return "deposit", "credit"
        case _:
            return "adjustment", "debit" if event.amount_micros < 0 else "credit"


def _row(position: int, event: Wallet.Moved) -> dict[str, Any]:
    kind, direction = kind_and_direction(event)
    return {
        "id": event.transaction_id,
        "organization_id": event.organization_id,
        "sequence": event.sequence,
        "position": position,
        "kind": kind,
        "direction": direction,
        "amount_micros": abs(event.amount_micros),
        "balance_micros": event.balance_micros,
        "currency": event.currency,
        "charged_at": to_micros(event.timestamp),
        "description": event.description,
        "reference_type": event.reference.type,
        "reference_id": event.reference.id,
        "metadata": msgspec.json.encode(event.metadata).decode(),
    }


def _read(row: Row[tuple[Any, ...]]) -> Transaction:
    return Transaction(
        id=row.id,
        organization_id=row.organization_id,
        sequence=row.sequence,
        position=row.position,
        kind=row.kind,
        direction=row.direction,
        amount_micros=row.amount_micros,
        balance_micros=row.balance_micros,
        currency=row.currency,
        charged_at=from_micros(row.charged_at),
        description=row.description,
        reference=Reference(row.reference_type, row.reference_id),
        metadata=msgspec.json.decode(row.metadata),
    )
