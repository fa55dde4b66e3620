"""Every process of the Procfile learns that its installation is held, and that it is released."""

import pytest

from tests.house.system import System
from tests.installation import numbers, wait_until
from tests.net.net import Receiver
from tests.scenarios.conftest import partner_of

HELD, RELEASED = "this installation is held", "this installation is released"
JOB = {"phone_numbers": numbers(20)}


@pytest.mark.soak  # In one process: tests/app/processes/test_hold.py.
def test_each_process_rests_from_a_hold_on_and_acts_from_a_release_on(
    system: System, receiver: Receiver
) -> None:
    system.environment["WEBHOOKS_ALLOW_PRIVATE"] = "true"
    system.command("migrate")
    partner = partner_of(system)
    running = system.start_all().values()
    partner.authorize()
    got = receiver.came
    assert partner.ask("POST", "/v1/webhooks", {"url": receiver.url}).status == 201
    assert partner.ask("POST", "/number-lookup/bulk", JOB).status == 202
    wait_until(lambda: len(got) == 1, 60)
    system.command("installation", "hold")
    for each in running:
        each.says(HELD)
    assert partner.ask("POST", "/number-lookup/bulk", JOB).status == 503
    assert partner.ask("GET", "/v1/wallet").status == 200
    system.command("installation", "release")
    for each in running:
        each.says(RELEASED)
    assert partner.ask("POST", "/number-lookup/bulk", JOB).status == 202
    wait_until(lambda: len(got) == 2, 60)
    system.command("audit", "verify")
