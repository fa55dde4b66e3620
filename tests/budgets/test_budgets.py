"""What each operation asks of the databases: exactly, for these numbers do not move with the host.

Whoever changes one writes the new number into the table, with its reason.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from app.adapters.postgres.waker import CHANNEL, WORK_CHANNEL
from tests.budgets.crew import OTHERS, Crew
from tests.budgets.partner import OPERATIONS, Partner, run_once
from tests.budgets.tally import NETWORK, Statement, told

pytestmark = pytest.mark.each_database

ROLES = ("web", *OTHERS, NETWORK)


class Budget(NamedTuple):
    """Statements/commits of each role that asks anything."""

    postgresql: str
    sqlite: str


# Who calls is remembered where the commits of other processes are heard of: on PostgreSQL.
BUDGETS: Mapping[str, Budget] = {
    # The client's stream, and its wrong secrets.
    "token": Budget("web 2/0", "web 2/0"),
    # The wallet as it is now; the commit. A provider at hand has no cache.
    # SQLite inserts event by event, and looks for the one before each stream's first.
    # The projector: its positions, the events, its fence, the new positions; a row, its hour, a
    # balance; the month that the wallet stands in, and the entry's lines of its statement and its
    # usage.
    "lookup": Budget(
        "web 2/1, projector 8/1, dispatcher 1/0", "web 4/1, projector 8/1, dispatcher 1/0"
    ),
    # And the key's stream.
    "lookup with a key": Budget(
        "web 3/1, projector 8/1, dispatcher 1/0", "web 5/1, projector 8/1, dispatcher 1/0"
    ),
    # The key's stream.
    "replay of a lookup": Budget("web 1/0", "web 2/0"),
    # Four commits of a worker are one slice: taken in hand, begun, settled, given back.
    # The projector writes a job once a batch; at its end the job's stream, for what is told of it.
    # What is told is one row more, here and of links.
    "job of 1": Budget(
        "web 4/1, projector 19/2, dispatcher 3/1, worker 9/4",
        "web 6/1, projector 19/2, dispatcher 3/1, worker 12/4",
    ),
    # Four slices.
    "job of 1000": Budget(
        "web 4/1, projector 25/2, dispatcher 3/1, worker 36/16",
        "web 6/1, projector 19/2, dispatcher 3/1, worker 45/16",
    ),
    # Its counters, then all of it.
    "read of a job": Budget("web 2/0", "web 3/0"),
    "results of a job": Budget("web 2/0", "web 3/0"),
    # The head and the positions; the counts by month, then a page.
    "list of jobs": Budget("web 4/0", "web 5/0"),
    "wallet": Budget("web 1/0", "web 2/0"),
    # The head of the log and the positions, for a caller reads what he has written.
    "transactions": Budget("web 4/0", "web 5/0"),
    # The organization, the client, the wallet.
    "account": Budget("web 3/0", "web 4/0"),
    # Of the network itself the last ones. A request looks at its link when the worker tells of its
    # outcome, and at the plan for its reply. The worker: link and eSIM, what is taken with the
    # intent, the first reading, the outcome.
    "link": Budget(
        "web 6/1, projector 14/1, dispatcher 3/1, worker 6/3, network 6/1",
        "web 7/1, projector 14/1, dispatcher 3/1, worker 13/3, network 6/1",
    ),
    "link with a key": Budget(
        "web 7/1, projector 14/1, dispatcher 3/1, worker 6/3, network 6/1",
        "web 8/1, projector 14/1, dispatcher 3/1, worker 13/3, network 6/1",
    ),
    # The usage is read from the network, and kept; the plans are read for the reply.
    "read of a link": Budget("web 3/1, network 1/0", "web 4/1, network 1/0"),
    "list of links": Budget("web 5/0", "web 6/0"),
    "top-up": Budget(
        "web 10/2, projector 13/1, dispatcher 3/1, worker 6/2, network 3/1",
        "web 14/2, projector 13/1, dispatcher 3/1, worker 12/2, network 3/1",
    ),
    # The list that bounds them, and the commit.
    "webhook": Budget(
        "web 2/1, projector 3/1, dispatcher 1/0", "web 5/1, projector 3/1, dispatcher 1/0"
    ),
    # That list and the stream of each, of which there are ten at most; here four.
    "list of webhooks": Budget("web 5/0", "web 6/0"),
    # The positions, the page, and entries of the wallet.
    "page of events": Budget("web 3/0", "web 4/0"),
    # The positions, and the page.
    "page of two types": Budget("web 2/0", "web 3/0"),
    # The endpoint; the page and how many there are.
    "list of deliveries": Budget("web 3/0", "web 4/0"),
    # Its reply reads the network.
    "rename": Budget(
        "web 4/2, projector 5/1, dispatcher 1/0, network 1/0",
        "web 6/2, projector 5/1, dispatcher 1/0, network 1/0",
    ),
    # The link, the intent, the end, and what was last seen for the reply. The projector reads the
    # status before.
    "end of a link": Budget(
        "web 5/2, projector 7/1, dispatcher 1/0, network 2/1",
        "web 8/2, projector 7/1, dispatcher 1/0, network 2/1",
    ),
    # Its use is read from the network first, and the refund is in the commit of the end.
    "cancellation": Budget(
        "web 6/2, projector 14/1, dispatcher 1/0, network 3/1",
        "web 10/2, projector 14/1, dispatcher 1/0, network 3/1",
    ),
    # The link, with its code.
    "QR code": Budget("web 1/0", "web 2/0"),
}


# How often those are woken who follow the log on PostgreSQL, and how often the dispatcher, who is
# told only of events that ask for work. A commit of mere steps wakes nobody.
# Operations that are not named wake nobody.
WAKES: Mapping[str, tuple[int, int]] = {
    # Its acceptance, which alone asks for work; the slice that begins, and its outcome.
    "job of 1": (3, 1),
    "job of 1000": (9, 1),
    # Its request, and its outcome.
    "link": (2, 1),
    "link with a key": (2, 1),
    "top-up": (2, 1),
    "webhook": (1, 0),
    "rename": (1, 0),
    "end of a link": (1, 0),
    "cancellation": (1, 0),
}


@contextmanager
def heard_on(crew: Crew) -> Iterator[Callable[[], tuple[int, int]]]:
    """Lend a function that tells how often they were woken since its last call."""
    if crew.database == "sqlite":
        yield lambda: (0, 0)
        return
    with crew.bystander() as listener:
        for channel in (CHANNEL, WORK_CHANNEL):
            listener.execute(f"LISTEN {channel}")

        def heard() -> tuple[int, int]:
            counts = Counter(each.channel for each in listener.notifies(timeout=0.05))
            return counts[CHANNEL], counts[WORK_CHANNEL]

        yield heard


# What is read whole on purpose, for it is small: a row per follower, per slice in hand, per server
# that the log has ever been on; the catalogue; at the start of a projector, a row per organization
# that wants to be told of a low balance. The network's own tables are those of a simulation.
READ_WHOLE = {"follower_positions", "counters", "log_events_servers", "plans"}
READ_WHOLE |= {"low_balance_thresholds"}


def test_each_operation_asks_and_wakes_what_is_written_down(crew: Crew) -> None:
    partner, differences, woken = Partner(crew), list[str](), dict[str, tuple[int, int]]()
    with heard_on(crew) as heard:
        for name, run in OPERATIONS.items():
            for _ in range(2):  # First what a process does only once.
                run_once(crew, partner, run)
            heard()
            ran = run_once(crew, partner, run)
            woken |= {name: count} if any(count := heard()) else {}
            found, budget = summed(ran), getattr(BUDGETS[name], crew.database)
            if found != budget:
                differences.append(f"{name}: {found}\n    instead of: {budget}\n{told(ran)}")
    assert not differences, f"{crew.database} is asked\n" + "\n\n".join(differences)
    assert woken == (WAKES if crew.database == "postgresql" else {})
    crew.close()
    scanned = {each for each in crew.scanned if not each.startswith("simulated_")}
    assert scanned <= READ_WHOLE, "it grows, and what it was asked has no index"


def test_limits_ask_nothing_more(crew: Crew) -> None:
    partner, accounts = Partner(crew), crew.web.accounts
    accounts.set_spending_limit(partner.id, 10**12, crew.service.cause())
    cause = crew.service.cause()
    accounts.change_organization(partner.id, lambda it: it.set_rate_limit(60_000, cause))
    crew.settle()
    for name in ("lookup", "job of 1", "link", "top-up"):
        for _ in range(2):  # The first requests are counted ahead.
            run_once(crew, partner, OPERATIONS[name])
        ran = run_once(crew, partner, OPERATIONS[name])
        assert summed(ran) == getattr(BUDGETS[name], crew.database), told(ran)


def test_followers_that_find_nothing_new_ask_nothing_else(crew: Crew) -> None:
    crew.settle(look=True)  # The first one may still write that all is read.
    crew.tally.take()
    crew.settle(look=True)
    # The positions and the events; the dispatcher knows its own position for a second.
    assert summed(crew.tally.take()) == "projector 2/0, dispatcher 1/0"


def summed(ran: Sequence[Statement]) -> str:
    counts = Counter((each.role, each.kind) for each in ran)
    roles = [role for role in ROLES if counts[role, "statement"] or counts[role, "commit"]]
    return ", ".join(f"{it} {counts[it, 'statement']}/{counts[it, 'commit']}" for it in roles)
