"""Transactions as the rows of a table; every CSV of transactions has these columns."""

from collections.abc import Sequence

import msgspec

from app.http.edge.replies import format_time
from domain.money import format_amount
from projections.models.transactions import Transaction

COLUMNS = (
    "sequence",
    "position",
    "charged_at",
    "kind",
    "direction",
    "amount",
    "currency",
    "balance_after",
    "plan_name",
    "description",
    "reference_type",
    "reference_id",
    "refund_of",
    "reason",
    "id",
    "metadata",
)


def cells(entry: Transaction) -> Sequence[object]:
    """Return the cells of a transaction, in the order of the columns; None is an empty cell."""
    return (
        entry.sequence,
        entry.position,
        format_time(entry.charged_at),
        entry.kind,
        entry.direction,
        format_amount(entry.amount_micros),
        entry.currency,
        format_amount(entry.balance_micros),
        entry.metadata.get("plan_name"),
        entry.description,
        entry.reference.type,
        entry.reference.id,
        entry.refund_of,
        entry.reason,
        entry.id,
        msgspec.json.encode(entry.metadata).decode(),
    )
