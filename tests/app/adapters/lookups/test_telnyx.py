"""Telnyx's replies: each documented form is read, and whatever is no answer is none."""

from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest

from app.adapters.lookups.telnyx import TelnyxLookup, found_of
from app.adapters.remote.exchange import Reply
from domain.cost import ProviderBalance
from domain.lookups.ports import Carrier, Details, Found, LineType, NumberFacts, Portability
from domain.provider_errors import NotAnswered, Unavailable
from tests.contracts.scripted_lookup import ORGANIZATION
from tests.support.providers.telnyx import ScriptedTelnyx, carrier, problem, record

NUMBER, MOBILE = "+13129457420", "+34612345678"


PORTING = {
    "altspid": "073H",
    "city": "WAUKEGAN",
    "line_type": "voip",
    "lrn": "2245701999",
    "ocn": "073H",
    "ported_date": "2017-10-20",
    "ported_status": "Y",
    "spid": "073H",
    "spid_carrier_name": "Telnyx/4",
    "spid_carrier_type": "3",
    "state": "Illinois",
}
DOCUMENTED = {
    "caller_name": {"caller_name": "TELNYX LLC", "error_code": "10001"},
    "carrier": {
        "error_code": None,
        "mobile_country_code": "US",
        "mobile_network_code": 866,
        "name": "Telnyx/4",
        "type": "voip",
    },
    "country_code": "US",
    "fraud": None,
    "national_format": "(0312) 945-7420",
    "phone_number": NUMBER,
    "portability": PORTING,
    "record_type": "number_lookup",
}


def read(told: Any, number: str = NUMBER) -> Found:
    return found_of(Reply(200, {}, msgspec.json.encode(told)), number)


def told_of(kind: str | None, **more: Any) -> Found:
    return read(record(NUMBER, country_code="US", carrier=carrier(kind, **more)))


def test_the_documented_answer_is_read() -> None:
    """Its country code is a region and its network code a number, so neither is kept."""
    found = read({"data": DOCUMENTED})
    assert found.facts == NumberFacts(
        NUMBER,
        valid=True,
        country_code="US",
        national_format="(0312) 945-7420",
        carrier=Carrier("Telnyx/4", "voip"),
    )
    ported = Portability(
        ported=True,
        ported_at="2017-10-20",
        carrier="Telnyx/4",
        carrier_type="3",
        routing_number="2245701999",
        operating_company="073H",
        city="WAUKEGAN",
        state="Illinois",
        line_type="voip",
    )
    assert found.details == Details(portability=ported)


def test_an_answer_of_mostly_empty_texts_is_read() -> None:
    porting = {"lrn": None, "ported_status": "", "ocn": "6034", "line_type": "mobile", "spid": ""}
    names = {"name": "T-MOBILE USA, INC.", "normalized_carrier": "T-Mobile USA"}
    found = read(record(NUMBER, carrier=carrier("mobile", **names), portability=porting))
    assert found.facts.carrier == Carrier("T-MOBILE USA, INC.", "mobile")
    assert found.details == Details(
        portability=Portability(operating_company="6034", line_type="mobile")
    )


def test_where_nothing_is_known_of_the_porting_nothing_is_kept() -> None:
    for porting in (None, {}, {"ported_status": " "}, {"ported_date": ""}):
        assert read(record(NUMBER, carrier=carrier("voip"), portability=porting)).details is None


WORDS = (
    "fixed line=landline|mobile=mobile|voip=voip|VoIP=voip|toll free=toll_free|pager=pager|uan=uan"
)
WORDS += (
    "|toll_free=toll_free|premium rate=premium_rate|shared cost=shared_cost|voicemail=voicemail"
)
WORDS += (
    "|fixed line or mobile=fixed_line_or_mobile|personal number=personal_number|unknown=unknown|="
)


def test_each_line_type_has_its_word() -> None:
    for kind, _, expected in (each.partition("=") for each in WORDS.split("|")):
        assert told_of(kind).facts.carrier == Carrier(type=cast("LineType", expected or "unknown"))
    assert told_of(None).facts.carrier == Carrier(type="unknown")


