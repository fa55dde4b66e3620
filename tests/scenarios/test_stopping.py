"""SIGTERM ends every process in time and well, whatever it has in hand; nothing is lost.

It ends one in time, too, that waits for a server which hangs: which neither answers nor closes.
"""

import signal
import time
from contextlib import ExitStack
from threading import Event, Thread

import pytest

from tests.house.partner import Partner
from tests.house.running import COMES_UP_S, END_S, Running
from tests.house.system import System
from tests.installation import numbers, wait_until
from tests.scenarios.conftest import partner_of
from tests.scenarios.relay import Relay

NETWORK_S = int(END_S)  # A call may hang past any SIGTERM.
# What the network does comes 3 s after that; then the sweep looks, at last each 10 s.
SETTLED_S = NETWORK_S + 3.0 + 10.0 + 20.0

CLEANLY, CUT_OFF = 0, 1
PORTS = {"DATABASE_URL": 5432, "BROKER_URL": 5672}

pytestmark = pytest.mark.timeout(300)  # Two servers, ten processes, and what hangs for 33 s.


@pytest.fixture
def running(system: System) -> dict[str, Running]:
    """Each process once."""
    system.environment["PROVISIONING_DEADLINE_S"] = str(NETWORK_S)
    system.command("migrate")
    return system.start_all()


def hanging_link(partner: Partner) -> Thread:
    """Ask for a link whose network never answers, and wait until a worker has asked it."""
    plans = partner.ask("GET", "/v1/plans?per_page=100").data["data"]
    slow = next(each["id"] for each in plans if each["provider_plan_id"] == "sandbox-slow")
    thread = Thread(target=partner.ask, args=("POST", "/v1/links", {"plan_id": slow}), daemon=True)
    thread.start()
    return thread


def test_sigterm_ends_each_process_in_time_with_work_in_flight_and_while_others_hang(
    system: System, running: dict[str, Running], capsys: pytest.CaptureFixture[str]
) -> None:
    partner = partner_of(system)
    wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
    asked = hanging_link(partner)
    wait_until(lambda: endpoint_is_asked_for(system), COMES_UP_S)
    stop = Event()
    partner.look_up_many(numbers(1000), stop)
    ends = ended_s(running)
    with capsys.disabled():
        print("\nended after", {name: f"{took:.1f} s" for name, took in ends.items()})  # noqa: T201  # Figures for whoever measures.
    assert max(ends.values()) < END_S, ends
    asked.join()
    with ExitStack() as ways:
        relays = {
            name: ways.enter_context(Relay(system.environment[name], port))
            for name, port in PORTS.items()
        }
        running = system.start_all(**{name: relay.url for name, relay in relays.items()})
        wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
        partner.check()
        system.check(SETTLED_S)
        for relay in relays.values():
            relay.fall_silent()
        ends = ended_s(running, CLEANLY, CUT_OFF)
    assert max(ends.values()) < END_S, ends


def ended_s(running: dict[str, Running], *statuses: int) -> dict[str, float]:
    """Tell all processes at once to end; return how long each took."""
    told_at = time.monotonic()
    for each in running.values():
        each.signal(signal.SIGTERM)
    took: dict[str, float] = {}
    while len(took) < len(running):
        wait_until(
            lambda: any(not running[name].is_running() for name in running if name not in took),
            2 * END_S,
        )
        for name, each in running.items():
            if name not in took and not each.is_running():
                assert each.ended() in (statuses or (CLEANLY,)), (name, each.said()[-2000:])
                took[name] = time.monotonic() - told_at
    return took


def endpoint_is_asked_for(system: System) -> bool:
    """Tell whether a worker has written down that it calls the network."""
    recorder = system.container.log.recorder
    return any("endpoint_requested" in each.topic for each in recorder.select_notifications(1, 500))
