"""A link's open call: each kind, as the events and the rows say, is known wherever one must be."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from domain.links.driver import Requested
from domain.links.link import Link
from domain.links.saga import Step, next_step
from domain.log.aggregate import itself, kinds_below
from projections.audit.life import EXCLUSIVE
from projections.models.due import DUE
from tests.domain.buying import Buyer
from tests.golden.files import EVENTS, events_of

CHANGES = {each: each.SETS["open_call"] for each in events_of(Link) if "open_call" in each.SETS}
OPENS: set[Any] = {each for each, value in CHANGES.items() if value is itself}
EXAMPLES: list[Any] = [each for each in EVENTS if type(each) in OPENS]
TICK = timedelta(microseconds=1)


def rows_of(buyer: Buyer) -> Iterator[Requested[Any]]:
    return (each for each in buyer.process.provisioning.rows if isinstance(each, Requested))


def test_each_kind_of_call_has_one_row_which_a_worker_drives(clocked_buyer: Buyer) -> None:
    rows = [*rows_of(clocked_buyer)]
    assert {type(each) for each in rows} == {*kinds_below(Requested)}
    assert {each.opens for each in rows} == {type(each) for each in EXAMPLES} == OPENS
    assert len(rows) == len(OPENS)


@pytest.mark.parametrize("intent", EXAMPLES, ids=lambda each: each.TOPIC)
def test_an_open_call_excludes_all_others_is_settled_and_makes_reads_wait(
    clocked_buyer: Buyer, intent: Any
) -> None:
    buyer, process = clocked_buyer, clocked_buyer.process
    link = buyer.own("Europe")
    assert all(row._is_free(link) for row in rows_of(buyer))  # noqa: SLF001  # What it waits for.
    assert not process.link_readings.must_wait(link)
    intent.apply(link)
    assert link.calling is type(intent)
    assert not any(row._is_free(link) for row in rows_of(buyer))  # noqa: SLF001  # As above.
    assert not any(link.may_record(each) for each in OPENS - {type(intent)})
    assert next(e for e in process.provisioning.rows if e.is_for(link)).opens is type(intent)
    steps = [next_step(link, each) for each in (intent.until - TICK, intent.until)]
    assert steps == [Step.NOTHING, Step.LOOK_UP]
    buyer.clock.now = intent.until  # type: ignore[attr-defined]  # It is a SetClock.
    assert process.link_readings.must_wait(link)
    link.record_seen("inactive", None, None, process.cause())
    assert link.pending_events == []


def test_an_open_call_is_due_at_its_end_and_over_with_its_outcome() -> None:
    for example in EXAMPLES:
        assert DUE[type(example)](example) == example.until
        assert example.TOPIC in EXCLUSIVE
    for event in CHANGES.keys() - OPENS:
        assert CHANGES[event] is None
        assert DUE[event](event) is None
