"""A transaction as partners read it."""

from typing import Any

from app.http.envelope import format_time
from domain.money import format_amount
from projections.transactions import Transaction


def show(entry: Transaction) -> dict[str, Any]:
    """Return one entry of the stream."""
    return {
        "id": entry.id,
        "sequence": entry.sequence,
        "kind": entry.kind,
        "amount": format_amount(entry.amount_micros),
        "direction": entry.direction,
        "currency": entry.currency,
        "charged_at": format_time(entry.charged_at),
        "plan_name": entry.metadata.get("plan_name"),
        "description": entry.description,
        "reference": {"type": entry.reference.type, "id": entry.reference.id},
        "metadata": entry.metadata,
        "balance_after": format_amount(entry.balance_micros),
        "position": entry.position,
    }
