"""The catalogue as read: what is there, in which order, and what filters find."""

from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from typing import Any
from uuid import uuid4

import pytest

from domain.catalogue.plan import COVERAGE_TYPES
from domain.money import MICROS
from domain.regions import REGIONS, country_name, regions_of
from projections.models.plans import SORTS, PlanFilter, PlanRow
from tests.installation import Process, SetClock
from tests.plan_files import covering, import_plans, plan, profile
from tests.projections.looking import statements

pytestmark = pytest.mark.each_database

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ALL = PlanFilter(NOW)
STRANGER = uuid4()
ONE_IN = 97  # Of all combinations of filters, so few that any two values still come together.


def page(
    process: Process, wanted: PlanFilter = ALL, offset: int = 0, limit: int = 100
) -> tuple[list[PlanRow], int]:
    return process.ask(process.plans.page, STRANGER, wanted, slice(offset, offset + limit))


def test_plans_come_by_name_in_the_order_of_bytes_then_by_id(process: Process) -> None:
    called = [*"baBA_Äéz9\U0001f30d\uff21", "a b", "a-b", "10"]
    same = [plan("twin", id=str(uuid4())) for _ in range(5)]
    import_plans(process, *(plan(name, provider_plan_id=None) for name in called), *same)
    found, _ = page(process)
    expected = sorted([*called, *["twin"] * 5], key=str.encode)
    assert [row.terms.name for row in found] == expected
    twins = [str(row.id) for row in found if row.terms.name == "twin"]
    assert twins == sorted(twins)
    with process.views.reading() as connection:
        assert process.plans.all(connection) == found
        assert process.plans.compatible(connection, STRANGER, ALL, None) == found


@pytest.mark.parametrize(
    "wanted", [ALL, PlanFilter(NOW, region="EU"), PlanFilter(NOW, search="0", sort="price")]
)
def test_pages_neither_repeat_nor_skip(process: Process, wanted: PlanFilter) -> None:
    """All cost the same, so a sort by price leaves the order to the names."""
    import_plans(process, *(plan(f"{n % 4} 0", id=str(uuid4())) for n in range(13)))
    pages = [page(process, wanted, offset, 3) for offset in range(0, 18, 3)]
    assert {total for _, total in pages} == {13}
    found = [(row.terms.name, str(row.id)) for each, _ in pages for row in each]
    assert found == sorted(set(found))
    assert len(found) == 13
    assert page(process, wanted, 10**12, 3) == ([], 13)


NAMES = {
    "percent": "100% Europe",
    "underscore": "snake_case",
    "backslash": "back\\slash",
    "street": "Große Straße",
    "accent": "Über",
}
FOUND: dict[str, set[str]] = {
    "%": {"percent"},
    "0% e": {"percent"},
    "1%E": set(),
    "_": {"underscore"},
    "snakeXcase": set(),
    "\\": {"backslash"},
    "STRASSE": {"street"},
    "U\u0308BER": {"accent"},
    "SOLD-AS-BACK": {"backslash"},
    "';--": set(),
    "germany": set(NAMES),
    "": set(NAMES),
}


def test_a_part_of_a_text_finds_its_plan_and_no_other(process: Process) -> None:
    import_plans(
        process, *(plan(name, provider_plan_id=f"sold-as-{k}") for k, name in NAMES.items())
    )
    called = {name: key for key, name in NAMES.items()}

    def find(text: str) -> set[str]:
        rows, total = page(process, PlanFilter(NOW, search=text))
        assert total == len(rows)
        return {called[row.terms.name] for row in rows}

    assert {text: find(text) for text in FOUND} == FOUND
    one = page(process)[0][0]
    assert page(process, PlanFilter(NOW, search=str(one.id).upper())) == ([one], 1)


