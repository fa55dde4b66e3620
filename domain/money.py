"""Money as an integer of micro-units (10⁻⁶ of a currency), and the known currencies."""

import re

MICROS = 1_000_000
# A trillion: far more than any wallet holds, and well within 64 bits.
AMOUNT_MICROS_MAX = 10**12 * MICROS

# ISO 4217 list one, without metals and test codes.
CURRENCIES = frozenset(
    """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP
    BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP
    GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR
    KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK
    MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR
    SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS
    UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
    """.split()  # noqa: SIM905  # Two hundred quotation marks would hide a wrong code.
)

_AMOUNT = re.compile(r"(?P<whole>0|[1-9][0-9]{0,11})(?:\.(?P<fraction>[0-9]{1,6}))?", re.ASCII)


def parse_amount(text: str) -> int:
    """Read a decimal string with at most six decimals, such as `"12.50"`, as micro-units.

    Raises ValueError for signs, exponents, spaces, a needless 0 in front, more decimals or
    non-ASCII digits.
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"not an amount with at most six decimals: {text!r}")
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
