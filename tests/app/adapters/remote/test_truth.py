"""Whatever happens on the wire, a change is sent once at most, and its outcome is told truly."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from app.adapters.remote.api import RemoteApi, RemoteRules
from app.adapters.remote.reply import Malformed, decode
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.app.adapters.remote.conftest import MakeApi, Tiny
from tests.installation import wait_until
from tests.support.providers.server import FaultKind

THREADS = 8
TIMEOUT_S = 0.4
LATE_S = 0.6  # After the caller has gone.
ROUNDS = 2


class Bought(msgspec.Struct):
    order: str


def buy(api: RemoteApi, item: str) -> str:
    """Buy one thing, as an adapter does; tell what its caller was told."""
    try:
        reply = api.change("POST", "/orders", json={"item": item}, timeout_s=TIMEOUT_S)
        if reply.status == 401:
            return "refused"
        return "done" if decode(reply, Bought).order else "unknown"
    except (OutcomeUnknown, Malformed):
        return "unknown"
    except Unavailable:
        return "nothing"


@pytest.mark.parametrize("seed", range(2))
def test_what_is_told_is_what_has_happened(make_api: MakeApi, tiny: Tiny, seed: int) -> None:
    chance = random.Random(seed)
    faults = [*FaultKind] * ROUNDS
    chance.shuffle(faults)
    for fault in faults:
        tiny.fault(fault, on="buy", seconds=LATE_S, headers={"Retry-After": "0"})
    items = [f"item-{number}" for number in range(len(faults) * 2)]
    # More threads than places, so that some callers are turned away.
    api = make_api(rules=RemoteRules(calls_max=THREADS - 2, idle_s=0.2))
    with ThreadPoolExecutor(THREADS) as threads:
        told = dict(zip(items, threads.map(lambda item: buy(api, item), items), strict=True))
    tiny.heal()
    late = [each for each in tiny.asked("buy") if each.fault is FaultKind.DELAY]
    assert len(late) == ROUNDS
    wait_until(lambda: all(each.json()["item"] in tiny.bought for each in late))

    assert max(Counter(each.json()["item"] for each in tiny.asked("buy")).values()) == 1
    for item, outcome in told.items():
        if outcome != "unknown":
            assert (item in tiny.bought) is (outcome == "done"), (item, outcome)
    assert {"done", "unknown", "nothing", "refused"} == set(told.values())
