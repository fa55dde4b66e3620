"""Of two copies one is active; if it dies or stands still the other takes over, without doubles.

Of `web` both are; when one of them dies the other goes on.

The copies are told apart by the `application_name` of their connections.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import copy
from urllib.request import urlopen

import psycopg
import pytest

from tests.house.load import at_work, goes_on
from tests.house.partner import Partner, Promised
from tests.house.running import COMES_UP_S, Running, value_of
from tests.house.system import System, holder_of
from tests.installation import wait_until
from tests.scenarios.conftest import partner_of
from tests.servers.running import free_port

TAKE_OVER_S = 5.0  # The contract of production: after a kill another copy is active by then.
FOLLOWERS = ("dispatcher", "projector", "clock")

BUYERS = 3
LOOKUPS = 'http_requests_total{method="POST",route="/number-lookup",status="200"}'

pytestmark = pytest.mark.timeout(400)  # Two servers and nine processes.


def another_web(system: System) -> tuple[Running, Callable[[], float]]:
    """Start a `web` on the port of all; return what tells how many lookups it has answered."""
    port = free_port()
    web = system.start("web", SHARE_PORT="true", METRICS_PORT=str(port))
    web.comes_up()

    def answered() -> float:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as shown:  # Our own URL.
            return value_of(shown.read().decode(), LOOKUPS) or 0.0

    return web, answered


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
        return holder_of(self._server, self.role)

    def passes_from(self, name: str, within_s: float = TAKE_OVER_S) -> str:
        """Wait until the other copy is active, and return its name."""
        wait_until(lambda: self.active() not in {None, name}, within_s)
        return str(self.active())

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def followers(system: System) -> Iterator[list[Copies]]:
    """Two copies of each follower, beside a worker."""
    system.command("migrate")
    worker = system.start("worker")
    made = [Copies(system, role) for role in FOLLOWERS]
    for each in [worker, *(one for copies in made for one in copies.running.values())]:
        each.comes_up()
    for copies in made:
        wait_until(lambda copies=copies: copies.active() is not None)
    yield made
    for copies in made:
        copies.close()


def test_another_copy_takes_over_from_one_that_stands_still_and_from_one_that_is_killed(
    system: System, followers: list[Copies], capsys: pytest.CaptureFixture[str]
) -> None:
    webs, taken_s = [another_web(system) for _ in range(2)], dict[str, float]()
    partner = partner_of(system)
    wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
    partners = [partner]
    with ExitStack() as stack:
        stack.enter_context(at_work(partner))
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
        for _ in range(1, BUYERS):  # Connections of one may all be at one `web`.
            partners.append(other := copy(partner))
            other.promised = Promised()
            stack.enter_context(at_work(other))
        last_web = outlived(system, webs, partners)
    with capsys.disabled():
        print("\ntaken over after", {role: f"{taken:.2f} s" for role, taken in taken_s.items()})  # noqa: T201  # Figures for whoever measures.
    for each in partners:
        each.check()
    assert last_web.stop() == 0
    system.check()


def outlived(
    system: System, webs: list[tuple[Running, Callable[[], float]]], partners: list[Partner]
) -> Running:
    """Kill one `web` and stop the other; return the one that takes over."""
    (first, by_first), (second, by_second) = webs
    wait_until(lambda: by_first() > 0 and by_second() > 0, COMES_UP_S)
    first.kill()
    goes_on(*partners)
    third, by_third = another_web(system)
    wait_until(lambda: by_third() > 0, COMES_UP_S)
    assert second.stop() == 0
    goes_on(*partners)
    return third
