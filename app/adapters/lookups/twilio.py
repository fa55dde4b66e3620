"""Twilio Lookup v2 with Line Type Intelligence: docs/providers/twilio.md."""

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Final
from urllib.parse import quote
from uuid import UUID

import msgspec

from app.adapters.lookups.replies import (
    LOOKUP_S,
    PROBE_S,
    LineData,
    NumberData,
    codes_of,
    facts_of,
    has_no_answer,
    read_record,
    reference_of,
    require,
    require_ok,
)
from app.adapters.remote.api import RemoteApi
from app.adapters.remote.exchange import Busy, Malformed, Reply, balance_of, decode
from domain.cost import ProviderBalance
from domain.lookups.ports import Details, Found, LineType, LookupProvider, NumberFacts

NAME: Final = "twilio"
FIELDS: Final = "line_type_intelligence"
LINE_TYPES: Final[Mapping[str, LineType]] = {
    "landline": "landline",
    "mobile": "mobile",
    "fixedVoip": "voip",
    "nonFixedVoip": "voip",
    "personal": "personal_number",
    "tollFree": "toll_free",
    "premium": "premium_rate",
    "sharedCost": "shared_cost",
    "uan": "uan",
    "voicemail": "voicemail",
    "pager": "pager",
}
# An error inside an answer concerns the number only, and new codes come up. But this one says that
# we ask for the package too fast.
TOO_FAST: Final = "60616"
NOT_FOUND: Final = 404
NO_SUCH_NUMBER: Final = 20404  # Twilio's code; a 404 with another code means a wrong URL.
# A number in Twilio's documentation. Without `Fields` a lookup is free.
EXAMPLE: Final = "+14159929960"


class LineTypeIntelligence(LineData):
    """The reply of Line Type Intelligence; `type` is "unknown" or None if it does not know."""

    carrier_name: str | None = None


class PhoneNumber(NumberData, kw_only=True):
    """A number as Twilio answers; undocumented fields are ignored."""

    valid: bool
    validation_errors: list[str] | None = None
    line_type_intelligence: LineTypeIntelligence | None = None


class Balance(msgspec.Struct):
    """The balance of an account as a decimal; negative if the account is in debt."""

    balance: Decimal
    currency: str


def basic(user: str, password: str) -> dict[str, str]:
    """Return the header of HTTP Basic (RFC 7617)."""
    return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


class TwilioLookup(LookupProvider):
    """Asks for the line type of each number, which Twilio charges for; validity is free.

    `lookups` and `accounts` are the APIs of Twilio's two hosts; `account` is the id of the account
    whose balance is read.
    """

    name = NAME
    remote = True

    def __init__(self, lookups: RemoteApi, accounts: RemoteApi, account: str) -> None:
        self._lookups = lookups
        self._accounts = accounts
        self._account = account

    def probe(self) -> None:
        """Ask whether an example number is valid, which is free."""
        reply = self._lookups.read("GET", _path(EXAMPLE), timeout_s=PROBE_S)
        require_ok(self.name, reply)
        decode(reply, PhoneNumber)

    def balance(self, *, timeout_s: float) -> ProviderBalance | None:
        """Return the balance of the account; None if the account has no balance of its own."""
        path = f"/2010-04-01/Accounts/{quote(self._account, safe='')}/Balance.json"
        reply = self._accounts.read("GET", path, timeout_s=timeout_s)
        if reply.status == NOT_FOUND:
            return None
        require_ok(self.name, reply)
        data = decode(reply, Balance)
        return balance_of(data.balance, data.currency)

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # Of the port.
        reply = self._lookups.read(
            "GET", _path(phone_number), query={"Fields": FIELDS}, timeout_s=LOOKUP_S
        )
        reference = reference_of(reply, "twilio-request-id")
        if reply.status == NOT_FOUND and _code_of(reply) == NO_SUCH_NUMBER:
            more = Details(reference, (str(NO_SUCH_NUMBER),))
            return Found(NumberFacts(phone_number, valid=False), self.name, details=more, free=True)
        require_ok(self.name, reply)
        return found_of(reply, phone_number, reference)


def found_of(reply: Reply, phone_number: str, reference: str | None = None) -> Found:
    """Return the answer in a reply; raises NotAnswered or NotNow for an error inside it."""
    number = read_record(NAME, reply, PhoneNumber)
    require(NAME, "$.phone_number", makes_sense=number.phone_number == phone_number)
    free = number.line_type_intelligence is None  # Validity costs nothing.
    if not number.valid:
        details = Details(reference, codes_of(*(number.validation_errors or ())))
        return Found(NumberFacts(phone_number, valid=False), NAME, details=details, free=free)
    line = number.line_type_intelligence or LineTypeIntelligence()
    if TOO_FAST in codes_of(line.error_code):
        raise Busy("twilio limits our calls")
    if line.error_code:
        has_no_answer(NAME, line.error_code, "$.line_type_intelligence.error_code")
    kind = LINE_TYPES.get(line.type or "", "unknown")
    facts = facts_of(number, kind, line.carrier_name, line)
    return Found(facts, NAME, details=Details(reference) if reference else None, free=free)


def _code_of(reply: Reply) -> int | None:
    with suppress(Malformed):
        return decode(reply, int, "code")
    return None


def _path(phone_number: str) -> str:
    return f"/v2/PhoneNumbers/{quote(phone_number, safe='')}"
