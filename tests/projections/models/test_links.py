"""Links as listed: there from their activation on, as their aggregates have them, page by page."""

import re
from datetime import timedelta
from typing import get_args
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event

from domain.links.link import Link
from domain.links.network import LinkStatus
from projections.models.link_search import LinkFilter
from projections.models.links import LinkRow
from tests.installation import Process, SetClock, sqlite_only
from tests.projections.link_steps import LPA, PROFILE, LinkSteps, bought

ALL = LinkFilter()


def page(
    process: Process,
    organization_id: UUID,
    wanted: LinkFilter = ALL,
    offset: int = 0,
    limit: int = 9,
) -> tuple[list[LinkRow], int]:
    process.projector.catch_up()
    return process.links.page(process.views, organization_id, wanted, offset=offset, limit=limit)


def row(process: Process, organization_id: UUID, link_id: UUID) -> LinkRow | None:
    process.projector.catch_up()
    with process.views.reading() as connection:
        return process.links.get(connection, organization_id, link_id)


def row_of(link: Link, position: int) -> LinkRow:
    """Return a link as its table should show it, straight from its aggregate."""
    assert link.iccid is not None
    assert link.activated_at is not None
    return LinkRow(
        id=link.id,
        organization_id=link.organization_id,
        position=position,
        iccid=link.iccid,
        name=link.requested.name,
        status=link.status,
        sponsor_profile=link.sponsor_profile,
        created_at=link.activated_at,
        lpa=link.lpa,
        installed_at=link.installed_at,
        first_used_at=link.first_used_at,
        activations=list(link.activations.values()),
    )


@pytest.mark.any_database
def test_a_link_is_there_from_its_activation_on(process: Process, organization_id: UUID) -> None:
    life = LinkSteps(process, organization_id, "Van 7")
    for step in (life.reserve, life.begin):
        assert row(process, organization_id, life.id) is None
        step()
    assert page(process, organization_id) == ([], 0)
    life.activate()
    found = row(process, organization_id, life.id)
    assert found == row_of(life.link, process.log.head())
    assert found is not None
    assert (found.name, found.iccid, found.status) == ("Van 7", life.iccid, "active")
    assert (found.sponsor_profile, found.lpa) == (PROFILE, LPA)
    assert page(process, organization_id) == ([found], 1)


@pytest.mark.any_database
def test_a_link_that_fails_is_never_there(process: Process, organization_id: UUID) -> None:
    LinkSteps(process, organization_id).fail()
    LinkSteps(process, organization_id).reserve().fail().release()
    late = LinkSteps(process, organization_id).reserve().begin()
    late.fail(process.clock()).remove_endpoint().release()
    assert page(process, organization_id) == ([], 0)


@pytest.mark.parametrize("in_one_batch", [True, False])
def test_a_link_reads_as_its_aggregate_at_every_step(
    process: Process,
    organization_id: UUID,
    clock: SetClock,
    in_one_batch: bool,  # noqa: FBT001  # It is one case of the table.
) -> None:
    life = LinkSteps(process, organization_id).activate(lpa=None, addon_id=None)
    activated_at = process.log.head()
    first = next(iter(life.link.activations))
    steps = (
        lambda: life.see("active", clock.now),
        lambda: life.change([first], [bought("Asia 1 GB"), bought("Africa 1 GB")]).do().do().do(),
        lambda: life.intend("suspended"),
        lambda: life.settle("suspended"),
        life.store_lpa,
        lambda: life.see("inactive", None, clock.now),
        lambda: life.change([next(iter(life.link.current_activations)).id]).do(),
    )
    for step in steps:
        if not in_one_batch:
            assert row(process, organization_id, life.id) == row_of(life.link, activated_at)
        clock.forward(seconds=7)
        step()
    found = row(process, organization_id, life.id)
    assert found == row_of(life.link, activated_at)
    assert found is not None
    assert [each.plan.name for each in found.current_activations] == ["Africa 1 GB"]
    assert len(found.activations) == 3
    assert (found.status, found.lpa) == ("inactive", LPA)
    assert found.installed_at == clock.now - timedelta(seconds=42)
    assert found.first_used_at == clock.now - timedelta(seconds=7)


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("intended", "settled", "expected"),
    [
        ("suspended", "suspended", "suspended"),
        ("suspended", "active", "active"),
        ("suspended", "inactive", "inactive"),
        ("active", "active", "active"),
        ("active", "suspended", "suspended"),
    ],
)
def test_a_status_is_what_the_network_came_to(
    process: Process,
    organization_id: UUID,
    intended: LinkStatus,
    settled: LinkStatus,
    expected: LinkStatus,
) -> None:
    life = LinkSteps(process, organization_id).activate().switch("suspended").see("inactive")
    life.intend(intended)
    assert [each.status for each in page(process, organization_id)[0]] == ["inactive"]
    life.settle(settled)
    assert [each.status for each in page(process, organization_id)[0]] == [expected]


