"""Whatever is killed, an endpoint is told of each event: in order, with one id for each."""

import random
from collections import defaultdict
from collections.abc import Iterator

import pytest

from app.bootstrap.known_keys import ensure_keys
from domain.cause import Cause
from domain.webhooks.commands import Draft
from tests.installation import wait_until
from tests.scenarios.system import System
from tests.workers.webhooks.receiver import Got, Receiver

ROUNDS, EACH = 15, 8
FAILS_EVERY = 9  # A repeat comes after five seconds.
PATIENCE_S = 240.0  # An attempt of a killed worker is made again after thirty seconds.

pytestmark = [pytest.mark.soak, pytest.mark.timeout(420)]


def answer(got: list[Got]) -> int:
    """Fail at first for some; a repeat is taken."""
    is_first = [each.id for each in got].count(got[-1].id) == 1
    return 500 if is_first and len(got) % FAILS_EVERY == 0 else 200


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        running.answers["/told"] = answer
        yield running


def assert_nothing_is_missing(got: list[Got]) -> None:
    """Each event came, under one id, and first attempts in the order of the log."""
    ids = defaultdict[str, set[str]](set)
    for each in got:
        ids[each.data["transaction_id"]].add(each.id)
    assert len(ids) == ROUNDS * EACH
    assert {len(each) for each in ids.values()} == {1}
    first = list(dict.fromkeys(each.data["position"] for each in got))
    assert first == sorted(first)


def test_a_receiver_misses_nothing_while_processes_are_killed(
    system: System, receiver: Receiver
) -> None:
    system.environment["WEBHOOKS_ALLOW_PRIVATE"] = "true"
    assert system.run("migrate").returncode == 0
    parts, chance = system.container, random.Random(7)
    ensure_keys(parts)
    cause = Cause(parts.clock(), "scenario")
    owner = parts.accounts.register_organization(
        cause, name="told", price_micros=None, monthly_link_fee_micros=0, with_wallet=True
    ).id
    parts.webhooks.register(Draft(owner, receiver.url("/told"), None, None, None), cause)
    running = [system.start(name) for name in ("worker", "worker", "dispatcher", "projector")]
    for each in running:
        each.says("is at work")
    for number in range(ROUNDS * EACH):
        parts.accounts.deposit(owner, 1_000_000, f"d-{number}", cause)
        if number % EACH == EACH - 1:
            seen = len(receiver.got["/told"])
            wait_until(lambda seen=seen: len(receiver.got["/told"]) > seen, PATIENCE_S)  # type: ignore[misc]  # As it is now.
            index = chance.randrange(len(running))
            running[index].kill()
            running[index] = system.start(running[index].name)
    got = receiver.got["/told"]
    wait_until(lambda: len({each.id for each in got}) == ROUNDS * EACH, PATIENCE_S)
    deliveries = parts.webhook_deliveries
    [endpoint] = parts.webhooks.all(owner)

    def is_settled() -> bool:
        return {each.status for each in deliveries.page(owner, endpoint.id, 0, 999)[0]} == {
            "delivered"
        }

    wait_until(is_settled, PATIENCE_S)
    assert_nothing_is_missing(got)