def test_without_a_carrier_or_with_an_error_inside_there_is_no_answer() -> None:
    with pytest.raises(NotAnswered):
        read(record(NUMBER))
    with pytest.raises(NotAnswered):
        told_of("mobile", error_code="10001")


def test_a_number_is_valid_unless_it_is_told_otherwise_in_words_that_are_understood() -> None:
    assert not read(record(NUMBER, valid_number=False)).facts.valid
    for valid in ("perhaps", 2, ["x"], {}):
        with pytest.raises(NotAnswered, match="valid_number"):
            read(record(NUMBER, valid_number=valid, carrier=carrier("mobile")))


def test_a_reply_about_another_number_is_no_answer_and_no_outage() -> None:
    with pytest.raises(NotAnswered) as caught:
        read(record(MOBILE, carrier=carrier("mobile")))
    assert MOBILE not in str(caught.value)


@pytest.fixture
def server() -> Iterator[ScriptedTelnyx]:
    with ScriptedTelnyx() as made:
        yield made


def test_one_call_asks_for_the_carrier_and_keeps_its_reference(
    server: ScriptedTelnyx, lookup: TelnyxLookup
) -> None:
    found = lookup.look_up(ORGANIZATION, MOBILE)
    [request] = server.asked("look up")
    assert (request.path, request.query) == (
        "/v2/number_lookup/%2B34612345678",
        {"type": "carrier"},
    )
    assert found.facts.carrier == Carrier("MOVISTAR", "mobile", "214", "07")
    assert (found.provider, found.details) == ("telnyx", Details(str(UUID(int=1))))


@pytest.mark.parametrize(("status", "code"), [(422, "10002"), (422, "10016"), (404, "10002")])
def test_a_number_that_is_refused_is_not_valid(
    server: ScriptedTelnyx, lookup: TelnyxLookup, status: int, code: str
) -> None:
    server.answer_with(*problem(status, code, "No such number")[:2])
    got = lookup.look_up(ORGANIZATION, MOBILE)
    assert (got.facts, got.details) == (NumberFacts(MOBILE, valid=False), Details(errors=(code,)))


NO_REASON: list[Any] = [{"errors": []}, {}, {"message": "no route"}]


# A wrong base URL gets 404 with 10005, with which no number may be sold as not valid.
@pytest.mark.parametrize(
    ("status", "told", "is_outage"),
    [
        *((422, problem(422, code, "Bad Request")[1], False) for code in ("10001", "10015")),
        *((404, problem(404, code, "Resource not found")[1], True) for code in ("10003", "10005")),
        *((status, problem(status, "10015", "No")[1], status != 400) for status in (302, 400, 402)),
        *((status, told, status == 404) for status in (404, 422) for told in NO_REASON),
        *((status, b"<html>", True) for status in (404, 422)),
    ],
)
def test_any_other_refusal_is_no_answer_and_an_outage_unless_it_is_about_the_number(
    server: ScriptedTelnyx, lookup: TelnyxLookup, status: int, told: Any, *, is_outage: bool
) -> None:
    server.answer_with(status, told)
    with pytest.raises(Unavailable, match=str(status) if is_outage else None) as caught:
        lookup.look_up(ORGANIZATION, MOBILE)
    assert isinstance(caught.value, NotAnswered) is not is_outage


def test_the_balance_is_what_can_be_spent(server: ScriptedTelnyx, lookup: TelnyxLookup) -> None:
    documented = {
        "record_type": "balance",
        "pending": "10.00",
        "balance": "300.00",
        "credit_limit": "100.00",
        "available_credit": "400.00",
        "currency": "USD",
    }
    server.answer_with(200, {"data": documented})
    assert lookup.balance(timeout_s=1.0) == ProviderBalance(400_000_000, "USD")


def test_a_probe_costs_nothing(server: ScriptedTelnyx, lookup: TelnyxLookup) -> None:
    lookup.probe()
    assert (server.charged, [each.route for each in server.requests]) == (0, ["balance"])
