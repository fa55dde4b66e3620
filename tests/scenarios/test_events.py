"""Who waits for events in one process hears what another commits and a third projects."""

import signal
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

import pytest

from tests.house.partner import Partner, Reply
from tests.house.running import COMES_UP_S
from tests.house.system import System
from tests.installation import wait_until
from tests.scenarios.conftest import partner_of

WAIT_S = 25
LINE = "GET /v1/events"
AT_ONCE_S = 5.0  # On a crowded machine; on one of its own a tenth of a second.

pytestmark = pytest.mark.timeout(200)


def deposit(system: System, owner: UUID) -> None:
    """Commit an event in the process of the test."""
    system.container.deposit(owner, "1.00")


def end_of(partner: Partner) -> str:
    """Return the cursor behind all that is there to be read."""
    page = partner.ask("GET", "/v1/events").data
    assert not page["has_more"]
    return str(page["next"])


def test_who_waits_hears_of_other_processes_and_is_answered_at_the_end(system: System) -> None:
    system.command("migrate")
    web, projector = system.start("web"), system.start("projector")
    web.comes_up()
    projector.comes_up()
    partner = partner_of(system)
    wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
    owner = UUID(partner.ask("GET", "/v1/account").data["organization"]["id"])
    wait_until(lambda: len(partner.ask("GET", "/v1/events").data["data"]) == 2)

    with ThreadPoolExecutor(1) as pool:

        def wait() -> Future[Reply]:
            """Ask for what comes next; there is a line for a reply that waits, too."""
            after = end_of(partner)
            before = web.said().count(LINE)
            asked = pool.submit(partner.ask, "GET", f"/v1/events?wait={WAIT_S}&after={after}")
            wait_until(lambda: web.said().count(LINE) > before)
            return asked

        def told_of_one(asked: Future[Reply]) -> bool:
            return len(asked.result(AT_ONCE_S).data["data"]) == 1

        asked = wait()
        assert not asked.done()
        deposit(system, owner)
        assert told_of_one(asked)
        asked = wait()
        projector.signal(signal.SIGKILL)
        projector.ended()
        deposit(system, owner)
        assert not asked.done()
        system.start("projector").comes_up()
        assert told_of_one(asked)
        asked = wait()
        web.signal(signal.SIGTERM)
        assert asked.result(AT_ONCE_S).data["data"] == []
        assert web.ended() == 0
