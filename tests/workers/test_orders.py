"""Whatever happens to an order, it becomes a link, goes back to the network, or is an incident."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.cost import Cost
from domain.errors import InsufficientBalance
from domain.links.create import LinkRequest
from domain.links.link import Link, Stage
from domain.links.network import NoActivationCode
from domain.money import parse_amount
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.order_network import SETTLES_AFTER, SHOWN_LATE
from tests.workers.link_lab import DEPOSIT
from tests.workers.network_faults import UNKNOWN, arm
from tests.workers.order_lab import OrderLab, Orders


@pytest.fixture
def lab(orders: Orders) -> OrderLab:
    return orders()


def lose(lab: OrderLab, *, done: bool = True) -> Link:
    """Ask for a link whose order gets no reply."""
    arm(lab.network, "order", UNKNOWN["unknown, done" if done else "unknown, not done"])
    return lab.create()


def until_called(lab: OrderLab, seconds: float = 5) -> None:
    lab.clock.forward(seconds=seconds)


def test_an_order_is_paid_for_before_it_is_placed_and_brings_its_esim(lab: OrderLab) -> None:
    link = lab.create()
    (bought,) = lab.book.orders
    assert (link.stage, link.iccid, link.endpoint_id) == (Stage.ACTIVE, *[bought.order.iccid] * 2)
    topics = [type(each).TOPIC for each in lab.books.events if each.originator_id == link.id]
    assert topics == [
        "link.requested",
        "link.order_requested",
        "link.order_placed",
        "link.endpoint_created",
        "link.activated",
    ]
    (activation,) = link.current_activations
    assert activation.addon_id in bought.addons
    costs = [each.cost for each in lab.books.events if isinstance(each, Link.Activated)]
    assert costs == [bought.order.cost]


def test_a_price_is_told_without_a_call(lab: OrderLab) -> None:
    wanted = LinkRequest(lab.organization_id, lab.plan(price="4.00"), None, None)
    command = replace(lab.process.link_create, offers=lab.offer)
    plan, left_micros = command.quote(wanted, lab.process.cause())
    assert (plan.price_micros, left_micros) == (4_000_000, parse_amount(DEPOSIT) - 4_000_000)
    assert lab.network.calls == []


def test_a_refusal_of_the_wallet_does_not_fail_a_link_that_another_has_ordered(
    lab: OrderLab,
) -> None:
    late, link_id = lab.other_process(), lab.request()

    def refuse(*_: object) -> int:
        lab.network.after("order", OutcomeUnknown("lost"))
        assert lab.work(link_id).stage is Stage.ORDERING
        raise InsufficientBalance(2, 1, "USD")

    late.committer.commit_entries = refuse  # type: ignore[method-assign]  # In this process.
    late.provisioning.work(link_id)
    lab.settle()
    assert lab.link(link_id).stage is Stage.ACTIVE


def test_a_lost_order_is_adopted_only_after_its_time_out(lab: OrderLab) -> None:
    link = lose(lab)
    for _ in range(4):
        until_called(lab, 1)
        assert lab.work(link.id).stage is Stage.ORDERING
        assert lab.network.count("orders") == 0
    until_called(lab, 1)
    assert lab.work(link.id).stage is Stage.ACTIVE
    assert lab.network.count("order") == 1
    created = [each for each in lab.books.events if isinstance(each, Link.EndpointCreated)]
    assert [each.adopted for each in created] == [True]
    lab.settle()


def test_a_network_that_keeps_our_reference_is_asked_at_once_though_its_clock_is_off(
    orders: Orders,
) -> None:
    lab = orders(stores_reference=True)
    lab.book.late_at = lab.clock() - timedelta(minutes=5)
    other = lab.book.buy(lab.link(lab.request()).requested.plan.at_provider, "somebody")
    link = lose(lab)
    assert link.stage is Stage.ACTIVE
    assert link.iccid != other.iccid
    lab.settle()
    assert lab.left_over() == []
    lab.is_odd = True  # One order is somebody's.


def test_an_order_that_never_happened_is_repeated_once_that_is_certain(lab: OrderLab) -> None:
    link = lab.request(deadline_s=120)
    arm(lab.network, "order", UNKNOWN["unknown, not done"])
    began = lab.clock()
    lab.work(link)
    while lab.network.count("order") == 1:
        lab.sweep()
        lab.clock.forward(seconds=1)
    assert lab.clock() - began >= SETTLES_AFTER
    lab.settle()
    assert lab.link(link).stage is Stage.ACTIVE
    assert (lab.network.count("order"), len(lab.book.orders)) == (2, 1)


@pytest.mark.parametrize("takes_back", [True, False])
def test_what_appears_after_the_refund_goes_back_or_is_an_incident(
    orders: Orders, caplog: pytest.LogCaptureFixture, *, takes_back: bool
) -> None:
    lab = orders(takes_back=takes_back)
    lab.book.lag = lambda: SHOWN_LATE
    link = lose(lab)
    lab.clock.forward(seconds=15)
    link = lab.work(link.id)
    assert (link.stage, link.failure is not None) == (Stage.ENDED, True)
    lab.settle()
    (bought,) = lab.book.orders
    assert bought.taken_back == takes_back
    left = [] if takes_back else [bought.order.order_reference]
    assert lab.left_over() == left
    assert [each.reference for each in lab.owed() if each.left_over] == left
    assert ("lost_order.left_over" in lab.timeline(link.id)) == (not takes_back)
    assert ("is left over: nobody has it" in caplog.text) == (not takes_back)


def test_equal_orders_are_interchangeable_and_what_is_left_goes_back(lab: OrderLab) -> None:
    """The first link takes the order of the second, whose reply then names a taken ICCID."""
    lags = iter([SHOWN_LATE, timedelta()])
    lab.book.lag = lambda: next(lags)
    plan = lab.plan()
    first = lab.request(plan)
    arm(lab.network, "order", UNKNOWN["unknown, done"])
    lab.work(first)
    until_called(lab)
    second = lab.request(plan)
    lab.network.after("order", lambda: lab.work(first))  # Before the second hears its reply.
    lab.work(second)
    assert lab.link(first).iccid == lab.book.orders[1].order.iccid
    assert lab.link(second).stage is Stage.ORDERING
    lab.settle()
    assert lab.link(second).failure is not None
    assert [each.taken_back for each in lab.book.orders] == [True, False]
    assert len(lab.book.orders) == 2


def test_two_links_whose_replies_were_lost_take_an_order_each(lab: OrderLab) -> None:
    plan = lab.plan()
    links = [lab.request(plan) for _ in range(2)]
    for link in links:
        arm(lab.network, "order", UNKNOWN["unknown, done"])
        lab.work(link)
    until_called(lab)
    lab.work(links[1])
    lab.settle()
    taken = {lab.link(link).iccid for link in links}
    assert taken == {bought.order.iccid for bought in lab.book.orders}


def test_an_addition_whose_reply_was_lost_is_booked_as_on_the_invoice(orders: Orders) -> None:
    lab, cost = orders(), Cost(2_100_000, "EUR")
    link, plan = lab.create(), lab.plan("eu-2", cost=cost)
    arm(lab.network, "add_plan", UNKNOWN["unknown, done"])
    lab.work_change(lab.request_change(link.id, (), [plan]))
    lab.settle()
    costs = [each.cost for each in lab.books.events if isinstance(each, Link.PlanAdded)]
    assert costs == [Cost(2_100_000, "EUR", "order of addition-1")]


@pytest.mark.parametrize("is_lost", [False, True])
def test_an_esim_that_was_taken_back_may_be_sold_to_us_again(
    lab: OrderLab, *, is_lost: bool
) -> None:
    lab.book.resells = True
    lab.book.lag = lambda: SHOWN_LATE
    lose(lab)
    lab.settle()
    (bought,) = lab.book.orders
    assert bought.taken_back
    lab.book.lag = timedelta
    lab.clock.forward(seconds=1)
    link = lose(lab) if is_lost else lab.create()
    lab.settle()
    link = lab.link(link.id)
    assert (link.stage, link.iccid) == (Stage.ACTIVE, bought.order.iccid)


@pytest.mark.parametrize("lost", [False, True])
def test_an_esim_without_activation_code_is_a_failed_order(orders: Orders, *, lost: bool) -> None:
    lab = orders(stores_reference=True)
    lab.network.before("lpa", *[NoActivationCode("no code")] * 2)
    link = lose(lab) if lost else lab.create()
    assert link.failure is not None
    assert (link.failure.code, link.failure.refund is None) == ("PROVISIONING_FAILED", False)
    assert link.lpa is None
    lab.settle()
    assert lab.link(link.id).stage is Stage.ENDED
    assert [each.taken_back for each in lab.book.orders] == [True]


def test_an_order_waits_for_the_activation_code_of_its_esim(lab: OrderLab) -> None:
    lab.network.before("lpa", Unavailable("down"))
    link = lab.create()
    assert lab.link(link.id).stage is Stage.ORDERING
    lab.settle()
    assert lab.link(link.id).lpa is not None
