"""When links were active: what a monthly fee counts at its instant."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from tests.installation import Process, SetClock
from tests.projections.link_steps import LinkSteps

if TYPE_CHECKING:
    from collections.abc import Callable

MICROSECOND = timedelta(microseconds=1)


def active(process: Process, organization_id: UUID, moment: datetime) -> list[UUID]:
    return process.ask(process.links.active_at, organization_id, moment)


def test_a_span_lasts_until_the_link_is_otherwise_or_ends(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    life = LinkSteps(process, organization_id).activate()
    steps: list[tuple[Callable[[], object], bool]] = [
        (lambda: life.see("inactive"), False),
        (lambda: life.see("suspended"), False),
        (lambda: life.see("active"), True),
        (lambda: life.intend("suspended"), True),
        (lambda: life.settle("inactive"), False),
        (lambda: life.switch("active"), True),
        (lambda: life.intend("suspended"), True),
        (lambda: life.settle("active"), True),
        (lambda: life.intend_end("end").finish(), False),
    ]
    taken = [(clock.forward(hours=1), step(), expected) for step, expected in steps]
    for moment, _, expected in taken:
        assert bool(active(process, organization_id, moment)) is expected, moment


def test_a_link_counts_once_after_a_clock_was_set_back(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    life = LinkSteps(process, organization_id).activate()
    clock.forward(hours=4)
    life.switch("suspended")
    clock.forward(hours=-2)
    life.switch("active")
    assert active(process, organization_id, clock.now + timedelta(hours=1)) == [life.id]
