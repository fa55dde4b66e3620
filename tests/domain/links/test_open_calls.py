"""A link's open call: each kind that the events name is known wherever one must be."""

import time
from datetime import timedelta
from typing import Any

import pytest

from domain.cause import AHEAD_MAX
from domain.errors import LinkBusy
from domain.links.driver import Requested
from domain.links.saga import Step, next_step
from domain.log.aggregate import itself, kinds_below
from projections.audit.life import EXCLUSIVE
from projections.models.due import DUE
from tests.domain.buying import Buyer
from tests.golden.files import EVENTS

CHANGES: list[Any] = [each for each in EVENTS if "open_call" in each.SETS]
INTENTS = [each for each in CHANGES if each.SETS["open_call"] is itself]
NOW, TICK = timedelta(), timedelta(microseconds=1)


def test_each_call_has_a_row_is_due_at_its_end_and_over_with_its_outcome(buyer: Buyer) -> None:
    rows = [each for each in buyer.process.provisioning.rows if isinstance(each, Requested)]
    assert {type(each) for each in rows} == {*kinds_below(Requested)}
    assert sorted(str(each.opens) for each in rows) == sorted(str(type(e)) for e in INTENTS)
    assert all(each.TOPIC in EXCLUSIVE for each in INTENTS)
    for each in CHANGES:
        assert DUE[type(each)](each) == getattr(each, "until", None)


@pytest.mark.parametrize("intent", INTENTS, ids=lambda each: each.TOPIC)
def test_an_open_call_excludes_all_others_is_settled_and_makes_reads_wait(
    clocked_buyer: Buyer, intent: Any
) -> None:
    process, clock, link = clocked_buyer.process, clocked_buyer.clock, clocked_buyer.own("Europe")
    rows = [each for each in process.provisioning.rows if isinstance(each, Requested)]
    assert all(row._is_free(link) for row in rows)  # noqa: SLF001  # What a request waits for.
    intent.apply(link)
    assert not any(row._is_free(link) for row in rows)  # noqa: SLF001  # As above.
    assert not any(link.may_record(type(each)) for each in INTENTS if each is not intent)
    for row in rows:
        if not link.may_record(row.opens):
            with pytest.raises(LinkBusy):
                row._try(link, None, time.monotonic(), process.cause())  # noqa: SLF001  # Without a wait.
    assert next(row for row in process.provisioning.rows if row.is_for(link)).opens is type(intent)
    early, late = (Step.NOTHING, True), (Step.LOOK_UP, True)
    wrong = Step.LOOK_UP, False  # It was stamped by a clock that was ahead.
    for ahead, does in [(AHEAD_MAX + TICK, wrong), (AHEAD_MAX, early), (TICK, early), (NOW, late)]:
        clock.now = intent.until - ahead  # type: ignore[attr-defined]  # It can be moved.
        assert (next_step(link, clock()), process.link_readings.must_wait(link)) == does
    link.record_seen("inactive", None, None, process.cause())
    assert link.pending_events == []
