"""Links as listed: there from their activation on, as their aggregates have them, page by page."""

import re
from datetime import UTC, datetime
from uuid import UUID

import pytest

from projections.models.links import LinkFilter
from tests.installation import Process, sqlite_only
from tests.projections.link_steps import LinkSteps
from tests.projections.looking import ALL, link_page, plan_of, statements

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.each_database
def test_pages_come_newest_first_and_neither_repeat_nor_skip(
    process: Process, organization_id: UUID
) -> None:
    """The clock stands still: only the place in the log tells which link is newer."""
    waiting = [LinkSteps(process, organization_id, f"Van {number}") for number in range(11)]
    for life in reversed(waiting):
        life.activate()
    waiting[4].switch("suspended")
    for wanted in (ALL, LinkFilter(search="van"), LinkFilter(status="active", search="VAN")):
        parts = [slice(start, start + 3) for start in range(0, 15, 3)]
        pages = [link_page(process, organization_id, wanted, part) for part in parts]
        matching = [each.id for each in waiting if not (wanted.status and each is waiting[4])]
        assert [each.id for found, _ in pages for each in found] == matching
        assert {total for _, total in pages} == {len(matching)}
        assert pages[-1][0] == []
    assert link_page(process, organization_id, ALL, slice(10**9, 10**9 + 9)) == ([], 11)


def test_nobody_sees_the_links_of_others(process: Process, organization_id: UUID) -> None:
    owners = (organization_id, process.organization())
    ids = [LinkSteps(process, owner, "Van").activate().id for owner in owners]
    for wanted in (ALL, LinkFilter(status="active"), LinkFilter(search="van", also=ids)):
        for owner, link_id in zip(owners, ids, strict=True):
            assert [each.id for each in link_page(process, owner, wanted)[0]] == [link_id]


@sqlite_only("the plan of a query is told in SQLite's words")
@pytest.mark.parametrize(
    ("wanted", "indexes"),
    [
        (ALL, ["INDEX links_by_number"]),
        (LinkFilter(status="active"), ["COVERING INDEX links_by_status"]),
        (LinkFilter(changed_since=START), ["COVERING INDEX links_by_change"]),
        (LinkFilter(created_from=START, status="active"), ["COVERING INDEX links_by_creation"]),
        (LinkFilter(sort="created_at"), ["COVERING INDEX links_by_creation"]),
        (LinkFilter(sort="-expires_at"), ["COVERING INDEX links_by_end"]),
        (LinkFilter(expires_before=START), ["INDEX links_by_end"]),
        (LinkFilter(plan_id=UUID(int=1)), ["sqlite_autoindex_link_plans_1"]),
        (LinkFilter(search="8988"), ["(organization_id=?)"]),
        (
            LinkFilter(search="no such link", also=[UUID(int=1)]),
            ["sqlite_autoindex_links_1 (id=?)"],
        ),
    ],
    ids=["all", "status", "change", "from", "new", "end", "before", "plan", "text", "also"],
)
def test_a_page_is_found_by_indexes_alone(
    process: Process, organization_id: UUID, wanted: LinkFilter, indexes: list[str]
) -> None:
    for _ in range(3):
        LinkSteps(process, organization_id).activate()
    process.projector.catch_up()
    asked = statements(process, lambda: link_page(process, organization_id, wanted))
    mine = [each for each in asked if re.search(r"FROM \"?link", each[0])]
    plans = [line for each in mine for line in plan_of(process, *each)]
    assert len(mine) <= 3
    assert not [line for line in plans if re.match(r"SCAN link(s|_counts)\b", line)]
    for index in indexes:
        assert any(index in line for line in plans), plans
