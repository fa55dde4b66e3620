"""The demo catalogue: real places in every region, each kind of coverage, every sandbox fault."""

import csv
from pathlib import Path

import msgspec
import pytest

from app.adapters.lookups.mcc_mnc import SHIPPED
from app.cli.import_files import read_plan_file
from domain.catalogue.plan import CountryCoverage, SponsorProfile
from domain.regions import is_country, regions_of

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
