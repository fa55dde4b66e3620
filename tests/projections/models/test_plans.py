"""The catalogue as read: what is there, in which order, and what filters find."""

from itertools import combinations, product
from uuid import uuid4

import pytest

from domain.catalogue.plan import COVERAGE_TYPES
from domain.regions import REGIONS, regions_of
from projections.models.plans import PlanFilter, PlanRow
from tests.installation import Process
from tests.plan_files import covering, import_plans, plan, profile
from tests.projections.looking import statements

ALL = PlanFilter()
STRANGER = uuid4()
ONE_IN = 7  # Of all combinations of filters, so few that any two values still come together.


def page(
    process: Process, wanted: PlanFilter = ALL, offset: int = 0, limit: int = 100
) -> tuple[list[PlanRow], int]:
    return process.ask(process.plans.page, STRANGER, wanted, offset=offset, limit=limit)


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
        assert process.plans.compatible(connection, STRANGER, None) == found


@pytest.mark.parametrize("wanted", [ALL, PlanFilter(region="EU")])
def test_pages_neither_repeat_nor_skip(process: Process, wanted: PlanFilter) -> None:
    import_plans(process, *(plan(f"{n % 4}", id=str(uuid4())) for n in range(13)))
    pages = [page(process, wanted, offset, 3) for offset in range(0, 18, 3)]
    assert {total for _, total in pages} == {13}
    found = [(row.terms.name, str(row.id)) for each, _ in pages for row in each]
    assert found == sorted(set(found))
    assert len(found) == 13
    assert page(process, wanted, 10**12, 3) == ([], 13)


@pytest.fixture
def atlas(process: Process) -> Process:
    """One plan for every pair of a country of each region, and for every single one."""
    codes = [region.countries[0] for region in REGIONS.values()]
    pairs = [(a, b) for a in codes for b in codes if a < b]
    for index, countries in enumerate([*((code,) for code in codes), *pairs]):
        profiles = [profile(f"sp-{index % 3}")]
        name = " ".join(countries)
        import_plans(process, plan(name, coverage=covering(*countries), sponsor_profiles=profiles))
    return process


@pytest.mark.slow
def test_all_filters_can_be_combined(atlas: Process) -> None:
    everything, _ = page(atlas)
    countries = [None, *(region.countries[0] for region in REGIONS.values()), "VU"]
    regions, sponsors = (None, "EU", "OC"), (None, "sp-0", "Profile sp-0", "nobody")
    axes = (regions, countries, (None, *COVERAGE_TYPES), sponsors)
    chosen = [*product(*axes)][::ONE_IN]
    for one, other in combinations(range(len(axes)), 2):  # Any two values come together.
        pairs = {(each[one], each[other]) for each in chosen}
        assert pairs == {*product(axes[one], axes[other])}
    for each in chosen:
        wanted = PlanFilter(*each)
        found, total = page(atlas, wanted)
        expected = [row for row in everything if _matches(row, wanted)]
        assert (found, total) == (expected, len(expected)), wanted


def _matches(row: PlanRow, wanted: PlanFilter) -> bool:
    codes = [each.country_code for each in row.terms.coverage]
    sponsors = {text for each in row.terms.sponsor_profiles for text in (each.id, each.name)}
    return (
        (wanted.region is None or wanted.region in regions_of(codes))
        and (wanted.country is None or wanted.country in codes)
        and wanted.coverage_type in {None, row.terms.coverage_type}
        and (wanted.sponsor_profile is None or wanted.sponsor_profile in sponsors)
    )


def test_a_read_takes_one_or_two_statements_however_many_plans(process: Process) -> None:
    owner = process.organization("")
    import_plans(process, *(plan(f"{n}", excluded_organizations=[str(owner)]) for n in range(60)))
    ids = [row.id for row in page(process, limit=100)[0]]
    plans, everything = process.plans, PlanFilter("EU", "DE", "local", "sp-1")
    with process.views.reading() as connection:
        asked = {
            "page": lambda: plans.page(connection, STRANGER, everything, offset=0, limit=60),
            "by_id": lambda: plans.by_id(connection, ids),
            "compatible": lambda: plans.compatible(connection, STRANGER, "sp-1"),
            "all": lambda: plans.all(connection),
            "keys": lambda: plans.keys(connection),
        }
        counts = {name: len(statements(process, it)) for name, it in asked.items()}
    assert counts == dict.fromkeys(asked, 1) | {"page": 2}