def test_plans_stand_by_the_price_that_holds(process: Process, clock: SetClock) -> None:
    """Those that cost the same stand by name, whichever way the prices go."""
    for name, price in {"d": "2.00", "b": "1.00", "c": "2.00", "a": "3.00"}.items():
        import_plans(process, plan(name, retail_price=price))
    (dear,) = (row.id for row in page(process)[0] if row.terms.name == "a")
    later, cause = clock.now + timedelta(hours=1), process.cause()
    process.catalogue.change(dear, lambda it: it.price(MICROS // 2, cause, starts_at=later))

    def listed(moment: datetime, **wanted: Any) -> list[str]:
        rows, total = page(process, PlanFilter(moment, **wanted))
        assert total == len(rows)
        return [f"{row.terms.name} {_price(row) / MICROS}" for row in rows]

    before = later - timedelta(microseconds=1)
    assert listed(before, sort="price") == ["b 1.0", "c 2.0", "d 2.0", "a 3.0"]
    assert listed(before, sort="-price") == ["a 3.0", "c 2.0", "d 2.0", "b 1.0"]
    assert listed(later, sort="price") == ["a 0.5", "b 1.0", "c 2.0", "d 2.0"]
    assert listed(before, max_price=2 * MICROS) == ["b 1.0", "c 2.0", "d 2.0"]
    assert listed(before, max_price=2 * MICROS - 1, sort="-name") == ["b 1.0"]
    assert listed(later, max_price=MICROS, sort="-name") == ["b 1.0", "a 0.5"]
    assert listed(later, max_price=0) == []


@pytest.mark.slow
def test_all_filters_can_be_combined(process: Process) -> None:
    codes = [region.countries[0] for region in REGIONS.values()]
    pairs = [(a, b) for a in codes for b in codes if a < b]
    for index, countries in enumerate([*((code,) for code in codes), *pairs]):
        more = {"sponsor_profiles": [profile(f"sp-{index % 3}")], "retail_price": f"{index % 5}.50"}
        import_plans(process, plan(" ".join(countries), coverage=covering(*countries), **more))
    everything, _ = page(process)
    countries = [None, *(region.countries[0] for region in REGIONS.values()), "VU"]
    regions, sponsors = (None, "EU", "OC"), (None, "sp-0", "Profile sp-0", "nobody")
    texts, prices = ("", "us", "LAND", "nothing"), (None, 1_500_000)
    axes = (regions, countries, (None, *COVERAGE_TYPES), sponsors, texts, prices, SORTS)
    chosen = [*product(*axes)][::ONE_IN]
    for one, other in combinations(range(len(axes)), 2):  # Any two values come together.
        pairs = {(each[one], each[other]) for each in chosen}
        assert pairs == {*product(axes[one], axes[other])}
    for each in chosen:
        wanted = PlanFilter(NOW, *each)
        found, total = page(process, wanted)
        expected = [row for row in everything if _matches(row, wanted)]
        key = _price if "price" in wanted.sort else _name
        expected.sort(key=key, reverse=wanted.sort[0] == "-")
        assert (found, total) == (expected, len(expected)), wanted


def _matches(row: PlanRow, wanted: PlanFilter) -> bool:
    codes = [each.country_code for each in row.terms.coverage]
    sponsors = {text for each in row.terms.sponsor_profiles for text in (each.id, each.name)}
    texts = (row.terms.name, str(row.id), row.terms.provider_plan_id, *map(country_name, codes))
    return (
        (wanted.region is None or wanted.region in regions_of(codes))
        and (wanted.country is None or wanted.country in codes)
        and wanted.coverage_type in {None, row.terms.coverage_type}
        and (wanted.sponsor_profile is None or wanted.sponsor_profile in sponsors)
        and any(wanted.search.lower() in each.lower() for each in texts if each)
        and (wanted.max_price is None or _price(row) <= wanted.max_price)
    )


def _price(row: PlanRow) -> int:
    return row.terms.retail_price_micros


def _name(row: PlanRow) -> str:
    return row.terms.name


def test_a_read_takes_a_few_statements_however_many_plans(process: Process) -> None:
    owner = process.organization("")
    import_plans(process, *(plan(f"{n}", excluded_organizations=[str(owner)]) for n in range(60)))
    ids = [row.id for row in page(process, limit=100)[0]]
    plans, everything = process.plans, PlanFilter(NOW, "EU", "DE", "local", "sp-1")
    dearest = everything._replace(search="5", max_price=9_000_000, sort="-price")
    with process.views.reading() as connection:
        asked = {
            "page": lambda: plans.page(connection, STRANGER, everything, slice(0, 60)),
            "scan": lambda: plans.page(connection, STRANGER, dearest, slice(0, 60)),
            "by_id": lambda: plans.by_id(connection, ids),
            "compatible": lambda: plans.compatible(connection, STRANGER, ALL, "sp-1"),
            "all": lambda: plans.all(connection),
            "keys": lambda: plans.keys(connection),
        }
        counts = {name: len(statements(process, it)) for name, it in asked.items()}
    assert counts == dict.fromkeys(asked, 1) | {"page": 3, "scan": 2, "compatible": 2}
