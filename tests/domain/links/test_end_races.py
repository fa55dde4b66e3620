"""Many end one link at once, and others change it: the network is told once, and paid back once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.accounts.refund_by_hand import HandRefund
from domain.errors import LinkBusy, LinkEnded, NotPossible, Refused
from domain.links.link import EndKind, Link
from tests.domain.asking import all_at_once
from tests.domain.buying import Buyer, Gate
from tests.installation import PATIENCE_S, Process

pytestmark = pytest.mark.usefixtures("long_calls")

SUM = 10_000_000  # All that the organization ever paid in.

Act = Callable[[], object]


@pytest.fixture
def buyer(clocked_buyer: Buyer) -> Buyer:
    allow(clocked_buyer.process)
    return clocked_buyer


def allow(process: Process) -> Process:
    process.link_ending = replace(process.link_ending, cancel_within=timedelta(days=1))
    return process


def bought(buyer: Buyer) -> Link:
    return buyer.create(buyer.sell())[0]


def finish(buyer: Buyer, link: Link, kind: EndKind, process: Process | None = None) -> Link:
    process = process or buyer.process
    run = process.link_ending.cancel if kind == "cancel" else process.link_ending.end
    return run(buyer.link(link.id), process.cause())


@pytest.mark.each_database
def test_of_twelve_that_cancel_at_once_all_are_told_that_it_is_cancelled(buyer: Buyer) -> None:
    link = bought(buyer)
    processes = (buyer.process, allow(buyer.open()))
    outcomes = all_at_once(12, lambda n: finish(buyer, link, "cancel", processes[n % 2]))
    assert [getattr(each, "state", each) for each in outcomes] == ["ended"] * 12
    counted = buyer.events()
    assert counted["link.ended"] == counted["link.end_requested"] == 1
    assert counted["wallet.refunded"] == 1
    assert buyer.balance_micros == SUM


def test_those_who_end_and_those_who_cancel_agree_on_one(buyer: Buyer) -> None:
    link = bought(buyer)
    kinds: list[EndKind] = ["end", "cancel"]
    outcomes = all_at_once(8, lambda n: finish(buyer, link, kinds[n % 2]))
    assert all(isinstance(each, Link | LinkEnded) for each in outcomes), outcomes
    ended = buyer.link(link.id).ended
    assert ended is not None
    refused = [each for each in outcomes if isinstance(each, LinkEnded)]
    assert len(refused) == (0 if ended.reason == "cancelled" else 4)
    assert buyer.balance_micros == (SUM if ended.reason == "cancelled" else SUM - 4_000_000)


@pytest.mark.parametrize("seed", [0, 1])  # Each order of the two.
def test_a_top_up_beside_a_cancellation_is_done_before_it_or_not_at_all(
    buyer: Buyer, seed: int
) -> None:
    link, plan_id = bought(buyer), buyer.sell("More", "1.00")
    acts: list[Act] = [
        lambda: finish(buyer, link, "cancel"),
        lambda: buyer.change(link.id, add=[plan_id]),
    ]
    outcomes = all_at_once(2, lambda n: acts[(n + seed) % 2]())
    assert all(not isinstance(e, Exception) or isinstance(e, Refused) for e in outcomes), outcomes
    assert buyer.link(link.id).state == "ended"
    assert buyer.balance_micros == SUM


@pytest.mark.each_database
@pytest.mark.parametrize("seed", [0, 1])
def test_a_refund_by_hand_beside_a_cancellation_gives_nothing_back_twice(
    buyer: Buyer, seed: int
) -> None:
    link = bought(buyer)
    plan_id = buyer.sell("More", "1.00")
    change, _ = buyer.change(link.id, add=[plan_id])
    price = change.requested.additions[0].price
    assert price is not None
    by_hand = HandRefund(price.transaction_id, "t-1", "a complaint", 400_000, {})
    process = allow(buyer.open())
    acts: list[Act] = [
        lambda: finish(buyer, link, "cancel"),
        lambda: process.accounts.refund(change.id, by_hand, process.cause()),
    ]
    outcomes = all_at_once(2, lambda n: acts[(n + seed) % 2]())
    assert all(not isinstance(e, Exception) or isinstance(e, NotPossible) for e in outcomes)
    assert buyer.balance_micros == SUM


def test_a_change_waits_for_an_end_that_the_network_refuses(buyer: Buyer) -> None:
    link, plan_id, gate = bought(buyer), buyer.sell("More", "1.00"), Gate(LinkBusy())
    buyer.network.before("remove_endpoint", gate)
    one = buyer._asking.submit(finish, buyer, link, "end")  # noqa: SLF001  # A thread asks.
    gate.wait()
    other = buyer.change_later(link.id, add=[plan_id])
    buyer.until_waiting(2)
    current = buyer.link(link.id)
    current.record(Link.EndKept, buyer.process.cause())
    buyer.process.log.append(current)
    assert other.result(PATIENCE_S)[0].added
    gate.open()
    one.exception(PATIENCE_S)
