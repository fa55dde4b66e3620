"""What it asks of the databases to tell an endpoint of an event, and to tell nobody."""

from uuid import UUID

import pytest

from domain.cause import Cause
from domain.webhooks.commands import Draft
from tests.budgets.crew import Crew
from tests.budgets.test_budgets import summed

# The dispatcher passes the event. The planner: positions, the newest change of an endpoint, events
# and their messages; a commit of two tables and the position; positions once more. The worker, for
# one delivery: a commit of the choice, the endpoint's stream, a commit of the outcome; then it
# looks in vain.
TOLD = "dispatcher 2/1, worker 9/3, planner 8/1"
# The positions and the newest change of an endpoint; nobody is told, so the log is not read.
UNTOLD = "planner 2/0"


def happen(crew: Crew, owner: UUID, reference: str) -> str:
    """Let one thing happen; return what it cost to tell it."""
    crew.web.deposit(owner, "1.00", reference)
    crew.settle()
    crew.plan()
    crew.tally.take()
    crew.web.deposit(owner, "1.00", f"{reference}-2")
    crew.settle()
    crew.tally.take()
    crew.plan()
    crew.settle()
    return summed(crew.tally.take())


@pytest.fixture
def owner(crew: Crew) -> UUID:
    return crew.web.organization("0")


@pytest.mark.each_database
def test_where_nobody_is_told_only_positions_are_read(crew: Crew, owner: UUID) -> None:
    for reference in ("a", "b"):  # First what a process does only once.
        found = happen(crew, owner, reference)
    assert found == UNTOLD


@pytest.mark.each_database
def test_telling_one_endpoint_asks_what_is_written_down(crew: Crew, owner: UUID) -> None:
    draft = Draft(owner, "https://a.example", None, None, None)
    crew.web.webhooks.register(draft, Cause(crew.web.clock(), "request-1"))
    crew.settle()
    for reference in ("a", "b"):  # First what a process does only once.
        found = happen(crew, owner, reference)
    assert found == TOLD
