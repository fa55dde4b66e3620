"""Twilio's replies: each documented form is read, and whatever is no answer is none."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
import pytest

from app.adapters.lookups.twilio import TwilioLookup, found_of
from app.adapters.remote.exchange import Malformed, Reply
from domain.cost import ProviderBalance
from domain.lookups.ports import Carrier, Details, Found, LineType, NumberFacts
from domain.provider_errors import NotAnswered, NotNow, Unavailable
from tests.contracts.scripted_lookup import ORGANIZATION
from tests.log_lines import records_of
from tests.support.providers.twilio import ACCOUNT, ScriptedTwilio, line, resource

NUMBER, MOBILE = "+14159929960", "+34612345678"
US: Mapping[str, Any] = {
    "calling_country_code": "1",
    "country_code": "US",
    "national_format": "(415) 992-9960",
}


def read(told: Mapping[str, Any], number: str = NUMBER) -> Found:
    return found_of(Reply(200, {}, msgspec.json.encode(told)), number)


def told_of(kind: str | None, **more: Any) -> Found:
    return read(resource(NUMBER, **US, line_type_intelligence=line(kind, **more)))


# Of a package that we do not ask for.
OTHER = {"caller_name": "A B", "caller_type": "CONSUMER", "error_code": None}


def test_the_documented_line_type_is_read() -> None:
    codes = {"mobile_country_code": "240", "mobile_network_code": "38"}
    facts = told_of("nonFixedVoip", name="Twilio - SMS/MMS-SVR", **codes).facts
    assert facts == NumberFacts(
        NUMBER,
        valid=True,
        country_code="US",
        national_format="(415) 992-9960",
        carrier=Carrier("Twilio - SMS/MMS-SVR", "voip"),
    )


def test_a_valid_number_without_its_line_type_is_an_answer_that_costs_nothing() -> None:
    found = read(resource(NUMBER, **US, caller_name=OTHER))
    assert (found.facts.country_code, found.facts.valid, found.free) == ("US", True, True)
    assert found.facts.carrier == Carrier(type="unknown")


ERRORS = "TOO_SHORT TOO_LONG INVALID_BUT_POSSIBLE INVALID_COUNTRY_CODE INVALID_LENGTH NOT_A_NUMBER"


def test_an_invalid_number_is_an_answer_with_its_reason() -> None:
    number = "+141599299600"
    for error in ERRORS.split():
        found = read(resource(number, valid=False, validation_errors=[error]), number)
        assert found.facts == NumberFacts(number, valid=False)
        assert found.details == Details(errors=(error,))


def test_what_makes_no_sense_in_an_answer_is_left_out_of_it() -> None:
    odd = {"national_format": {}, "validation_errors": ["TOO_SHORT", {}]}
    told = resource(NUMBER, **{**US, **odd}, line_type_intelligence=line("mobile", name=[1]))
    carrier = Carrier(None, "mobile")
    assert read(told).facts == NumberFacts(NUMBER, valid=True, country_code="US", carrier=carrier)
    with pytest.raises(NotAnswered):
        read({**told, "valid": {}})


WORDS = (
    "landline=landline mobile=mobile fixedVoip=voip nonFixedVoip=voip tollFree=toll_free uan=uan"
)
WORDS += " personal=personal_number premium=premium_rate sharedCost=shared_cost satellite=unknown"
WORDS += " voicemail=voicemail pager=pager unknown=unknown"


def test_each_line_type_has_its_word() -> None:
    for kind, _, expected in (each.partition("=") for each in WORDS.split()):
        assert told_of(kind).facts.carrier == Carrier(type=cast("LineType", expected))
    assert told_of(None).facts.carrier == Carrier(type="unknown")


def test_network_codes_are_kept_where_they_are_digits() -> None:
    for told, kept in {
        ("214", "07"): ("214", "07"),
        ("310", "260"): ("310", "260"),
        ("US", "866"): (None, None),
        ("21", "07"): (None, None),
        ("214", "7"): ("214", None),
        ("214", ""): ("214", None),
        ("٢١٤", "07"): (None, None),
        (None, "07"): (None, None),
        (310, 260): ("310", "260"),
        (310, 4): ("310", None),
        (310, 26): ("310", None),
    }.items():
        codes = dict(zip(("mobile_country_code", "mobile_network_code"), told, strict=True))
        carrier = told_of("mobile", **codes).facts.carrier
        assert carrier == Carrier(None, "mobile", *kept), told


def test_an_error_about_the_number_is_no_answer_and_no_failure_of_twilio() -> None:
    for code in (60600, "60601", 60606, 60608, 60626, 99999, ["x"]):
        with pytest.raises(NotAnswered):
            told_of("mobile", error_code=code)


def test_a_limit_of_the_package_is_no_failure_and_asks_us_to_wait() -> None:
    with pytest.raises(NotNow):
        told_of("mobile", error_code=60616)


def test_a_reply_about_another_number_is_no_answer_and_no_outage() -> None:
    with pytest.raises(NotAnswered, match=r" at \$\.phone_number") as caught:
        read(resource(MOBILE, line_type_intelligence=line("mobile")))
    assert MOBILE not in str(caught.value)


@pytest.mark.parametrize("status", [400, 410, 422])
def test_a_refusal_that_blames_the_number_is_no_outage(
    server: ScriptedTwilio, lookup: TwilioLookup, status: int
) -> None:
    server.answer_with(status, {"code": 60200, "message": "Invalid parameter", "status": status})
    with pytest.raises(NotAnswered, match=str(status)):
        lookup.look_up(ORGANIZATION, MOBILE)
    server.answer_with(status, b"<html>")
    with pytest.raises(Unavailable) as caught:
        lookup.look_up(ORGANIZATION, MOBILE)
    assert not isinstance(caught.value, NotAnswered)


@pytest.fixture
def server() -> Iterator[ScriptedTwilio]:
    with ScriptedTwilio() as made:
        yield made


def test_one_call_asks_for_the_line_type_and_keeps_its_reference(
    server: ScriptedTwilio, lookup: TwilioLookup
) -> None:
    found = lookup.look_up(ORGANIZATION, MOBILE)
    [request] = server.asked("look up")
    assert (request.path, request.query) == (
        "/v2/PhoneNumbers/%2B34612345678",
        {"Fields": "line_type_intelligence"},
    )
    assert found.facts.carrier == Carrier("Movistar", "mobile", "214", "07")
    assert (found.provider, found.details) == ("twilio", Details("RQ" + "1".zfill(32)))


def test_a_number_that_is_not_found_is_not_valid_but_a_wrong_url_is_no_answer(
    server: ScriptedTwilio, lookup: TwilioLookup
) -> None:
    server.answer_with(404, {"code": 20404, "message": "not found", "status": 404})
    found = lookup.look_up(ORGANIZATION, MOBILE)
    assert found.facts == NumberFacts(MOBILE, valid=False)
    assert found.details == Details(errors=("20404",))
    for told in ({"message": "no such host"}, {"code": 20405}, b"<html>", []):
        server.answer_with(404, told)
        with pytest.raises(Unavailable):
            lookup.look_up(ORGANIZATION, MOBILE)


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_told_to_operators(
    server: ScriptedTwilio, lookup: TwilioLookup, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer_with(status, {"code": 20003, "message": "Authenticate", "status": status})
    for ask in (lambda: lookup.look_up(ORGANIZATION, MOBILE), lookup.probe):
        with pytest.raises(Unavailable, match=f"refuses our credentials \\({status}\\)"):
            ask()
    lines = [each.getMessage() for each in records_of(caplog, "app.adapters.lookups.replies")]
    assert lines == [f"twilio refuses our credentials ({status}): check its settings"] * 2


def test_a_probe_costs_nothing(server: ScriptedTwilio, lookup: TwilioLookup) -> None:
    lookup.probe()
    assert (server.charged, len(server.requests)) == (0, 1)
    assert "Fields" not in server.requests[0].query


def test_the_balance_is_that_of_the_account_and_a_part_of_one_has_none(
    server: ScriptedTwilio, lookup: TwilioLookup
) -> None:
    server.balance_micros = 50_000
    assert lookup.balance(timeout_s=1.0) == ProviderBalance(50_000, "USD")
    assert server.requests[0].path == f"/2010-04-01/Accounts/{ACCOUNT}/Balance.json"
    for text, micros in {"0.05": 50_000, "-1.5": -1_500_000, "3.00000091": 3_000_001}.items():
        server.answer_with(200, {"account_sid": ACCOUNT, "balance": text, "currency": "USD"})
        assert lookup.balance(timeout_s=1.0) == ProviderBalance(micros, "USD")
    server.answer_with(404, {"code": 20404, "message": "not found", "status": 404})
    assert lookup.balance(timeout_s=1.0) is None
    server.answer_with(200, {"balance": "1", "currency": "$"})
    assert lookup.balance(timeout_s=1.0) is None
    server.answer_with(200, {"balance": "a", "currency": "USD"})
    with pytest.raises(Malformed):
        lookup.balance(timeout_s=1.0)