def test_a_status_lists_its_links_alone(process: Process, organization_id: UUID) -> None:
    links = [LinkSteps(process, organization_id).activate() for _ in range(4)]
    links[1].switch("suspended")
    links[2].see("inactive")
    links[3].switch("suspended").switch("active")
    for status, expected in (
        ("active", [links[3].id, links[0].id]),
        ("suspended", [links[1].id]),
        ("inactive", [links[2].id]),
    ):
        found, total = page(process, organization_id, LinkFilter(status=status))  # type: ignore[arg-type]  # one of the three
        assert ([each.id for each in found], total) == (expected, len(expected))


def test_pages_come_newest_first_and_neither_repeat_nor_skip(
    process: Process, organization_id: UUID
) -> None:
    """The clock stands still: only the place in the log tells which link is newer."""
    waiting = [LinkSteps(process, organization_id, f"Van {number}") for number in range(11)]
    for life in reversed(waiting):
        life.activate()
    waiting[4].switch("suspended")
    for wanted in (ALL, LinkFilter(search="van"), LinkFilter(status="active", search="VAN")):
        pages = [page(process, organization_id, wanted, offset, 3) for offset in range(0, 15, 3)]
        matching = [each.id for each in waiting if not (wanted.status and each is waiting[4])]
        assert [each.id for found, _ in pages for each in found] == matching
        assert {total for _, total in pages} == {len(matching)}
        assert pages[-1][0] == []
    assert page(process, organization_id, offset=10**9) == ([], 11)


@pytest.mark.any_database
def test_nobody_sees_the_links_of_others(process: Process, organization_id: UUID) -> None:
    life = LinkSteps(process, organization_id, "Van").activate()
    other = process.organization()
    mine = LinkFilter(search="van", also=[life.id])
    assert page(process, organization_id, mine)[1] == 1
    for stranger in (other, uuid4()):
        assert page(process, stranger) == ([], 0)
        assert page(process, stranger, mine) == ([], 0)
        assert row(process, stranger, life.id) is None
    assert row(process, organization_id, uuid4()) is None


def test_all_links_are_read_from_any_place_on(process: Process, organization_id: UUID) -> None:
    other = process.organization()
    owners = (organization_id, other, organization_id)
    links = [LinkSteps(process, owner).activate().id for owner in owners]
    process.projector.catch_up()
    with process.views.reading() as connection:
        everything = process.links.all(connection, None, limit=9)
        assert [each.id for each in everything] == links[::-1]
        rest = process.links.all(connection, None, before=everything[0].position, limit=1)
        assert [each.id for each in rest] == [links[1]]
        own = process.links.all(connection, organization_id, limit=9)
        assert [each.id for each in own] == [links[2], links[0]]
        left = process.links.all(connection, other, before=everything[1].position, limit=9)
        assert left == []


def test_links_are_counted_by_status_for_each_organization(
    process: Process, organization_id: UUID
) -> None:
    other = process.organization()
    owners = (organization_id, other, organization_id, other, organization_id)
    links = [LinkSteps(process, owner).activate() for owner in owners]
    process.projector.catch_up()
    links[0].switch("suspended").see("inactive")
    links[1].switch("suspended")
    links[2].switch("suspended").switch("active")
    for owner, expected in ((organization_id, (2, 0, 1)), (other, (1, 1, 0)), (uuid4(), (0, 0, 0))):
        totals = [
            page(process, owner, LinkFilter(status=status))[1] for status in get_args(LinkStatus)
        ]
        assert tuple(totals) == expected
        assert page(process, owner, limit=1)[1] == sum(expected)
    own = [links[each].id for each in (4, 2, 0)]
    for offset in range(3):
        (found,), _ = page(process, organization_id, offset=offset, limit=1)
        assert found.id == own[offset]


@sqlite_only("the plan of a query is told in SQLite's words")
@pytest.mark.parametrize(
    ("wanted", "indexes"),
    [
        (ALL, ["INDEX links_by_number"]),
        (LinkFilter(status="active"), ["COVERING INDEX links_by_status"]),
        (LinkFilter(search="8988"), ["(organization_id=?)"]),
        (
            LinkFilter(search="no such link", also=[UUID(int=1)]),
            ["sqlite_autoindex_links_1 (id=?)"],
        ),
        (LinkFilter(search="europe"), ["link_activations_by_plan", "sqlite_autoindex_links_1"]),
    ],
    ids=["all", "status", "text", "also", "plan"],
)
def test_a_page_is_found_by_indexes_alone(
    process: Process, organization_id: UUID, wanted: LinkFilter, indexes: list[str]
) -> None:
    for _ in range(3):
        LinkSteps(process, organization_id).activate()
    process.projector.catch_up()
    asked: list[tuple[str, tuple[object, ...]]] = []

    @event.listens_for(process.views.engine, "before_cursor_execute")
    def note(*arguments: object) -> None:
        asked.append((str(arguments[2]), tuple(arguments[3])))  # type: ignore[arg-type]  # its parameters

    page(process, organization_id, wanted)
    mine = [each for each in asked if re.search(r"FROM \"?link", each[0])]
    with process.views.reading() as connection:
        plans = [
            str(line[-1])
            for statement, values in mine
            for line in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
        ]
    assert len(mine) <= 3
    assert not [line for line in plans if re.match(r"SCAN link(s|_activations|_counts)\b", line)]
    for index in indexes:
        assert any(index in line for line in plans), plans
