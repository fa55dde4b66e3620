"""Of two copies one is active; if it dies or stands still the other takes over, without doubles.

The copies are told apart by the `application_name` of their connections.
"""

import signal
import time
from collections.abc import Iterator

import psycopg
import pytest

from app.adapters.postgres.lock import key_of
from tests.house.load import at_work, goes_on
from tests.house.partner import Partner
from tests.house.running import COMES_UP_S
from tests.house.system import System
from tests.installation import wait_until
from tests.scenarios.conftest import partner_of

TAKE_OVER_S = 5.0  # The contract of production: after a kill another copy is active by then.
HOLDERS = """
    SELECT a.application_name, a.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND a.datname = current_database()
    AND (l.classid::bigint << 32 | l.objid::bigint) = %s
"""
FOLLOWERS = ("dispatcher", "projector", "clock")

pytestmark = pytest.mark.timeout(300)  # Two servers and eight processes.


class Copies:
    """Two named copies of one process, of which one is active."""

    def __init__(self, system: System, role: str) -> None:
        self.role = role
        url = system.environment["DATABASE_URL"]
        self._server = psycopg.connect(url, autocommit=True)
        self.running = {
            name: system.start(role, DATABASE_URL=f"{url}?application_name={name}")
            for name in (f"{role}-1", f"{role}-2")
        }

    def active(self) -> str | None:
        """Name the copy that holds the lock."""
        found = self._holder()
        return found[0] if found else None

    def passes_from(self, name: str, within_s: float = TAKE_OVER_S) -> str:
        """Wait until the other copy is active, and return its name."""
        wait_until(lambda: self.active() not in {None, name}, within_s)
        return str(self.active())

    def close(self) -> None:
        self._server.close()

    def _holder(self) -> tuple[str, int] | None:
        row = self._server.execute(HOLDERS, [key_of(self.role)]).fetchone()
        return (str(row[0]), int(row[1])) if row else None


@pytest.fixture
def followers(system: System) -> Iterator[list[Copies]]:
    """Two copies of each follower, beside `web` and a worker."""
    system.command("migrate")
    alone = [system.start("web"), system.start("worker")]
    made = [Copies(system, role) for role in FOLLOWERS]
    for each in [*alone, *(one for copies in made for one in copies.running.values())]:
        each.comes_up()
    for copies in made:
        wait_until(lambda copies=copies: copies.active() is not None)
    yield made
    for copies in made:
        copies.close()


@pytest.fixture
def partner(system: System, followers: list[Copies]) -> Partner:
    assert followers
    made = partner_of(system)
    wait_until(lambda: made.authorize().status == 200, COMES_UP_S)
    return made


def test_another_copy_takes_over_from_one_that_stands_still_and_from_one_that_is_killed(
    system: System,
    followers: list[Copies],
    partner: Partner,
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken_s: dict[str, float] = {}
    with at_work(partner):
        for copies in followers:
            goes_on(partner)
            first = str(copies.active())
            copies.running[first].signal(signal.SIGSTOP)
            second = copies.passes_from(first, COMES_UP_S)
            goes_on(partner)
            copies.running[first].signal(signal.SIGCONT)
            goes_on(partner)
            assert copies.active() == second
            killed_at = time.monotonic()
            copies.running[second].kill()
            assert copies.passes_from(second) == first
            taken_s[copies.role] = time.monotonic() - killed_at
        goes_on(partner)
    with capsys.disabled():
        print("\ntaken over after", {role: f"{taken:.2f} s" for role, taken in taken_s.items()})  # noqa: T201  # Figures for whoever measures.
    partner.check()
    system.check()
