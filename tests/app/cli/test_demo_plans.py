"""The demo catalogue: real places in every region, each kind of coverage, every sandbox fault."""

import csv
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from app.adapters.lookups.mcc_mnc import SHIPPED
from app.cli.import_files import read_plan_file
from domain.catalogue.plan import CountryCoverage, SponsorProfile
from domain.money import CURRENCIES, format_amount, parse_amount
from domain.regions import REGIONS, is_country, regions_of

FILE = Path(__file__).parents[3] / "app" / "data" / "demo_plans.json"
SANDBOX = {
    "sandbox-no-endpoint",
    "sandbox-provider-error",
    "sandbox-no-esim",
    "sandbox-lost-reply",
    "sandbox-slow",
    "sandbox-unreachable",
}


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A plan as the file writes it; without `coverage_type`, which follows from the countries."""

    provider_plan_id: str
    name: str
    retail_price: str
    currency: str
    data_mb: int
    validity_days: int
    sponsor_profiles: list[SponsorProfile]
    coverage: list[CountryCoverage]
    cost: str | None = None

    @property
    def countries(self) -> list[str]:
        return [country.country_code for country in self.coverage]

    @property
    def kind(self) -> str:
        if len(self.coverage) == 1:
            return "local"
        return "regional" if len(regions_of(self.countries)) == 1 else "global"


class Catalogue(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    plans: list[Entry]


@pytest.fixture(scope="module")
def everything() -> list[Entry]:
    return msgspec.json.decode(FILE.read_bytes(), type=Catalogue).plans


@pytest.fixture(scope="module")
def offers(everything: list[Entry]) -> list[Entry]:
    return [plan for plan in everything if plan.provider_plan_id not in SANDBOX]


def test_the_import_reads_the_file_and_gives_each_plan_the_coverage_type_that_follows(
    everything: list[Entry],
) -> None:
    read = read_plan_file(FILE.read_bytes(), "USD")
    assert [(entry.terms.name, entry.terms.coverage_type) for entry in read] == [
        (plan.name, plan.kind) for plan in everything
    ]


def test_there_are_enough_offers_to_page_through_and_no_two_are_alike(
    everything: list[Entry], offers: list[Entry]
) -> None:
    assert len(offers) >= 25
    assert len({plan.provider_plan_id for plan in everything}) == len(everything)
    assert len({plan.name for plan in everything}) == len(everything)


def test_an_offer_tells_what_the_network_takes(offers: list[Entry]) -> None:
    assert all(
        0 < parse_amount(str(plan.cost)) < parse_amount(plan.retail_price) for plan in offers
    )


def test_every_region_has_a_local_and_a_regional_offer_and_is_part_of_a_global_one(
    offers: list[Entry],
) -> None:
    found = {(plan.kind, region) for plan in offers for region in regions_of(plan.countries)}
    assert found == {
        (kind, region) for kind in ("local", "regional", "global") for region in REGIONS
    }


def test_what_calls_itself_global_spans_every_region(offers: list[Entry]) -> None:
    worldwide = [plan for plan in offers if plan.name.startswith("Global ")]
    assert worldwide
    assert all(regions_of(plan.countries) == list(REGIONS) for plan in worldwide)


def test_what_carries_the_name_of_a_region_stays_in_it(offers: list[Entry]) -> None:
    labels = {region.label: code for code, region in REGIONS.items()}
    named = {
        plan.name: (labels[place], regions_of(plan.countries))
        for plan in offers
        if (place := plan.name.rpartition(" ")[0].rpartition(" ")[0]) in labels
    }
    assert {code for code, _ in named.values()} >= {"EU", "AF", "AS", "NA", "OC"}
    assert all(found == [code] for code, found in named.values())


def test_every_country_is_known_and_stands_once_in_a_plan_each_operator_once_in_a_country(
    everything: list[Entry],
) -> None:
    for plan in everything:
        assert all(is_country(code) for code in plan.countries), plan.name
        assert plan.countries == sorted(set(plan.countries)), plan.name
        for country in plan.coverage:
            names = [operator.name for operator in country.operators]
            assert names, (plan.name, country.country_code)
            assert len(set(names)) == len(names), (plan.name, country.country_code)


def test_an_operator_has_the_same_network_types_in_every_plan(everything: list[Entry]) -> None:
    networks = {
        (country.country_code, operator.name, tuple(operator.network_types))
        for plan in everything
        for country in plan.coverage
        for operator in country.operators
    }
    assert max(Counter((code, name) for code, name, _ in networks).values()) == 1
    assert {types for _, _, types in networks} <= {
        ("4G",),
        ("3G", "4G"),
        ("4G", "5G"),
        ("3G", "4G", "5G"),
    }


def test_operators_are_spelled_as_in_the_shipped_table_of_networks(offers: list[Entry]) -> None:
    with SHIPPED.open(encoding="utf-8", newline="") as lines:
        known = {(row["country_code"], row["network"]) for row in csv.DictReader(lines)}
    listed = {code for code, _ in known}
    unknown = [
        (country.country_code, operator.name)
        for plan in offers
        for country in plan.coverage
        for operator in country.operators
        if country.country_code in listed and (country.country_code, operator.name) not in known
    ]
    assert not unknown


def test_prices_are_amounts_as_the_service_writes_them_in_the_default_currency(
    everything: list[Entry],
) -> None:
    for plan in everything:
        assert parse_amount(plan.retail_price) > 0, plan.name
        assert format_amount(parse_amount(plan.retail_price)) == plan.retail_price, plan.name
    assert {plan.currency for plan in everything} == {"USD"} <= CURRENCIES


def test_data_and_validity_are_positive_and_a_part_of_a_gigabyte_occurs(
    everything: list[Entry],
) -> None:
    assert all(plan.data_mb >= 1 and plan.validity_days >= 1 for plan in everything)
    assert any(plan.data_mb % 1000 for plan in everything)


def test_three_sponsor_profiles_carry_offers_some_of_which_have_several(
    offers: list[Entry],
) -> None:
    profiles = {profile for plan in offers for profile in plan.sponsor_profiles}
    assert {profile.id for profile in profiles} == {"sp-atlas", "sp-boreal", "sp-cirrus"}
    assert len(profiles) == 3, "one profile has two names or two colors"
    assert all(re.fullmatch("#[0-9A-F]{6}", profile.color) for profile in profiles)
    assert {len(plan.sponsor_profiles) for plan in offers} >= {1, 2}


def test_each_sandbox_fault_has_one_plan_that_says_so_and_fits_every_link_of_the_demo(
    everything: list[Entry], offers: list[Entry]
) -> None:
    profiles = {profile for plan in offers for profile in plan.sponsor_profiles}
    faults = [plan for plan in everything if plan.provider_plan_id in SANDBOX]
    assert {plan.provider_plan_id for plan in faults} == SANDBOX
    for plan in faults:
        assert plan.name.startswith("Sandbox: ")
        assert plan.retail_price == "1.00"
        assert set(plan.sponsor_profiles) == profiles
    assert not [plan.name for plan in offers if plan.name.startswith("Sandbox")]


def test_real_operators_are_not_named_in_the_sandbox(everything: list[Entry]) -> None:
    assert {
        operator.name
        for plan in everything
        if plan.provider_plan_id in SANDBOX
        for country in plan.coverage
        for operator in country.operators
    } == {"Sandbox Mobile"}
