"""What several networks tell alike: amounts of money, and times."""

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
    """Return an amount as a cost; None if it is not told or can be none."""
    micros = _micros(amount)
    if micros is None or micros < 0 or not currency or not CURRENCY.fullmatch(currency):
        return None
    return Cost(micros, currency, reference, estimated)


def balance_of(amount: Decimal, currency: str) -> ProviderBalance | None:
    """Return what we have left; None if it can be no amount."""
    micros = _micros(amount)
    return None if micros is None else ProviderBalance(micros, currency)


def _micros(amount: Decimal | None) -> int | None:
    """Return an amount in micro-units, rounded half to even; None for what no books can hold."""
    if amount is None or not amount.is_finite() or abs(amount) > AMOUNT_MAX:
        return None
    return int((amount * MICROS).to_integral_value())


def moment(text: str | None) -> datetime | None:
    """Return a time in UTC, which is meant where it names no zone; None if it is none.

    A space may stand for its T. Some send an empty text for what has not happened.
    """
    try:
        told = convert((text or "").replace(" ", "T", 1), datetime)
        return told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)
    except (ValidationError, OverflowError):  # The first day there is, in a zone before UTC.
        return None
