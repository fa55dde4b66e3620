"""The status of a link: asked for by an intent, settled by what the network has, or merely seen."""

import pytest

from domain.links.link import Link
from domain.links.network import LinkStatus
from tests.domain.build import cause
from tests.domain.build_links import (
    ACTIVE,
    DEADLINE,
    LinkStep,
    new_link,
    seen,
    status_requested,
    status_settled,
)
from tests.story import Story, fact


def active(*steps: LinkStep) -> Story[Link]:
    return Story(new_link()).given(*ACTIVE, *steps)


def test_a_status_that_was_asked_for_and_done_is_that_of_the_link() -> None:
    story = active()
    story.when(status_requested("suspended")).then(
        fact(Link.StatusRequested, status="suspended", attempt=1, until=DEADLINE), status="active"
    )
    story.when(status_settled("suspended")).then(
        fact(Link.Suspended), status="suspended", status_intent=None
    )
    story.given(status_requested("active")).when(status_settled("active")).then(
        fact(Link.Reactivated), status="active", status_intent=None
    )


@pytest.mark.parametrize("has", ["active", "inactive"])
def test_a_status_that_the_network_did_not_take_on_is_what_it_has(has: LinkStatus) -> None:
    story = active(status_requested("suspended")).when(status_settled(has))
    story.then(fact(Link.StatusKept, status=has), status=has, status_intent=None)


def test_attempts_at_a_status_count_until_one_is_settled() -> None:
    story = active(status_requested("suspended"))
    story.when(status_requested("suspended")).then(fact(Link.StatusRequested, attempt=2))
    story.given(status_settled("active")).when(status_requested("suspended"))
    story.then(fact(Link.StatusRequested, attempt=1))


def test_a_status_in_between_is_not_taken_for_a_fact_while_one_is_asked_for() -> None:
    story = active(status_requested("suspended"))
    story.when(seen("inactive", cause(5).at)).then(fact(Link.Installed), status="active")
