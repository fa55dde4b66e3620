"""A single lookup: one number in, what is known of it out, and its charge."""

from dataclasses import replace
from typing import Any

import pytest

from app.bootstrap.providers import LOOKUPS
from app.http.lookups.input import NOT_AN_AGE, NOT_E164
from domain.accounts.organization import Organization
from domain.lookups.in_flight import InFlight
from domain.provider_errors import NotAnswered, Unavailable
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.contracts.scripted_lookup import ScriptedLookup

pytestmark = pytest.mark.any_database

NUMBER = "+971508245915"


def test_the_answer_has_the_known_fields_and_no_other(acme: Tenant) -> None:
    reply = acme.look_up(NUMBER)
    assert reply.status_code == 200
    data = reply.json["data"]
    assert data.keys() == {"phone_number", "country_code", "national_format", "valid", "carrier"}
    assert data["phone_number"] == NUMBER
    assert data["country_code"] == "AE"
    assert data["valid"] is True
    assert data["carrier"].keys() <= {"name", "type", "mcc", "mnc"}
    assert data["carrier"]["type"] == "mobile"


def test_meta_says_where_the_answer_came_from_and_what_it_cost(service: Service) -> None:
    tenant = service.tenant()
    first, second = tenant.look_up(NUMBER).json["meta"], tenant.look_up(NUMBER).json["meta"]
    assert (first["source"], second["source"]) == ("live", "live")
    assert first["as_of"] < second["as_of"]
    assert first["provider"] == second["provider"] == "offline"
    assert first["lookup_id"] != second["lookup_id"]
    charges = tenant.transactions(kind="lookup")
    assert [charge["id"] for charge in charges] == [
        second["charge"]["transaction_id"],
        first["charge"]["transaction_id"],
    ]
    assert first["charge"]["amount"] == "0.005"
    assert first["charge"]["currency"] == "USD"
    assert charges[1]["reference"] == {"type": "lookup", "id": first["lookup_id"]}
    assert tenant.balance() == "99.99"


def test_a_number_that_cannot_exist_is_an_answer_and_is_charged(service: Service) -> None:
    tenant = service.tenant()
    reply = tenant.look_up("+9991234567")
    assert reply.status_code == 200
    assert reply.json["data"] == {"phone_number": "+9991234567", "valid": False}
    assert reply.json["meta"]["charge"]["amount"] == "0.005"


@pytest.mark.parametrize("query", ["%2B971508245915", "+971508245915", "%20971508245915"])
def test_a_plus_may_arrive_as_a_space(acme: Tenant, query: str) -> None:
    reply = acme.post(f"/number-lookup?phone_number={query}")
    assert reply.json["data"]["phone_number"] == NUMBER


def test_the_number_may_stand_in_the_body(acme: Tenant) -> None:
    reply = acme.post("/number-lookup", json={"phone_number": NUMBER})
    assert reply.json["data"]["phone_number"] == NUMBER


@pytest.mark.parametrize("other", ["+14155552671", "garbage", 3, None])
def test_the_query_wins_over_the_body(acme: Tenant, other: object) -> None:
    body = {"phone_number": other}
    reply = acme.post("/number-lookup", query_string={"phone_number": NUMBER}, json=body)
    assert reply.json["data"]["phone_number"] == NUMBER


WRONG = [
    "",
    "971508245915",
    "+0971508245915",
    "+1",
    "+1234567890123456",
    "+97150824591a",
    "+971 508245915",
    "+971508245915 ",
    "+971508245915\n",
    "++971508245915",
    "  971508245915",
    "+٩٧١٥٠٨٢٤٥٩١٥",
    "+971508245915\0",
    "tel:+971508245915",
]


def test_a_number_off_the_pattern_is_refused(acme: Tenant) -> None:
    for number in WRONG:
        assert fields_of(acme.look_up(number)) == {"phone_number": [NOT_E164]}, number


def test_a_body_is_read_strictly(acme: Tenant) -> None:
    for number in (*WRONG, " 971508245915", 14155552671, 1.5, True, None, [], {}):
        reply = acme.post("/number-lookup", json={"phone_number": number})
        assert list(fields_of(reply)) == ["phone_number"], number


def test_a_missing_number_is_named(acme: Tenant) -> None:
    missing = {"phone_number": ["Missing data for required field."]}
    assert fields_of(acme.post("/number-lookup")) == missing
    assert fields_of(acme.post("/number-lookup", json={})) == missing


def test_a_number_under_another_name_is_told_as_unknown_and_missing(acme: Tenant) -> None:
    told = fields_of(acme.post("/number-lookup", json={"number": NUMBER}))
    assert told == {
        "number": ["Unknown field."],
        "phone_number": ["Missing data for required field."],
    }
    with_query = acme.post(
        "/number-lookup", query_string={"phone_number": NUMBER}, json={"number": NUMBER}
    )
    assert list(fields_of(with_query)) == ["number"]


def test_two_numbers_are_refused(acme: Tenant) -> None:
    path = "/number-lookup?phone_number=%2B971508245915&phone_number=%2B14155552671"
    assert list(fields_of(acme.post(path))) == ["phone_number"]


def test_without_a_wallet_a_paid_lookup_is_refused(service: Service) -> None:
    reply = service.tenant(balance=None).look_up(NUMBER)
    assert (reply.status_code, code_of(reply)) == (403, "BILLING_NOT_CONFIGURED")


def test_a_balance_that_is_too_small_is_told(service: Service) -> None:
    reply = service.tenant(balance="0.004").look_up(NUMBER)
    assert (reply.status_code, code_of(reply)) == (402, "INSUFFICIENT_BALANCE")
    assert reply.json["error"]["details"] == {
        "required": "0.005",
        "available": "0.004",
        "currency": "USD",
    }


