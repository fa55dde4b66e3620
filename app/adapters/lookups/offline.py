"""Number lookup from the numbering plans in the `phonenumbers` package; needs no network."""

import re
from functools import cache
from typing import Final
from uuid import UUID

import phonenumbers
from phonenumbers import PhoneNumber, PhoneNumberFormat, PhoneNumberType
from phonenumbers.carrier import name_for_valid_number

from app.adapters.lookups.mcc_mnc import Networks
from domain.lookups.ports import Carrier, Found, LineType, LookupProvider, NumberFacts

LINE_TYPES: Final[dict[int, LineType]] = {
    PhoneNumberType.FIXED_LINE: "landline",
    PhoneNumberType.MOBILE: "mobile",
    PhoneNumberType.FIXED_LINE_OR_MOBILE: "fixed_line_or_mobile",
    PhoneNumberType.TOLL_FREE: "toll_free",
    PhoneNumberType.PREMIUM_RATE: "premium_rate",
    PhoneNumberType.SHARED_COST: "shared_cost",
    PhoneNumberType.VOIP: "voip",
    PhoneNumberType.PERSONAL_NUMBER: "personal_number",
    PhoneNumberType.PAGER: "pager",
    PhoneNumberType.UAN: "uan",
    PhoneNumberType.VOICEMAIL: "voicemail",
}

# The types of lines for which the package has carrier names.
_CARRIER_TYPES: Final = frozenset(
    {PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE_OR_MOBILE, PhoneNumberType.PAGER}
)
# The package has codes of its own for two parts of SH, and `001` for no country; none of them is in
# ISO 3166-1. XK (Kosovo) is user-assigned there and is kept.
_COUNTRY_CODES: Final[dict[str | None, str | None]] = {"AC": "SH", "TA": "SH", "001": None}

_compile = cache(re.compile)  # Of a prefix for each plan.


def canonical_of(phone_number: str) -> str | None:
    """Return the canonical form of a number; None if it has this form or is in no plan.

    `+4407400123456` keeps the trunk prefix of Great Britain, which nobody can dial from abroad. A
    zero that belongs to the number, as in `+390612345678`, stays.
    """
    _, canonical = read(phone_number)
    return canonical if canonical not in ("", phone_number) else None


def read(phone_number: str) -> tuple[PhoneNumber, str]:
    """Return a number in E.164 form as the package has it, and its canonical form; "" for no plan.

    The package's parser, which finds numbers in any text, makes half of the calls of a lookup here.
    Behind the calling code it is needed only where digits may be a national prefix, or zeros.
    """
    for end in (2, 3, 4) if re.fullmatch(r"\+[0-9]+", phone_number) else ():
        code, rest = int(phone_number[1:end]), phone_number[end:]
        regions = phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(code)
        if regions is not None and len(rest) > 1:
            plan = phonenumbers.PhoneMetadata.metadata_for_region_or_calling_code(code, regions[0])
            if not _compile(f"0|{(plan and plan.national_prefix_for_parsing) or 0}").match(rest):
                return PhoneNumber(code, int(rest)), phone_number
    try:
        number = phonenumbers.parse(phone_number)
    except phonenumbers.NumberParseException:
        # For example +9991234567: it looks like a number, but nobody has its calling code.
        return PhoneNumber(), ""
    return number, phonenumbers.format_number(number, PhoneNumberFormat.E164)


class OfflineLookup(LookupProvider):
    """Answers from number ranges; the carrier is the holder of the range, even for ported numbers.

    Thread-safe. A lookup takes some 50 µs of a core, a few ms for the first number of a region.
    """

    name = "offline"
    remote = False

    def __init__(self, networks: Networks) -> None:
        # Otherwise each lookup compiles its patterns again, which is ten times slower.
        phonenumbers.enable_pattern_cache()
        self._networks = networks

    def probe(self) -> None:
        """Load the plans of all regions, about 60 ms, before lookups load them one by one."""
        phonenumbers.PhoneMetadata.load_all()

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # Of the port.
        """A number in no plan, or in another form than its plan has, is not valid."""
        return Found(self._facts_of(phone_number), self.name)

    def _facts_of(self, phone_number: str) -> NumberFacts:
        number, canonical = read(phone_number)
        kind = phonenumbers.number_type(number)
        line_type = LINE_TYPES.get(kind)
        # A number is valid exactly when its type is known.
        if line_type is None or canonical != phone_number:
            return NumberFacts(phone_number, valid=False)
        region = phonenumbers.region_code_for_number(number)
        country_code = _COUNTRY_CODES.get(region, region)
        return NumberFacts(
            phone_number,
            valid=True,
            country_code=country_code,
            national_format=phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL),
            carrier=self._carrier(number, kind, line_type, country_code),
        )

    def _carrier(
        self, number: PhoneNumber, kind: int, line_type: LineType, country_code: str | None
    ) -> Carrier:
        name = name_for_valid_number(number, "en") if kind in _CARRIER_TYPES else ""
        if not name:
            return Carrier(type=line_type)
        if country_code is None or line_type != "mobile":
            return Carrier(name=name, type=line_type)
        mcc, mnc = self._networks.code_of(country_code, name)
        return Carrier(name=name, type=line_type, mcc=mcc, mnc=mnc)
