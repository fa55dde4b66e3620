"""A scripted Telnyx: Number Lookup and the balance, as its documentation has them.

It counts what it charges for: each whole answer about a carrier.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from tests.support.providers.lookups import ScriptedLookups
from tests.support.providers.server import Answer, Request

KEY: Final = "cls_telnyx-secret-of-an-account-0001"
PRICE_MICROS: Final = 2_500
PORTING: Final = (
    "lrn",
    "ported_status",
    "ported_date",
    "ocn",
    "line_type",
    "spid",
    "spid_carrier_name",
    "spid_carrier_type",
    "altspid",
    "altspid_carrier_name",
    "altspid_carrier_type",
    "city",
    "state",
)


def carrier(kind: str | None, name: str = "", **more: Any) -> dict[str, Any]:
    """Return a carrier; what is not known is an empty text."""
    none = {"mobile_country_code": "", "mobile_network_code": "", "error_code": None}
    return {**none, "name": name, "type": kind, "normalized_carrier": None, **more}


def record(number: str, **fields: Any) -> dict[str, Any]:
    """Return a number as the lookup writes it."""
    data = {
        "country_code": None,
        "national_format": None,
        "phone_number": number,
        "fraud": None,
        "carrier": None,
        "caller_name": None,
        "portability": dict.fromkeys(PORTING, ""),
        "valid_number": True,
        "record_type": "number_lookup",
        **fields,
    }
    return {"data": data}


def problem(status: int, code: str, title: str) -> Answer:
    """Return an error as all of Telnyx's API writes it."""
    meta = {"url": f"https://developers.telnyx.com/docs/overview/errors/{code}"}
    error = {"code": code, "title": title, "detail": f"{title}.", "meta": meta}
    return status, {"errors": [error]}, {}


class ScriptedTelnyx(ScriptedLookups):
    """Every number that is not in its book is invalid."""

    name = "telnyx"
    price_micros = PRICE_MICROS

    prefix = "/v2"

    def __init__(self) -> None:
        super().__init__()
        self.know(
            "+34612345678",
            country_code="ES",
            national_format="612 34 56 78",
            carrier=carrier(
                "mobile", "MOVISTAR", mobile_country_code="214", mobile_network_code="07"
            ),
        )
        self.serve("look up", r"/number_lookup/(?P<number>[^/]+)", self._look_up)
        self.serve("balance", r"/balance", self._balance)

    def know(self, number: str, **fields: Any) -> None:
        self.book[number] = record(number, **fields)

    def _look_up(self, request: Request) -> Answer:
        headers = {"x-request-id": str(UUID(int=self.calls))}
        found = self.book.get(request.parts["number"])
        if found is None:
            status, told, _ = problem(422, "10002", "Invalid phone number")
            return status, told, headers
        if request.query.get("type") != "carrier":
            return 200, {"data": {**found["data"], "carrier": None}}, headers
        self.charge()
        return 200, found, headers

    def _balance(self, _: Request) -> Answer:
        told = f"{self.balance_micros / 1_000_000:.2f}"
        data = {"record_type": "balance", "pending": "0.00", "balance": told, "currency": "USD"}
        return 200, {"data": {**data, "credit_limit": "0.00", "available_credit": told}}, {}

    def is_allowed(self, request: Request) -> bool:
        return request.headers.get("authorization") == f"Bearer {KEY}"

    def refusal(self) -> Answer:
        return problem(401, "10009", "Authentication failed")

    @property
    def settings(self) -> Mapping[str, str]:  # type: ignore[override]  # It is only read.
        return {
            "LOOKUP_PROVIDER": self.name,
            "SANDBOX": "false",
            "TELNYX_API_KEY": KEY,
            "TELNYX_URL": self.url,
        }
