"""Money as an integer of micro-units (10⁻⁶ of the installation's currency)."""

import re

MICROS = 1_000_000
# A trillion: far more than any wallet holds, and well within 64 bits.
AMOUNT_MICROS_MAX = 10**12 * MICROS

_AMOUNT = re.compile(r"(?P<whole>[0-9]{1,12})(?:\.(?P<fraction>[0-9]{1,6}))?", re.ASCII)


def parse_amount(text: str) -> int:
    """Read a decimal string with at most six decimals, such as `"12.50"`, as micro-units.

    Raises ValueError for signs, exponents, spaces, more decimals or non-ASCII digits.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        message = f"not an amount with at most six decimals: {text!r}"
        raise ValueError(message)
    fraction = (match["fraction"] or "").ljust(6, "0")
    return int(match["whole"]) * MICROS + int(fraction)


def format_amount(micros: int) -> str:
    """Format micro-units with two to six decimals; further zeros are dropped.

    >>> format_amount(5_000), format_amount(12_500_000)
    ('0.005', '12.50')
    """
    sign = "-" if micros < 0 else ""
    whole, fraction = divmod(abs(micros), MICROS)
    decimals = f"{fraction:06d}".rstrip("0").ljust(2, "0")
    return f"{sign}{whole}.{decimals}"
