"""A plan file is read whole, or refused with a line for every mistake in it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from app.cli import import_files
from app.cli.import_files import read_plan_file
from domain.catalogue.commands import PlanEntry
from domain.catalogue.file_errors import FileRefused
from domain.cost import Cost
from tests.plan_files import covering, plan, profile, written

ID = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"
OWNER = "0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60"
TEXT = "must be text of 1 to 255 printable characters, no space around it"
AMOUNT = 'must be a string with at most six decimals, such as "4.50"'
COUNTRY = "must be a country code of ISO 3166-1 alpha-2 (or XK), such as DE"
UNREADABLE = "is not JSON that can be read:"


def one(**changes: Any) -> PlanEntry:
    (entry,) = read_plan_file(written(plan(**changes)), "USD")
    return entry


def lines(data: bytes) -> list[str]:
    with pytest.raises(FileRefused) as refused:
        read_plan_file(data, "USD")
    assert str(refused.value).splitlines() == refused.value.lines
    return refused.value.lines


@pytest.mark.parametrize("absent", [None, ...], ids=["null", "absent"])
def test_what_may_be_absent_may_be_null(absent: Any) -> None:
    optional = ["id", "provider_plan_id", "organization_id", "excluded_organizations", "enabled"]
    entry = one(**dict.fromkeys([*optional, "coverage_type"], absent))
    assert (entry.id, entry.organization_id, entry.excluded, entry.enabled) == (None,) * 4
    assert (entry.terms.provider_plan_id, entry.terms.coverage_type) == (None, "local")


def test_a_cost_is_in_the_currency_of_the_installation_unless_it_names_one() -> None:
    assert one(cost="2.10").terms.cost == Cost(2_100_000, "USD")
    assert one(cost="9.99", cost_currency="EUR").terms.cost == Cost(9_990_000, "EUR")
    assert one(cost="0").terms.cost == Cost(0, "USD")
    assert one().terms.cost is None


def test_a_whole_number_may_be_written_with_a_point() -> None:
    terms = one(data_mb=725.0, validity_days=30.0).terms
    assert (repr(terms.data_mb), repr(terms.validity_days)) == ("725", "30")


def test_a_plan_without_a_network_is_of_the_first_one() -> None:
    assert one().terms.network == one(network="simulated").terms.network is None
    named = [plan("A"), plan("B", network="simulated"), plan("C", network="far")]
    networks = [
        each.terms.network for each in read_plan_file(written(*named), "USD", ["far", "simulated"])
    ]
    assert networks == ["far", None, "far"]


def test_a_price_below_the_cost_must_be_allowed() -> None:
    cheap = written(plan("Cheap", retail_price="4.499999", cost="4.50"))
    told = "is below the cost of 4.50 USD; --below-cost allows that"
    assert lines(cheap) == [f'plans[0] "Cheap": retail_price: {told}']
    assert read_plan_file(cheap, "USD", below_cost=True)
    assert one(retail_price="4.50", cost="4.50").terms.cost
    # There is no rate by which two currencies could be compared.
    assert one(retail_price="4.50", cost="5.00", cost_currency="EUR").terms.cost


def test_an_empty_file_and_a_byte_order_mark_are_fine() -> None:
    assert read_plan_file(written(), "USD") == []
    assert read_plan_file(b"\xef\xbb\xbf" + written(), "USD") == []


WRONG: list[tuple[str, Any, str]] = [
    *[
        (name, value, TEXT)
        for name in ("name", "provider_plan_id")
        for value in ("", " ", "n" * 256, "a ", "\ta", "a\nb", "a\u2028b", "\ud800", "\0", 5, [])
    ],
    ("name", None, TEXT),
    *[("cost", value, AMOUNT) for value in ("-1", 2.1, "")],
    *[
        ("cost_currency", value, "must be a currency code of ISO 4217, such as EUR")
        for value in ("eur", "EURO", "", 1, ["EUR"])
    ],
    ("cost_currency", "EUR", "needs a cost beside it"),
    *[("network", value, "must be one of: simulated") for value in ("far", "", 1)],
    *[
        ("retail_price", value, AMOUNT)
        for value in ("-1", "1e3", "0.0000001", "", " 1", "1,5", "\u0661", "1" * 13, 4.5, 4)
    ],
    *[
        (name, value, f"must be a whole number from 1 to {highest}")
        for name, highest in (("data_mb", 10**9), ("validity_days", 3650))
        for value in (0, -1, highest + 1, 1.5, "1", True, None, 10**30)
    ],
    *[
        ("currency", value, "must be USD, the currency of this installation")
        for value in ("EUR", "usd", "", 1, None)
    ],
    *[
        ("coverage_type", value, "must be one of: local, regional, global")
        for value in ("Local", "world", "", 1, [])
    ],
    *[
        (name, value, "must be a UUID")
        for name in ("id", "organization_id")
        for value in ("1", "", ID.replace("-", ""), f"{{{ID}}}", f"urn:uuid:{ID}", 7, [ID])
    ],
    ("enabled", "yes", "must be true or false"),
    ("enabled", 1, "must be true or false"),
    ("excluded_organizations", ID, "must be a list"),
    ("excluded_organizations", {}, "must be a list"),
    ("sponsor_profiles", None, "must be a list"),
    ("sponsor_profiles", profile(), "must be a list"),
    ("coverage", [], "must have at least one country"),
    ("coverage", "DE", "must be a list"),
    ("colour", "red", "is unknown"),
    ("data_gb", 1, "is unknown"),
]


def test_a_wrong_member_is_named_with_its_plan_and_its_rule() -> None:
    for member, value, why in WRONG:
        wrong = plan("Europe 5 GB", **{member: value})
        place = "plans[1]" if member == "name" else 'plans[1] "Europe 5 GB"'
        assert lines(written(plan(), wrong)) == [f"{place}: {member}: {why}"], value


def test_a_missing_member_is_named() -> None:
    for member in plan(provider_plan_id=...):
        place = "plans[0]" if member == "name" else 'plans[0] "Germany 1 GB"'
        assert lines(written(plan(**{member: ...}))) == [f"{place}: {member}: is missing"]


OPERATOR = "coverage[0].operators[0]"


def operator(**changes: Any) -> list[dict[str, Any]]:
    [country] = covering("DE")
    return [country | {"operators": [{"name": "A", "network_types": ["4G"]} | changes]}]


WITHIN: list[tuple[str, Any, str, str]] = [
    ("coverage", covering("DE", "UK"), "coverage[1].country_code", COUNTRY),
    ("coverage", covering("de"), "coverage[0].country_code", COUNTRY),
    ("coverage", [{"country_code": 49, "operators": []}], "coverage[0].country_code", COUNTRY),
    ("coverage", ["DE"], "coverage[0]", "must be an object"),
    ("coverage", [{"country_code": "DE"}], "coverage[0].operators", "is missing"),
    ("coverage", operator(name=""), f"{OPERATOR}.name", TEXT),
    ("coverage", operator(mnc="01"), f"{OPERATOR}.mnc", "is unknown"),
    ("coverage", operator(network_types="5G"), f"{OPERATOR}.network_types", "must be a list"),
    ("coverage", operator(network_types=["4G", 5]), f"{OPERATOR}.network_types[1]", TEXT),
    (
        *("coverage", covering("DE", "FR", "DE"), "coverage[2].country_code"),
        "is the same as coverage[0].country_code",
    ),
    ("sponsor_profiles", [profile() | {"color": ""}], "sponsor_profiles[0].color", TEXT),
    ("sponsor_profiles", [profile() | {"id": 1}], "sponsor_profiles[0].id", TEXT),
    (
        *("sponsor_profiles", [profile("a"), profile("b"), profile("b")], "sponsor_profiles[2].id"),
        "is the same as sponsor_profiles[1].id",
    ),
    ("excluded_organizations", [OWNER, "x"], "excluded_organizations[1]", "must be a UUID"),
    ("two words\n", 1, r"'two words\n'", "is unknown"),
    ("é" * 100, 1, repr("é" * 60), "is unknown"),
]


def test_a_mistake_deep_inside_is_named_by_its_path() -> None:
    for member, value, where, why in WITHIN:
        found = lines(written(plan(**{member: value})))
        assert found == [f'plans[0] "Germany 1 GB": {where}: {why}']


def test_only_a_global_plan_excludes_organizations() -> None:
    owned = plan(organization_id=OWNER, excluded_organizations=[ID])
    why = "must be empty beside an organization_id, since nobody else sees the plan"
    assert lines(written(owned)) == [f'plans[0] "Germany 1 GB": excluded_organizations: {why}']
    assert one(organization_id=OWNER, excluded_organizations=[]).excluded == []


def test_every_mistake_of_every_plan_is_told_at_once() -> None:
    broken = [
        plan("A", data_mb=0, retail_price="free", coverage=covering("DE", "UK", "XX")),
        plan("B"),
        7,
        plan("C", currency="EUR", extra=1, coverage=operator(name="", network_types=[""])),
        plan(
            "D",
            coverage=covering("DE", "DE"),
            sponsor_profiles=[profile(), profile()],
            organization_id=OWNER,
            excluded_organizations=[ID],
        ),
    ]
    assert [line.rpartition(": ")[0] for line in lines(written(*broken))] == [
        'plans[0] "A": retail_price',
        'plans[0] "A": data_mb',
        'plans[0] "A": coverage[1].country_code',
        'plans[0] "A": coverage[2].country_code',
        "plans[2]",
        'plans[3] "C": coverage[0].operators[0].name',
        'plans[3] "C": coverage[0].operators[0].network_types[0]',
        'plans[3] "C": currency',
        'plans[3] "C": extra',
        'plans[4] "D": coverage[1].country_code',
        'plans[4] "D": sponsor_profiles[1].id',
        'plans[4] "D": excluded_organizations',
    ]


def test_a_file_that_is_none_is_refused_in_one_line() -> None:
    for data, why in (
        (b"", "is not JSON: Expecting value at line 1 column 1"),
        (b'{"plans":\n [,]}', "is not JSON: Expecting value at line 2 column 3"),
        (b'{"plans": [NaN]}', f"{UNREADABLE} NaN is no number"),
        (b"[" * 100_000, f"{UNREADABLE} it is too deep"),
        (b"\xff{}", "is not UTF-8: see byte 0"),
        (b"[]", "must be an object"),
        (b'"plans"', "must be an object"),
        (b"{}", "plans: is missing"),
        (b'{"plans": {}}', "plans: must be a list"),
        (b'{"plans": null}', "plans: must be a list"),
        (b'{"plans": [], "version": 1}', "version: is unknown"),
        (b'{"plans": [], "plans": []}', f"{UNREADABLE} 'plans' stands twice in one object"),
    ):
        assert lines(data) == [why], data[:30]


def test_a_member_that_comes_twice_is_named_wherever_it_stands() -> None:
    deep = json.dumps(plan()).replace('"color"', '"color": "red", "color"')
    data = b'{"plans": [%s, %s]}' % (json.dumps(plan()).encode(), deep.encode())
    assert lines(data) == [f"{UNREADABLE} 'color' stands twice in one object"]


def test_more_digits_than_anybody_needs_are_refused() -> None:
    (line,) = lines(b'{"plans": [' + b"1" * 5_000 + b"]}")
    assert line.startswith(UNREADABLE)


def test_more_plans_or_bytes_than_one_import_takes_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_files, "PLANS_MAX", 2)
    assert len(read_plan_file(written(plan(), plan()), "USD")) == 2
    assert "must be at most 2" in lines(written(plan(), plan(), plan()))[0]
    monkeypatch.setattr(import_files, "FILE_BYTES_MAX", 10)
    assert lines(written()) == ["is larger than 10 bytes"]


def test_prices_to_come_and_none_yet_are_told_by_a_file() -> None:
    prices = [
        {"from": "2027-01-01T00:00:00+01:00", "retail_price": "5.00"},
        {"from": "2027-02-01T00:00:00Z", "retail_price": "4.75"},
    ]
    later = one(later_prices=prices).terms.later_prices
    assert later is not None
    assert [each.retail_price_micros for each in later] == [5_000_000, 4_750_000]
    assert later[0].starts_at == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert one(later_prices=[]).terms.later_prices is None
    entry = one(retail_price=None, enabled=False, cost="4.00")
    assert (entry.terms.unpriced, entry.terms.retail_price_micros) == (True, 0)
    order = "must be in the order of time, each once"
    wrong = written(plan("A", later_prices=prices[::-1]), plan("B", later_prices=prices[:1] * 2))
    assert lines(wrong) == [
        f'plans[{i}] "{name}": later_prices: {order}' for i, name in enumerate("AB")
    ]
    cheap = written(plan("A", later_prices=prices, cost="4.80", retail_price="4.80"))
    (told,) = lines(cheap)
    assert told.startswith('plans[0] "A": later_prices[1].retail_price: is below the cost')
    nothing = "is needed for a plan that is enabled or has prices to come"
    for more in ({"enabled": True}, {"enabled": False, "later_prices": prices}):
        refused = lines(written(plan("A", retail_price=None, **more)))
        assert refused == [f'plans[0] "A": retail_price: {nothing}']
    for value in ("2027-01-01T00:00:00", "9999-12-31T23:59:59-05:00", "soon", 1, None):
        (told,) = lines(written(plan("A", later_prices=[{**prices[0], "from": value}])))
        assert "later_prices[0].from: must be a time with its offset" in told
