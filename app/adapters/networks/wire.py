"""Reads amounts of money and times, which several networks send in the same form."""

import re
from datetime import UTC, datetime
from decimal import Decimal

from msgspec import ValidationError, convert

from domain.cost import Cost, ProviderBalance
from domain.money import AMOUNT_MICROS_MAX, MICROS

CURRENCY = re.compile(r"[A-Z]{3}")
AMOUNT_MAX = AMOUNT_MICROS_MAX // MICROS


def cost_of(
    amount: Decimal | None, currency: str | None, reference: str | None, *, estimated: bool = False
) -> Cost | None:
    """Return an amount as a cost; None if it is missing or is no valid cost."""
    micros = _micros(amount)
    if micros is None or micros < 0 or not currency or not CURRENCY.fullmatch(currency):
        return None
    return Cost(micros, currency, reference, estimated)


def balance_of(amount: Decimal, currency: str) -> ProviderBalance | None:
    """Return an amount as our balance; None if it is no valid amount."""
    micros = _micros(amount)
    return None if micros is None else ProviderBalance(micros, currency)


def _micros(amount: Decimal | None) -> int | None:
    """Return an amount in micro-units, rounded half to even; None if missing or too large."""
    if amount is None or not amount.is_finite() or abs(amount) > AMOUNT_MAX:
        return None
    return int((amount * MICROS).to_integral_value())


def moment(text: str | None) -> datetime | None:
    """Return a time in UTC; a time without a zone is UTC. None for a text that is no time.

    Date and time may be separated by a space. Some networks send an empty text for an event that
    has not happened.
    """
    try:
        told = convert((text or "").replace(" ", "T", 1), datetime)
        return told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)
    except (ValidationError, OverflowError):  # Overflow: day 1 of year 1 in a zone ahead of UTC.
        return None
