"""A single lookup: one number in, what is known of it out, and its charge."""

import pytest

from app.bootstrap.providers import LOOKUPS
from app.http.lookups.input import NOT_AN_AGE, NOT_E164
from tests.app.http.conftest import MakeService
from tests.app.http.service import Tenant, fields_of
from tests.contracts.scripted_lookup import ScriptedLookup

NUMBER = "+971508245915"


def test_the_query_wins_over_the_body(acme: Tenant) -> None:
    for other in ("+14155552671", "garbage", 3, None):
        body = {"phone_number": other}
        reply = acme.post("/number-lookup", query_string={"phone_number": NUMBER}, json=body)
        assert reply.json["data"]["phone_number"] == NUMBER


WRONG = "|971508245915|+0971508245915|+1|+1234567890123456|+97150824591a|+971 508245915"
WRONG += "|+971508245915 |+971508245915\n|++971508245915|  971508245915|+971508245915\0"
WRONG += "|tel:+971508245915|+9\u0667\u0661\u0665\u0660"


def test_a_number_off_the_pattern_is_refused(acme: Tenant) -> None:
    for number in WRONG.split("|"):
        assert fields_of(acme.look_up(number)) == {"phone_number": [NOT_E164]}, number


def test_a_body_is_read_strictly(acme: Tenant) -> None:
    for number in (*WRONG.split("|"), " 971508245915", 14155552671, 1.5, True, None, [], {}):
        reply = acme.post("/number-lookup", json={"phone_number": number})
        assert list(fields_of(reply)) == ["phone_number"], number
    misspelt = fields_of(acme.post("/number-lookup", json={"phone_numbr": NUMBER}))
    assert [*misspelt] == ["phone_numbr", "phone_number"], "not first what is missing"


def test_an_answer_is_no_older_than_the_query_or_else_the_body_says(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LOOKUPS, "scripted", lambda _: ScriptedLookup())
    remote = make_service(LOOKUP_PROVIDER="scripted", SANDBOX="false").tenant()
    fresh, minute = {"max_age": 0.0}, {"max_age": 60}  # JSON writes whole numbers so, too.
    sources = [
        remote.post(
            "/number-lookup", query_string=query, json={"phone_number": NUMBER, **body}
        ).json["meta"]["source"]
        for query, body in (({}, {}), ({}, {}), ({}, fresh), (minute, fresh), ({}, minute))
    ]
    assert sources == ["live", "cache", "live", "cache", "cache"]


def test_an_age_that_is_none_is_refused(acme: Tenant) -> None:
    for age in ("-1", "1.5", "1e3", "31536001", "9" * 5_000, "", " 1", "٣"):
        query = {"phone_number": NUMBER, "max_age": age}
        reply = acme.post("/number-lookup", query_string=query)
        assert fields_of(reply) == {"max_age": [NOT_AN_AGE]}, age
    for wrong in ("1", True, None, 1.5, -1, [], {}):
        reply = acme.post("/number-lookup", json={"phone_number": NUMBER, "max_age": wrong})
        assert list(fields_of(reply)) == ["max_age"], wrong
