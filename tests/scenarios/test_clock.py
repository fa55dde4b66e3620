"""A process whose clock jumps does nothing until it is right, and then goes on by itself."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from tests.house.partner import Partner
from tests.house.running import Running
from tests.house.system import System
from tests.installation import numbers, wait_until
from tests.net.net import Receiver
from tests.scenarios.conftest import partner_of
from tests.servers.clock import JumpingClock
from workers.routes import slice_message

HOUR_S = 3_600
RESTS_WITHIN_S, WORKS_WITHIN_S = 10.0, 15.0
QUIET_S = 3.0  # A worker would have begun by then.
WRONG = "is 3600.0 s"
JOB = {"phone_numbers": numbers(20)}


@pytest.fixture
def clock(tmp_path: Path) -> JumpingClock:
    return JumpingClock(tmp_path)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with closing(Receiver()) as made:
        yield made


def of_the_procfile(system: System, clock: JumpingClock) -> list[Running]:
    return [*system.start_all(**clock.environment).values()]


def of_one_process(system: System, clock: JumpingClock) -> list[Running]:
    return [system.start("serve", BROKER_URL="memory://", **clock.environment).comes_up()]


def readiness(partner: Partner) -> tuple[int, list[str]]:
    reply = partner.ask("GET", "/readyz")
    return reply.status, reply.json["missing"]


def ask_behind_their_back(system: System) -> int:
    """Have a right clock ask for a job, and ring for it; return the head of the log."""
    parts = system.container
    owner = parts.read(parts.organizations.all)[0].id
    parts.publisher.publish(slice_message(parts.create_job(owner, JOB["phone_numbers"]), 0))
    return parts.log.head()


def expect_refusals(partner: Partner, plan: str) -> None:
    for method, path, body in (
        ("GET", "/v1/wallet", None),
        ("POST", "/number-lookup/bulk", JOB),
        ("POST", "/v1/links", {"plan_id": plan}),
    ):
        refused = partner.ask(method, path, body)
        assert (refused.status, refused.json["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert WRONG in refused.json["error"]["message"]
        assert refused.json["error"]["details"]["retryable"] is True


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("start", "ahead_s"),
    [pytest.param(of_the_procfile, HOUR_S, marks=pytest.mark.soak), (of_one_process, -HOUR_S)],
)
def test_a_clock_that_jumps_stops_all_work_until_it_is_right(
    system: System,
    clock: JumpingClock,
    receiver: Receiver,
    start: Callable[[System, JumpingClock], list[Running]],
    ahead_s: int,
) -> None:
    system.environment["WEBHOOKS_ALLOW_PRIVATE"] = "true"
    system.command("migrate")
    partner = partner_of(system)
    running = start(system, clock)
    partner.authorize()
    log, plan = system.container.log, partner.ask("GET", "/v1/plans").data["data"][0]["id"]
    partner.ask("POST", "/v1/webhooks", {"url": receiver.url})
    assert partner.ask("POST", "/number-lookup/bulk", JOB).status == 202
    wait_until(lambda: len(receiver.asked("told")) == 1, 60)
    began = time.monotonic()
    clock.jump(ahead_s)
    wait_until(lambda: readiness(partner)[0] == 503, RESTS_WITHIN_S)
    for each in running:
        each.says(WRONG, RESTS_WITHIN_S)
    assert time.monotonic() - began < RESTS_WITHIN_S
    # All callers of a second get one answer.
    wait_until(lambda: any(WRONG in why for why in readiness(partner)[1]), RESTS_WITHIN_S)
    expect_refusals(partner, plan)
    head = ask_behind_their_back(system)
    Event().wait(QUIET_S)
    assert log.head() == head
    began = time.monotonic()
    clock.jump(0)
    wait_until(lambda: readiness(partner)[0] == 200, WORKS_WITHIN_S)
    for each in running:
        each.says("right again", WORKS_WITHIN_S)
    assert time.monotonic() - began < WORKS_WITHIN_S
    wait_until(lambda: len(receiver.asked("told")) == 2, 60)
    assert partner.ask("POST", "/v1/links", {"plan_id": plan}).status == 201
    system.check()
