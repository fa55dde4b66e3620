"""The transaction stream: every entry of a wallet once, in the order of the log, page by page."""

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from projections.engine.shape import format_time
from projections.models.transactions import EntryFilter, Transaction
from tests.installation import Process, SetClock

ALL = EntryFilter()


def page(
    process: Process,
    organization_id: UUID,
    wanted: EntryFilter = ALL,
    offset: int = 0,
    limit: int = 100,
) -> tuple[list[Transaction], int]:
    part = slice(offset, offset + limit)
    return process.ask(process.transactions.page, organization_id, wanted, part)


MOMENTS = st.integers(0, 6 * 3_600)  # Seconds: a request's time, on the clock of some machine.


@pytest.mark.each_database
@pytest.mark.slow
@given(
    moments=st.lists(MOMENTS, min_size=1, max_size=30),
    span=st.tuples(st.none() | MOMENTS, st.none() | MOMENTS),
    kind=st.sampled_from([None, "deposit", "adjustment", "lookup"]),
    place=st.tuples(st.integers(0, 12), st.integers(1, 7)),
)
# A span begins and ends at entries, with others among those that match.
@example(moments=[7_260, 3_600, 10_860, 7_260], span=(7_260, 10_860), kind=None, place=(0, 7))
@settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_a_filtered_page_is_right_whatever_the_clocks_say(
    process: Process,
    moments: list[int],
    span: tuple[int | None, int | None],
    kind: str | None,
    place: tuple[int, int],
) -> None:
    process.clock = clock = SetClock()
    start = clock.now
    owner = process.organization("1.00")
    for number, moment in enumerate(moments):
        clock.now = start + timedelta(seconds=moment)
        if number % 3:
            process.adjust(owner, 1_000)
        else:
            process.deposit(owner, "1.00")
    since, until = (None if each is None else start + timedelta(seconds=each) for each in span)
    everything, _ = page(process, owner)
    right = [
        each
        for each in everything
        if (kind is None or each.kind == kind)
        and (since is None or each.charged_at >= format_time(since))
        and (until is None or each.charged_at < format_time(until))
    ]
    offset, limit = place
    found = page(process, owner, EntryFilter(kind, since, until), offset, limit)
    assert found == (right[offset : offset + limit], len(right))


def test_a_sum_that_does_not_fit_stops_no_read_model(process: Process) -> None:
    for _ in range(10):
        process.organization("999999999999")
        process.projector.catch_up()
    assert process.audit().failures == []
