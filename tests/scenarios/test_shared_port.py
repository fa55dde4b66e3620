"""Two `web` on one port: the kernel gives each its part, and when one dies the other goes on."""

from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from urllib.request import urlopen

import pytest

from tests.house.load import at_work, goes_on
from tests.house.partner import Partner, Promised
from tests.house.running import COMES_UP_S, Running, value_of
from tests.house.system import System
from tests.installation import wait_until
from tests.scenarios.conftest import partner_of
from tests.servers.running import free_port

BUYERS = 3
LOOKUPS = 'http_requests_total{method="POST",route="/number-lookup",status="200"}'

pytestmark = pytest.mark.timeout(300)  # Two servers and eight processes.


def started(system: System) -> tuple[Running, Callable[[], float]]:
    """Start another `web` on the port; return what tells how many lookups it has answered."""
    port = free_port()
    web = system.start("web", SHARE_PORT="true", METRICS_PORT=str(port))
    web.comes_up()

    def answered() -> float:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as shown:  # Our own URL.
            return value_of(shown.read().decode(), LOOKUPS) or 0.0

    return web, answered


def many_at_work(partner: Partner, stack: ExitStack) -> list[Partner]:
    """Let several clients of one partner work at once."""
    made = [copy(partner) for _ in range(BUYERS)]
    for each in made:
        each.promised = Promised()
        stack.enter_context(at_work(each))
    return made


def test_of_two_web_on_one_port_each_answers_and_one_that_dies_takes_no_reply_with_it(
    system: System,
) -> None:
    system.command("migrate")
    for name in ("worker", "dispatcher", "projector", "clock"):
        system.start(name)
    (first, by_first), (second, by_second) = started(system), started(system)
    partner = partner_of(system)
    wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
    with ExitStack() as stack:
        partners = many_at_work(partner, stack)
        wait_until(lambda: by_first() > 0 and by_second() > 0, COMES_UP_S)
        first.kill()
        goes_on(*partners)
        third, by_third = started(system)
        wait_until(lambda: by_third() > 0, COMES_UP_S)
        assert second.stop() == 0
        goes_on(*partners)
    for each in partners:
        each.check()
    assert third.stop() == 0
    system.check()
