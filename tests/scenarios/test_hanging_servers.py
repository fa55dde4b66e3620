"""A hanging server neither answers nor closes; SIGTERM ends a process that waits for it."""

import signal
import time
from contextlib import ExitStack

import pytest

from tests.house.running import END_S
from tests.house.system import System
from tests.installation import wait_until
from tests.scenarios.relay import Relay

CLEANLY, CUT_OFF = 0, 1
PORTS = {"DATABASE_URL": 5432, "BROKER_URL": 5672}

pytestmark = pytest.mark.timeout(180)


def test_sigterm_ends_each_process_in_time_though_both_servers_hang(system: System) -> None:
    system.command("migrate")
    with ExitStack() as ways:
        relays = {
            name: ways.enter_context(Relay(system.environment[name], port))
            for name, port in PORTS.items()
        }
        changes = {name: relay.url for name, relay in relays.items()}
        started = system.start_all(**changes)
        for relay in relays.values():
            relay.fall_silent()
        told_at = time.monotonic()
        for each in started.values():
            each.signal(signal.SIGTERM)
        wait_until(lambda: not any(each.is_running() for each in started.values()), 2 * END_S)
        assert time.monotonic() - told_at < END_S
        ends = {name: each.ended() for name, each in started.items()}
    assert set(ends.values()) <= {CLEANLY, CUT_OFF}, ends
