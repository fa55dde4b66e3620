"""Every country of the world, its one region and its name."""

import re

import phonenumbers
import pytest

from domain.regions import REGIONS, country_name, is_country, regions_of

COUNTRIES = sorted(country for region in REGIONS.values() for country in region.countries)


def test_each_of_the_249_codes_of_iso_3166_and_xk_is_in_exactly_one_region() -> None:
    assert len(COUNTRIES) == len(set(COUNTRIES)) == 250
    assert all(re.fullmatch("[A-Z]{2}", country) for country in COUNTRIES)
    assert all(regions_of([each]) == [code] for code in REGIONS for each in REGIONS[code].countries)


def test_every_country_that_has_phone_numbers_is_known() -> None:
    # Ascension and Tristan da Cunha have numbers of their own, but in ISO 3166-1 they are SH.
    assert phonenumbers.SUPPORTED_REGIONS - {"AC", "TA"} <= set(COUNTRIES)


def test_the_countries_of_a_region_are_sorted() -> None:
    assert all(region.countries == sorted(region.countries) for region in REGIONS.values())


@pytest.mark.parametrize(
    ("region", "countries"),
    [
        ("EU", "RU SJ XK"),
        ("AF", "EG IO TF RE YT SH"),
        ("AS", "CY TR GE AM AZ KZ TL TW HK MO"),
        ("LA", "MX PR VI BV GS"),
        ("NA", "BM CA GL PM US"),
        ("OC", "CC CX HM NF UM AQ"),
    ],
)
def test_the_odd_cases_are_where_the_module_says(region: str, countries: str) -> None:
    assert all(regions_of([each]) == [region] for each in countries.split())


def test_the_regions_of_countries_come_once_each_in_the_order_of_the_regions() -> None:
    assert regions_of(["AU", "US", "DE", "CA", "FR"]) == ["EU", "NA", "OC"]
    assert regions_of(reversed(COUNTRIES)) == list(REGIONS)
    assert regions_of([]) == []


@pytest.mark.parametrize("code", ["", "de", "DE ", "DEU", "EU", "UK", "AN", "SU", "ZZ", "001"])
def test_what_is_no_country_is_told_apart_and_has_neither_region_nor_name(code: str) -> None:
    assert not is_country(code)
    with pytest.raises(KeyError):
        regions_of(["DE", code])
    with pytest.raises(KeyError):
        country_name(code)


def test_every_country_has_a_name_of_its_own() -> None:
    names = [country_name(country) for country in COUNTRIES]
    assert len(set(names)) == 250
    assert all(name.isprintable() and name == name.strip() for name in names)


NAMES = """
    CD DR Congo; CG Republic of the Congo; CI Côte d'Ivoire; CZ Czechia; GB United Kingdom
    KP North Korea; KR South Korea; MF Saint Martin; RU Russia; SX Sint Maarten; TR Türkiye
    US United States; VN Vietnam; XK Kosovo
"""


def test_a_country_goes_by_its_common_name() -> None:
    for line in NAMES.strip().replace("; ", "\n").splitlines():
        code, _, name = line.strip().partition(" ")
        assert country_name(code) == name
