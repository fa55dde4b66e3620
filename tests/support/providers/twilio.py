"""A scripted Twilio: Lookup v2 and the balance of the account, as its documentation has them.

It counts what it charges for: each whole answer with Line Type Intelligence.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from tests.support.providers.lookups import ScriptedLookups
from tests.support.providers.server import Answer, Request

ACCOUNT: Final = "AC" + "0" * 32
TOKEN: Final = "cls_twilio-secret-of-an-account-0001"  # A canary that logs are searched for.
PRICE_MICROS: Final = 8_000
PACKAGES: Final = (
    "caller_name",
    "sim_swap",
    "call_forwarding",
    "line_status",
    "line_type_intelligence",
    "identity_match",
    "reassigned_number",
    "sms_pumping_risk",
    "phone_number_quality_score",
    "pre_fill",
)


def line(kind: str | None, name: str | None = None, **more: Any) -> dict[str, Any]:
    """Return what Line Type Intelligence tells."""
    none = {"error_code": None, "mobile_country_code": None, "mobile_network_code": None}
    return {**none, "carrier_name": name, "type": kind, **more}


def resource(number: str, **fields: Any) -> dict[str, Any]:
    """Return a phone number as Lookup v2 writes it; packages that were not asked for are null."""
    return {
        "calling_country_code": None,
        "country_code": None,
        "phone_number": number,
        "national_format": None,
        "valid": True,
        "validation_errors": None,
        **dict.fromkeys(PACKAGES),
        "url": f"https://lookups.twilio.com/v2/PhoneNumbers/{number}",
        **fields,
    }


def problem(code: int, message: str, status: int) -> Answer:
    """Return an error as all of Twilio's APIs write it."""
    more = f"https://www.twilio.com/docs/errors/{code}"
    return status, {"code": code, "message": message, "more_info": more, "status": status}, {}


class ScriptedTwilio(ScriptedLookups):
    """Every number that is not in its book is of no country."""

    name = "twilio"
    price_micros = PRICE_MICROS

    def __init__(self) -> None:
        super().__init__()
        self.know(
            "+34612345678",
            calling_country_code="34",
            country_code="ES",
            national_format="612 34 56 78",
            line_type_intelligence=line(
                "mobile", "Movistar", mobile_country_code="214", mobile_network_code="07"
            ),
        )
        self.know("+14159929960", calling_country_code="1", country_code="US")
        self.serve("look up", r"/v2/PhoneNumbers/(?P<number>[^/]+)", self._look_up)
        accounts = r"/2010-04-01/Accounts/(?P<account>[^/]+)/Balance\.json"
        self.serve("balance", accounts, self._balance)

    def know(self, number: str, **fields: Any) -> None:
        self.book[number] = resource(number, **fields)

    def _look_up(self, request: Request) -> Answer:
        headers = {"Twilio-Request-Id": f"RQ{UUID(int=self.calls).hex}"}
        number = request.parts["number"]
        unknown = {"valid": False, "validation_errors": ["INVALID_COUNTRY_CODE"]}
        found = self.book.get(number) or resource(number, **unknown)
        if request.query.get("Fields") != "line_type_intelligence":
            return 200, {**found, "line_type_intelligence": None}, headers
        if found["line_type_intelligence"] is not None:
            self.charge()
        return 200, found, headers

    def _balance(self, request: Request) -> Answer:
        if request.parts["account"] != ACCOUNT:
            return problem(20404, "The requested resource was not found", 404)
        told = f"{self.balance_micros / 1_000_000:.6f}"
        return 200, {"account_sid": ACCOUNT, "balance": told, "currency": "USD"}, {}

    def is_allowed(self, request: Request) -> bool:
        known = b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
        return request.headers.get("authorization") == f"Basic {known}"

    def refusal(self) -> Answer:
        return problem(20003, "Authenticate", 401)

    @property
    def settings(self) -> Mapping[str, str]:  # type: ignore[override]  # It is only read.
        return {
            "LOOKUP_PROVIDER": self.name,
            "SANDBOX": "false",
            "TWILIO_ACCOUNT_SID": ACCOUNT,
            "TWILIO_AUTH_TOKEN": TOKEN,
            "TWILIO_LOOKUPS_URL": self.url,
            "TWILIO_API_URL": self.url,
        }
