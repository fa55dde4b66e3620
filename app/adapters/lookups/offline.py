"""Number lookup from the numbering plans inside the `phonenumbers` package; needs no network."""

from functools import lru_cache
from threading import Timer
from typing import Final
from uuid import UUID

import phonenumbers
from phonenumbers import PhoneNumber, PhoneNumberFormat, PhoneNumberType
from phonenumbers.carrier import name_for_valid_number

from app.adapters.lookups.mcc_mnc import Networks
from domain.lookups.ports import Carrier, LineType, NumberFacts

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

REMEMBERED_MAX: Final = 10_000  # Numbers; some 7 MB.
REMEMBERED_S: Final = 60.0  # Then all are forgotten, so that no number outlives its erasure.

# The types that the package keeps carrier names for.
_CARRIER_TYPES: Final = frozenset(
    {PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE_OR_MOBILE, PhoneNumberType.PAGER}
)
# Two parts of the territory SH have codes of their own in the package, which are no ISO 3166-1
# codes; `001` is the package's word for no country. XK (Kosovo) is user-assigned and kept.
_COUNTRY_CODES: Final[dict[str | None, str | None]] = {"AC": "SH", "TA": "SH", "001": None}


class OfflineLookup:
    """Answers from number ranges: the carrier is the holder of the range, ported numbers too.

    Thread-safe. A lookup costs some 30 µs of one core, and a few ms the first time in a region;
    one that the same organization asked within the last minute costs nothing. Not so for others:
    the time that an answer takes must not tell who else has asked.
    """

    name = "offline"
    remote = False

    def __init__(self, networks: Networks) -> None:
        # Without it every lookup compiles its patterns anew: ten times slower over mixed regions.
        phonenumbers.enable_pattern_cache()
        self._networks = networks
        self._facts = lru_cache(REMEMBERED_MAX)(self._facts_of)
        self._will_forget = False

    def warm(self) -> None:
        """Load the plans of all regions (some 60 ms), which lookups else load one by one.

        Meant for a thread beside the start of a process; lookups may run meanwhile.
        """
        phonenumbers.PhoneMetadata.load_all()

    def is_up(self) -> bool:
        """Tell that lookups are served, which here is always so."""
        return True

    def look_up(self, organization_id: UUID, phone_number: str) -> NumberFacts:
        """Return the facts of one E.164 number; what no plan knows is not valid."""
        facts = self._facts(organization_id, phone_number)
        if not self._will_forget:  # Two threads that both find it so end in two timers, no harm.
            self._will_forget = True
            self._start_timer()
        return facts

    def _start_timer(self) -> None:
        timer = Timer(REMEMBERED_S, self._forget)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # No thread is to be had: then nothing is remembered.
            self._forget()

    def _forget(self) -> None:
        self._will_forget = False  # First: what comes while all is forgotten has a timer again.
        self._facts.cache_clear()

    def _facts_of(self, _: UUID, phone_number: str) -> NumberFacts:
        try:
            number = phonenumbers.parse(phone_number)
        except phonenumbers.NumberParseException:
            # For example +9991234567: the pattern of a number under a calling code of nobody.
            return NumberFacts(phone_number, valid=False)
        kind = phonenumbers.number_type(number)
        line_type = LINE_TYPES.get(kind)
        if line_type is None:  # A number is valid exactly when its type is known.
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
        mcc, mnc = self._networks.find(country_code, name)
        return Carrier(name=name, type=line_type, mcc=mcc, mnc=mnc)
