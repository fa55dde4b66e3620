"""The catalogue as read: what is there, in which order, and what filters find."""

from itertools import combinations, product
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import Engine, event

from domain.catalogue.plan import COVERAGE_TYPES, Plan
from domain.regions import REGIONS, regions_of
from projections.models.plans import PlanFilter, PlanRow
from tests.golden.examples import TERMS
from tests.installation import Process
from tests.plan_files import covering, import_plans, plan, profile, stored
from tests.projections.looking import rows

ALL = PlanFilter()
STRANGER = uuid4()
ONE_IN = 7  # Of all combinations of filters, so few that any two values still come together.


def page(
    process: Process, wanted: PlanFilter = ALL, offset: int = 0, limit: int = 100
) -> tuple[list[PlanRow], int]:
    process.projector.catch_up()
    with process.views.reading() as connection:
        return process.plans.page(connection, STRANGER, wanted, offset=offset, limit=limit)


def names(process: Process, **wanted: Any) -> list[str]:
    found, total = page(process, PlanFilter(**wanted))
    assert total == len(found)
    return [row.terms.name for row in found]


def test_a_plan_is_read_as_it_was_published(process: Process) -> None:
    excluded = sorted((uuid4() for _ in range(3)), key=str)
    made = Plan.publish(
        uuid4(), process.cause(), organization_id=None, terms=TERMS, excluded=excluded
    )
    process.log.append(made)
    expected = PlanRow(made.id, None, TERMS, enabled=True, excluded=excluded)
    assert page(process) == ([expected], 1)
    with process.views.reading() as connection:
        assert process.plans.get(process.views, STRANGER, made.id) == expected
        assert process.plans.by_id(connection, [made.id]) == {made.id: expected}
        assert process.plans.all(connection) == [expected]
        assert process.plans.compatible(connection, STRANGER, "sp-1") == [expected]
        assert process.plans.keys(connection) == {made.key: [made.id]}


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_every_change_is_read_back(process: Process, in_one_batch: bool) -> None:  # noqa: FBT001  # It is one case of the table.
    owner, kept = process.organization(""), process.organization("")

    def pause() -> None:
        if not in_one_batch:
            process.projector.catch_up()

    first = plan("A", excluded_organizations=[str(owner)])
    import_plans(process, first, plan("Z"))
    plan_id = stored(process, "A").id
    pause()
    process.catalogue.switch(plan_id, process.cause(), enabled=False)
    process.catalogue.exclude(plan_id, kept, process.cause())
    pause()
    changed = {"coverage": covering("FR", "JP"), "sponsor_profiles": [profile("sp-9")]}
    import_plans(process, plan("A", name="B", provider_plan_id="a", **changed))
    process.catalogue.include(plan_id, owner, process.cause())
    pause()
    process.catalogue.switch(plan_id, process.cause(), enabled=True)
    assert names(process, country="DE") == ["Z"]
    assert names(process, country="JP", region="EU", coverage_type="global") == ["B"]
    assert (names(process, sponsor_profile="sp-9"), names(process, sponsor_profile="sp-1")) == (
        ["B"],
        ["Z"],
    )
    with process.views.reading() as connection:
        row = process.plans.by_id(connection, [plan_id])[plan_id]
        assert process.plans.get(process.views, kept, plan_id) is None
        assert process.plans.get(process.views, owner, plan_id) == row
    assert (row.enabled, row.excluded) == (True, [kept])


def test_a_batch_split_at_every_place_gives_the_same_rows(process: Process) -> None:
    first, second = uuid4(), uuid4()
    made = Plan.publish(
        uuid4(), process.cause(), organization_id=None, terms=TERMS, excluded=[first]
    )
    other = msgspec.structs.replace(TERMS, sponsor_profiles=[], coverage=TERMS.coverage[:1])
    made.include(first, process.cause())
    made.exclude(second, process.cause())
    made.change(other, process.cause())
    made.switch(process.cause(), enabled=False)
    made.exclude(first, process.cause())
    made.include(second, process.cause())
    made.change(TERMS, process.cause())
    made.switch(process.cause(), enabled=True)
    process.log.append(made)
    process.projector.catch_up()
    whole = rows(process, [process.plans])
    assert all(whole.values())
    batch = process.log.read(0, 100)
    assert len(batch) == 9
    for split in range(1, len(batch)):
        with process.views.writing() as connection:
            for table in process.plans.tables:
                connection.execute(table.delete())
            process.plans.project(connection, batch[:split])
            process.plans.project(connection, batch[split:])
        assert rows(process, [process.plans]) == whole


def test_plans_come_by_name_in_the_order_of_bytes_then_by_id(process: Process) -> None:
    called = [
        "b",
        "a",
        "B",
        "A",
        "_",
        "Ä",
        "é",
        "z",
        "\U0001f30d",
        "\uff21",
        "a b",
        "a-b",
        "10",
        "9",
    ]
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


@pytest.mark.any_database
@pytest.mark.parametrize("region", REGIONS)
def test_a_plan_matches_a_region_by_any_of_its_countries(atlas: Process, region: str) -> None:
    found = names(atlas, region=region)
    everything = names(atlas)
    assert len(everything) == 6 + 15
    assert found == [name for name in everything if region in regions_of(name.split())]
    assert len(found) == 6


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


def test_a_filter_is_text_and_no_pattern(process: Process) -> None:
    import_plans(process, plan())
    for wild in ("%", "sp__", "SP-1", "sp-1' OR 1=1 --"):
        assert names(process, sponsor_profile=wild) == []


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
        counts = {name: statements(process.views.engine, ask) for name, ask in asked.items()}
    assert counts == dict.fromkeys(asked, 1) | {"page": 2}


def statements(engine: Engine, ask: Any) -> int:
    """Count what one question sends to the database."""
    sent: list[str] = []

    def note(*arguments: Any) -> None:
        sent.append(arguments[2])

    event.listen(engine, "before_cursor_execute", note)
    try:
        assert ask()
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return len(sent)


def test_a_plan_that_does_not_exist_is_none(process: Process) -> None:
    with process.views.reading() as connection:
        assert process.plans.get(process.views, STRANGER, uuid4()) is None
        assert process.plans.by_id(connection, [UUID(int=0)]) == {}
    assert page(process) == ([], 0)