def test_the_last_cent_can_be_spent(service: Service) -> None:
    tenant = service.tenant(balance="0.01")
    assert [tenant.look_up(NUMBER).status_code for _ in range(3)] == [200, 200, 402]
    assert tenant.balance() == "0.00"


def test_an_own_price_comes_first(service: Service) -> None:
    assert service.tenant(price="0.25").look_up(NUMBER).json["meta"]["charge"]["amount"] == "0.25"


@pytest.mark.parametrize("balance", [None, "1.00"])
def test_at_price_zero_nothing_is_charged(service: Service, balance: str | None) -> None:
    tenant = service.tenant(balance, price="0")
    reply = tenant.look_up(NUMBER)
    assert reply.status_code == 200
    assert "charge" not in reply.json["meta"]
    assert tenant.transactions(kind="lookup") == []


def test_a_lookup_that_is_off_for_the_organization_is_refused(service: Service) -> None:
    tenant = service.tenant()

    def switch(organization: Organization) -> None:
        organization.switch_lookup(service.cause(), enabled=False)

    tenant.change(switch)
    service.until(lambda: tenant.look_up(NUMBER).status_code == 403)
    assert code_of(tenant.look_up(NUMBER)) == "NUMBER_LOOKUP_DISABLED"


def test_a_lookup_that_is_off_for_everybody_is_refused(make_service: MakeService) -> None:
    tenant = make_service(NUMBER_LOOKUP_ENABLED="false").tenant()
    assert code_of(tenant.look_up(NUMBER)) == "NUMBER_LOOKUP_DISABLED"
    assert code_of(tenant.create_job([NUMBER])) == "NUMBER_LOOKUP_DISABLED"


def test_one_organization_never_learns_what_another_asked(service: Service) -> None:
    service.tenant().look_up(NUMBER)
    assert service.tenant().look_up(NUMBER).json["meta"]["source"] == "live"


def test_too_many_paid_lookups_at_once_are_a_429(make_service: MakeService) -> None:
    service = make_service()
    parts = service.container
    parts.single_lookup = replace(parts.single_lookup, in_flight=InFlight(limit=0, wait_s=0))
    reply = service.tenant().look_up(NUMBER)
    assert (reply.status_code, code_of(reply)) == (429, "RATE_LIMITED")
    assert reply.json["error"]["details"] == {"retryable": True}
    assert reply.headers["Retry-After"] == "1"


@pytest.fixture
def remote(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> Tenant:
    """An organization whose provider is remote, so that answers are kept."""
    monkeypatch.setitem(LOOKUPS, "scripted", lambda _: ScriptedLookup())
    return make_service(LOOKUP_PROVIDER="scripted", SANDBOX="false").tenant()


@pytest.mark.parametrize(("error", "retryable"), [(NotAnswered, False), (Unavailable, True)])
def test_what_no_provider_knows_is_not_worth_another_try(
    make_service: MakeService,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    *,
    retryable: bool,
) -> None:
    class Silent(ScriptedLookup):
        def look_up(self, *_: object) -> Any:
            raise error

    monkeypatch.setitem(LOOKUPS, "scripted", lambda _: Silent())
    tenant = make_service(LOOKUP_PROVIDER="scripted", SANDBOX="false").tenant()
    reply = tenant.look_up(NUMBER)
    assert (reply.status_code, code_of(reply)) == (503, "NUMBER_LOOKUP_UNAVAILABLE")
    assert reply.json["error"]["details"] == {"retryable": retryable}
    assert ("Retry-After" in reply.headers) is retryable
    assert ("no data" in reply.json["error"]["message"]) is not retryable
    assert tenant.balance() == "100.00"


def test_an_answer_of_the_cache_may_not_be_older_than_asked_for(remote: Tenant) -> None:
    def ask(**query: Any) -> Any:
        query = {"phone_number": NUMBER, **query}
        return remote.post("/number-lookup", query_string=query).json["meta"]

    metas = [ask(), ask(), ask(max_age=60), ask(max_age=0)]
    assert [each["source"] for each in metas] == ["live", "cache", "cache", "live"]
    assert [each["provider"] for each in metas] == ["scripted"] * 4
    in_body = {"phone_number": NUMBER, "max_age": 0.0}  # A whole number, as JSON writes it.
    assert remote.post("/number-lookup", json=in_body).json["meta"]["source"] == "live"
    both = {"query_string": {"max_age": 60}, "json": in_body}
    assert remote.post("/number-lookup", **both).json["meta"]["source"] == "cache"
    assert remote.balance() == "99.97"


def test_a_repeated_request_gets_its_first_answer_whatever_its_age(remote: Tenant) -> None:
    key = {"Idempotency-Key": "key-1"}
    first, again = (
        remote.post(
            "/number-lookup", json={"phone_number": NUMBER, "max_age": age}, headers=key
        ).json
        for age in (0, 1)
    )
    assert again["meta"]["lookup_id"] == first["meta"]["lookup_id"]


def test_an_age_that_is_none_is_refused(acme: Tenant) -> None:
    for age in ("-1", "1.5", "1e3", "31536001", "9" * 5_000, "", " 1", "٣"):
        query = {"phone_number": NUMBER, "max_age": age}
        reply = acme.post("/number-lookup", query_string=query)
        assert fields_of(reply) == {"max_age": [NOT_AN_AGE]}, age
    for wrong in ("1", True, None, 1.5, -1, [], {}):
        reply = acme.post("/number-lookup", json={"phone_number": NUMBER, "max_age": wrong})
        assert list(fields_of(reply)) == ["max_age"], wrong
