"""The filters and sorts of links: what they find, and what they read for it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import combinations, product
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from domain.links.link import Link
from projections.engine.database import to_micros
from projections.models.links import SORTS, LinkFilter, LinkRow
from tests.installation import Process, SetClock, postgresql_only
from tests.projections.link_steps import LinkSteps, bought
from tests.projections.looking import link_page, statements

DAY = timedelta(days=1)
ONE_IN = 37  # Of all combinations, so few that any two values still come together.


def ids(process: Process, owner: UUID, **wanted: Any) -> list[UUID]:
    rows, total = link_page(process, owner, LinkFilter(**wanted))
    assert total == len(rows)
    return [row.id for row in rows]


@pytest.mark.each_database
@pytest.mark.slow
def test_all_filters_and_sorts_can_be_combined(process: Process, clock: SetClock) -> None:
    """Two of the links are made at each moment, three of four have an end, many the same one."""
    owner, plans = process.organization(), [bought("Plain"), bought("Other")]
    start = clock.now
    for number in range(24):
        life = LinkSteps(process, owner, f"Van {number % 3}", plans[number % 2]).activate()
        if number % 4:
            life.start_plan(start + DAY * (number % 5))
        if number % 6 == 5:
            life.switch("suspended")
        if number % 2:
            clock.forward(hours=1)
    LinkSteps(process, process.organization(), "Van 1", plans[0]).activate().start_plan(start)
    every, _ = link_page(process, owner)
    moments = (None, start + timedelta(hours=4), start + timedelta(hours=9))
    axes: Mapping[str, Sequence[Any]] = {
        "status": (None, "active", "suspended"),
        "search": (None, "van 1", "PLAIN"),
        "changed_since": moments[:2],
        "created_from": moments,
        "created_to": moments,
        "plan_id": (None, plans[1].plan_id, uuid4()),
        "expires_before": (None, start + DAY * 3),
        "sort": (None, *SORTS),
    }
    chosen = [*product(*axes.values())][::ONE_IN]
    for one, other in combinations(range(len(axes)), 2):
        values = [*axes.values()]
        assert {(e[one], e[other]) for e in chosen} == {*product(values[one], values[other])}
    for each in chosen:
        wanted = LinkFilter(**dict(zip(axes, each, strict=True)))
        expected = sorted(filter(lambda row: _matches(row, wanted), every), key=_key(wanted.sort))
        for start_at in (0, 2, 4, 90):
            found, total = link_page(process, owner, wanted, slice(start_at, start_at + 2))
            assert (found, total) == (expected[start_at : start_at + 2], len(expected)), wanted


def _matches(row: LinkRow, wanted: LinkFilter) -> bool:
    ends, changed, made = wanted.expires_before, wanted.changed_since, row.created_at
    return (
        wanted.status in {None, row.status}
        and (wanted.search is None or wanted.search.lower() in row.texts())
        and (changed is None or row.changed_at >= changed)
        and (wanted.created_from is None or made >= wanted.created_from)
        and (wanted.created_to is None or made < wanted.created_to)
        and (wanted.plan_id is None or wanted.plan_id in row.plan_ids)
        and (ends is None or (row.expires_at is not None and row.expires_at < ends))
    )


def _key(sort: str | None) -> Any:
    """Return the key of a sort: what never ends stands last, whichever way it goes."""
    sign = -1 if sort is None or sort[0] == "-" else 1
    name = (sort or "position").removeprefix("-")

    def key(row: LinkRow) -> tuple[bool, float, int]:
        at = getattr(row, name)
        value = at.timestamp() if isinstance(at, datetime) else at or 0
        return at is None, sign * value, sign * row.position

    return key


def test_a_link_ends_with_the_last_plan_that_has_data_left(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    life = LinkSteps(process, organization_id).activate()
    ends, cause = clock.now + DAY * 30, process.cause

    def known() -> datetime | None:
        (row,) = link_page(process, organization_id)[0]
        assert (ids(process, organization_id, expires_before=ends + DAY * 99) == []) == (
            row.expires_at is None
        )
        return row.expires_at

    assert known() is None
    life.start_plan(ends)
    assert known() == ends
    assert ids(process, organization_id, expires_before=ends) == []
    changed_at = link_page(process, organization_id)[0][0].changed_at
    clock.forward(hours=1)
    life.change((), [bought("More")]).do_all()
    link = life.link
    first, more = link.current_activations[0].id, link.current_activations[1].id
    link.record_once(Link.PlanStarted, more, cause(), expires_at=ends + DAY)
    # The network shows another end by now.
    link.record_once(Link.ExpiryNear, more, cause(), expires_at=ends - DAY)
    process.log.append(link)
    assert known() == ends
    clock.forward(hours=1)
    link = life.link
    link.record_used(first, 80, cause())
    process.log.append(link)
    assert known() == ends
    link.record_used(first, 100, cause())
    process.log.append(link)
    assert known() == ends - DAY
    moved_at = link_page(process, organization_id)[0][0].changed_at
    assert changed_at < moved_at < clock.now, "what is used of a plan is no change"
    life.change([more]).do_all()
    assert known() is None


@pytest.mark.each_database
def test_a_plan_that_is_over_a_used_up_and_an_ended_link_have_no_end(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    ends = clock.now + DAY
    lives = [LinkSteps(process, organization_id).activate() for _ in range(3)]
    lives[0].tell(100, ends)  # Used up before its end was known.
    lives[1].tell(10, ends)  # It is over.
    lives[2].start_plan(ends)
    assert ids(process, organization_id, expires_before=ends + DAY) == [lives[2].id]
    assert ids(process, organization_id, sort="expires_at") == [lives[n].id for n in (2, 0, 1)]
    assert ids(process, organization_id, sort="-expires_at") == [lives[n].id for n in (2, 1, 0)]
    lives[2].intend_end("end").finish()
    assert ids(process, organization_id, expires_before=ends + DAY) == []


@pytest.mark.each_database
def test_a_plan_finds_the_links_that_have_it_now(process: Process, organization_id: UUID) -> None:
    plan, other = bought("Plain"), bought("Other")
    life = LinkSteps(process, organization_id, None, plan).activate()
    foreign = LinkSteps(process, process.organization(), None, plan).activate()

    def found(plan_id: UUID) -> list[UUID]:
        return ids(process, organization_id, plan_id=plan_id)

    assert found(plan.plan_id) == [life.id]
    assert ids(process, foreign.organization_id, plan_id=plan.plan_id) == [foreign.id]
    assert (found(other.plan_id), found(uuid4())) == ([], [])
    life.change((), [plan, other]).do_all()
    first, second, _ = (each.id for each in life.link.current_activations)
    life.change([first]).do_all()
    assert (found(plan.plan_id), found(other.plan_id)) == ([life.id], [life.id])
    life.change([second]).do_all()
    assert (found(plan.plan_id), found(other.plan_id)) == ([], [life.id])


START = datetime(2026, 1, 1, tzinfo=UTC)
OWNERS, LINKS = 125, 50_000
OF_ONE = LINKS // OWNERS
SCALE = {"owners": OWNERS, "each": LINKS // 20, "start": to_micros(START)}
# A link each minute, of one organization after another; each has ten plans, and a third an end.
FILL = (
    """
    INSERT INTO links (id, organization_id, position, number, iccid, status, created_at,
        activations, ends, expires_at, changed_at, network, texts)
    SELECT lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(mod(n, :owners)), 32, '0')::uuid, n,
        n / :owners + 1, CAST(8988000000000 + n AS text),
        (ARRAY['active', 'active', 'suspended', 'ended'])[mod(n / :owners, 4) + 1],
        :start + n * CAST(60000000 AS bigint), '[]', '{}',
        CASE WHEN mod(n / :owners, 3) = 0 THEN :start + n * CAST(90000000 AS bigint) END,
        :start + n * CAST(60000000 AS bigint), 'simulated', 'van ' || n
    FROM generate_series(CAST(:low AS int), CAST(:low AS int) + :each - 1) AS n
    """,
    """
    INSERT INTO link_plans (organization_id, plan_id, position)
    SELECT lpad(to_hex(mod(n, :owners)), 32, '0')::uuid,
        lpad(to_hex(mod(n / :owners, 10)), 32, '0')::uuid, n
    FROM generate_series(CAST(:low AS int), CAST(:low AS int) + :each - 1) AS n
    """,
)
OWNER, PLAN = UUID(int=7), UUID(int=3)
ASKED = {
    "from": LinkFilter(created_from=START + DAY * 69, created_to=START + DAY * 71),
    "status": LinkFilter(created_from=START + DAY * 130, status="active"),
    "new": LinkFilter(sort="created_at"),
    "old": LinkFilter(sort="-created_at"),
    "end": LinkFilter(sort="expires_at", status="active"),
    "last": LinkFilter(sort="-expires_at"),
    "before": LinkFilter(expires_before=START + DAY * 4),
    "plan": LinkFilter(plan_id=PLAN),
    "some": LinkFilter(plan_id=PLAN, created_from=START + DAY * 130),
    "text": LinkFilter(search="van 10", expires_before=START + DAY * 400, sort="expires_at"),
    "change": LinkFilter(changed_since=START + DAY * 137, sort="-created_at"),
}


@postgresql_only("SQLite has a test of its own; here many rows decide")
@pytest.mark.slow
def test_a_page_of_one_among_many_reads_no_more_than_is_theirs(process: Process) -> None:
    for low, statement in product(range(0, LINKS, SCALE["each"]), FILL):
        with process.views.writing() as connection:
            connection.execute(text(statement), {**SCALE, "low": low})
    with process.views.reading() as connection:
        connection.exec_driver_sql("VACUUM ANALYZE links, link_plans")
    for name, wanted in ASKED.items():
        sent = statements(process, partial(link_page, process, OWNER, wanted, slice(20, 40)))
        statement, values = next(each for each in sent if "FROM links" in each[0])
        for mode in ("force_custom_plan", "force_generic_plan"):
            plan = _explain(process, statement, values, mode)
            nodes = [node for node in _nodes(plan) if "Relation Name" in node]
            read = sum(map(_rows, nodes)), plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
            assert max(read) <= READ_MAX, (name, mode, read, nodes)
            assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], (name, nodes)


READ_MAX = 5 * OF_ONE  # Rows, and blocks.


def _explain(
    process: Process, statement: str, values: Mapping[str, Any], mode: str
) -> dict[str, Any]:
    """Return the plan of a statement, as it was done; a generic one is made for any values."""
    names = [*dict.fromkeys(re.findall(r"%\((\w+)\)s", statement))]
    for number, name in enumerate(names, start=1):
        statement = statement.replace(f"%({name})s", f"${number}")
    given = ", ".join(str(v) if isinstance(v, int) else f"'{v}'" for v in map(values.get, names))
    given = given.replace("%", "%%")
    with process.views.writing() as connection:
        run = connection.exec_driver_sql
        run(f"SET LOCAL plan_cache_mode = {mode}")
        run(f"PREPARE chosen AS {statement}")
        told = run(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE chosen({given})").scalar_one()
        run("DEALLOCATE chosen")
    plan: dict[str, Any] = (told if isinstance(told, list) else json.loads(told))[0]["Plan"]
    return plan


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from _nodes(each)


def _rows(node: Mapping[str, Any]) -> int:
    removed = (count for name, count in node.items() if name.startswith("Rows Removed"))
    read: int = (node["Actual Rows"] + sum(removed)) * node["Actual Loops"]
    return read
