"""When links were active: what a monthly fee counts at its instant."""

from datetime import datetime, timedelta
from uuid import UUID

from tests.installation import Process, SetClock
from tests.projections.link_steps import LinkSteps

MICROSECOND = timedelta(microseconds=1)


def active(process: Process, organization_id: UUID, moment: datetime) -> list[UUID]:
    return process.ask(process.link_spans.active_at, organization_id, moment)


def test_a_span_has_its_first_moment_and_not_its_last(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    life = LinkSteps(process, organization_id).activate()
    suspended_at = clock.forward(days=1)
    life.switch("suspended")
    reactivated_at = clock.forward(days=1)
    life.switch("active")
    for moment, expected in (
        (suspended_at - MICROSECOND, [life.id]),
        (suspended_at, []),
        (reactivated_at - MICROSECOND, []),
        (reactivated_at, [life.id]),
        (reactivated_at + timedelta(days=1), [life.id]),
    ):
        assert active(process, organization_id, moment) == expected


def test_what_the_network_shows_ends_and_begins_a_span_too(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    life = LinkSteps(process, organization_id).activate()
    moments = []
    for step in (
        lambda: life.see("inactive"),
        lambda: life.see("suspended"),
        lambda: life.see("active"),
        lambda: life.intend("suspended"),
        lambda: life.settle("inactive"),
        lambda: life.switch("active"),
    ):
        moments.append(clock.forward(hours=1))
        step()
    assert [bool(active(process, organization_id, moment)) for moment in moments] == [
        False,
        False,
        True,
        True,
        False,
        True,
    ]


def test_a_link_counts_once_after_a_clock_was_set_back(
    process: Process, organization_id: UUID, clock: SetClock
) -> None:
    life = LinkSteps(process, organization_id).activate()
    clock.forward(hours=4)
    life.switch("suspended")
    clock.forward(hours=-2)
    life.switch("active")
    assert active(process, organization_id, clock.now + timedelta(hours=1)) == [life.id]
