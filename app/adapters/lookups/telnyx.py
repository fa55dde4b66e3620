"""Telnyx Number Lookup with carrier and porting: docs/providers/telnyx.md."""

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, get_args
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
    text_of,
)
from app.adapters.remote.api import RemoteApi
from app.adapters.remote.exchange import Malformed, Reply, balance_of, decode
from domain.cost import ProviderBalance
from domain.lookups.ports import Details, Found, LineType, LookupProvider, NumberFacts, Portability

NAME: Final = "telnyx"
LINE_TYPES: Final[Mapping[str, LineType]] = {
    "fixed_line": "landline",
    **{each: each for each in get_args(LineType)},  # Telnyx calls the others as we do.
}
UNPROCESSABLE: Final = 422
NO_NUMBER: Final = {404, UNPROCESSABLE}
# "Invalid phone number" and "must be in +E.164 format". Not 10005: a wrong URL gets it too.
NUMBER_CODES: Final = {"10002", "10016"}
PORTED: Final = {"Y": True, "N": False}


class CarrierData(LineData):
    """The carrier."""

    name: str | None = None


class PortingData(msgspec.Struct):
    """The porting of a number in North America; elsewhere mostly empty."""

    ported_status: str | None = None
    ported_date: str | None = None
    spid_carrier_name: str | None = None
    spid_carrier_type: str | None = None
    lrn: str | None = None
    ocn: str | None = None
    line_type: str | None = None
    city: str | None = None
    state: str | None = None


class PhoneNumber(NumberData, kw_only=True):
    """A number. Replies have `valid_number`, although the documentation lacks it."""

    valid_number: Any = None
    carrier: CarrierData | None = None
    portability: PortingData | None = None


class NumberReply(msgspec.Struct):
    """The reply to a lookup."""

    data: PhoneNumber


class Problem(msgspec.Struct):
    """An error: its code is in the list of the documentation."""

    code: str | int


class BalanceData(msgspec.Struct):
    """The amount that an account can spend: its balance plus its credit."""

    available_credit: Decimal
    currency: str


class TelnyxLookup(LookupProvider):
    """Asks for the carrier of each number; the porting comes with it."""

    name = NAME
    remote = True

    def __init__(self, api: RemoteApi) -> None:
        self._api = api

    def probe(self) -> None:
        """Ask for the balance, which is free."""
        self.balance(timeout_s=PROBE_S)

    def balance(self, *, timeout_s: float) -> ProviderBalance | None:
        reply = self._api.read("GET", "/balance", timeout_s=timeout_s)
        require_ok(self.name, reply)
        data = decode(reply, BalanceData, "data")
        return balance_of(data.available_credit, data.currency)

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # Of the port.
        path = f"/number_lookup/{quote(phone_number, safe='')}"
        reply = self._api.read("GET", path, query={"type": "carrier"}, timeout_s=LOOKUP_S)
        reference = reference_of(reply, "x-request-id")
        if reply.status in NO_NUMBER:
            return _no_number(reply, phone_number, reference)
        require_ok(self.name, reply)
        return found_of(reply, phone_number, reference)


def _no_number(reply: Reply, phone_number: str, reference: str | None) -> Found:
    codes: tuple[str, ...] = ()
    with suppress(Malformed):
        codes = codes_of(*(each.code for each in decode(reply, list[Problem], "errors")))
    if not NUMBER_CODES.intersection(codes):
        if codes and reply.status == UNPROCESSABLE:
            has_no_answer(NAME, codes[0], "$.errors[0].code")
        require_ok(NAME, reply)
    details = Details(reference, codes)
    return Found(NumberFacts(phone_number, valid=False), NAME, details=details, free=True)


def found_of(reply: Reply, phone_number: str, reference: str | None = None) -> Found:
    """Return the answer in a reply; raises NotAnswered for an error inside the reply."""
    number = read_record(NAME, reply, NumberReply).data
    require(NAME, "$.data.phone_number", makes_sense=number.phone_number == phone_number)
    if number.valid_number is False:
        details = Details(reference)
        return Found(NumberFacts(phone_number, valid=False), NAME, details=details)
    is_valid = number.valid_number is None or number.valid_number is True
    require(NAME, "$.data.valid_number", makes_sense=is_valid)
    carrier = number.carrier
    if carrier is None:
        has_no_answer(NAME, None, "$.data.carrier")
    if carrier.error_code:
        has_no_answer(NAME, carrier.error_code, "$.data.carrier.error_code")
    kind = LINE_TYPES.get((carrier.type or "").lower().replace(" ", "_"), "unknown")
    facts = facts_of(number, kind, carrier.name, carrier)
    details = Details(reference, portability=_portability(number.portability))
    return Found(facts, NAME, details=details if details != Details() else None)


def _portability(data: PortingData | None) -> Portability | None:
    if data is None:
        return None
    found = Portability(
        ported=PORTED.get(data.ported_status or ""),
        ported_at=text_of(data.ported_date),
        carrier=text_of(data.spid_carrier_name),
        carrier_type=text_of(data.spid_carrier_type),
        routing_number=text_of(data.lrn),
        operating_company=text_of(data.ocn),
        city=text_of(data.city),
        state=text_of(data.state),
        line_type=text_of(data.line_type),
    )
    return found if found != Portability() else None
