"""A standby takes over with a loss, then gives back without one; every process begins anew."""

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path

import psycopg
import pytest

from tests.app.adapters.pair import Pair
from tests.app.adapters.postgres.test_failover import GAPS, balances
from tests.installation import wait_until
from tests.scenarios.conftest import partner_of
from tests.scenarios.load import grown, load
from tests.scenarios.partner import Partner, Promised
from tests.scenarios.system import PROCESSES, System, failures, unfinished

COMES_UP_S = 60.0
GOES_ON_S = 30.0  # Half of it when the machine does nothing else.
EVENTS = "SELECT notification_id, originator_id, originator_version FROM log_events"

Seen = dict[int, tuple[object, int]]

pytestmark = [
    pytest.mark.soak,  # Half a minute for each round.
    pytest.mark.timeout(600),  # Three servers and five processes.
]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with Pair() as made:
        yield made


@pytest.fixture
def system(tmp_path: Path, pair: Pair, broker_url: str) -> Iterator[System]:
    made = System(tmp_path, pair.url, broker_url)
    yield made
    made.close()


def seen(pair: Pair) -> Seen:
    with psycopg.connect(pair.primary.url()) as connection:
        return {row[0]: (row[1], row[2]) for row in connection.execute(EVENTS)}


def starts(pids: list[int]) -> list[str]:
    """Return when processes were started, in ticks since the boot."""
    files = (Path(f"/proc/{pid}/stat").read_text() for pid in pids)
    return [text.rpartition(")")[2].split()[19] for text in files]


def works(partner: Partner) -> None:
    """Wait until all that a partner asks for is done again."""
    wait_until(grown(partner), GOES_ON_S)


@pytest.mark.parametrize(("names", "rounds"), [(PROCESSES, 3), (["serve"], 1)])
def test_every_process_begins_anew_after_a_failover_and_the_way_back(
    system: System, pair: Pair, names: Sequence[str], rounds: int
) -> None:
    assert system.run("migrate").returncode == 0
    running = {name: system.start(name) for name in names}
    for name, each in running.items():
        each.says("serving" if name in {"web", "serve"} else "is at work", COMES_UP_S)
    began = starts([each.pid for each in running.values()])
    partner = partner_of(system)
    wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
    before: Seen = {}
    for _ in range(rounds):
        lossy, safe = copy(partner), copy(partner)
        lossy.promised, safe.promised = Promised(), Promised()
        with load(lossy):
            works(lossy)
            pair.lose_sight()
            works(lossy)  # What is promised from here on is lost.
            before |= seen(pair)
            pair.fail_over()
            works(lossy)
            pair.bring_back()
        pair.wait_for_standby("ANY 1 (*)")
        with load(safe):
            works(safe)
            before |= seen(pair)
            pair.fail_over()
            works(safe)
        safe.check()
        pair.bring_back()
    assert starts([each.pid for each in running.values()]) == began
    check(system, pair, before, rounds)


def check(system: System, pair: Pair, before: Seen, rounds: int) -> None:
    """Fail unless the log is whole, shorter than it was, and says so."""
    system.container = system.container.anew()  # The test's own lives with the first server.
    after = seen(pair)
    assert before.keys() - after.keys(), "nothing was lost"
    assert all(before[position] == after[position] for position in before.keys() & after.keys())
    with psycopg.connect(pair.primary.url()) as connection:
        assert connection.execute(GAPS).fetchall() == []
    with system.container.views.reading() as connection:
        organizations = system.container.organizations.all(connection)
    for each in organizations:
        assert len(set(balances(system.container, each.id))) == 1
    assert unfinished(system) == []
    assert failures(system) == ""
    assert system.run("audit", "verify").stdout.count("known loss") == rounds
