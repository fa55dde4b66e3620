"""Links of networks that sell by order end as far as each of these can end them."""

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from msgspec import structs

from domain.catalogue.file_errors import FileRefused
from domain.errors import ProvisioningError
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.network import NoSuchEndpoint, ProviderPlan
from domain.provider_errors import OutcomeUnknown, Rejected, Unavailable
from tests.order_network import SellingByOrder
from tests.plan_files import take_over
from tests.workers.order_lab import OrderLab, Orders


@pytest.fixture
def lab(orders: Orders) -> OrderLab:
    return orders()


def holder(lab: OrderLab, link: Link) -> object:
    assert link.iccid is not None
    return lab.process.log.get(Esim, Esim.id_of(link.network, link.iccid)).link_id


def far(lab: OrderLab) -> SellingByOrder:
    network = lab.late.inner
    assert isinstance(network, SellingByOrder)
    return network


def test_an_ended_link_is_suspended_with_nothing_on_it_and_keeps_its_esim(lab: OrderLab) -> None:
    link = lab.create()
    lab.change(link.id, add=["t1"])
    assert lab.finish(link.id, "end").state == "ended"
    (bought,) = lab.book.orders
    assert (bought.status, bought.addons, bought.taken_back) == ("suspended", {}, False)
    assert holder(lab, link) == link.id


def test_what_the_network_does_not_take_off_stays_on_a_suspended_esim(lab: OrderLab) -> None:
    link = lab.create()
    lab.change(link.id, add=["t1"])
    lab.network.before("remove_plan", Rejected("no"))
    assert lab.finish(link.id, "end").state == "ended"
    assert len(lab.book.orders[0].addons) == 1
    lab.network.before("usage", Unavailable("down"))
    assert lab.finish(lab.create().id, "end").state == "ended"


def test_a_network_that_ends_nothing_is_not_called(lab: OrderLab) -> None:
    far(lab).capabilities = frozenset()
    link = lab.create()
    lab.network.calls.clear()
    assert lab.finish(link.id, "end").state == "ended"
    assert lab.network.calls == []
    assert lab.books.events[-1].originator_id == link.id


@pytest.mark.parametrize("why", ["revoked", "stopped"])
def test_a_link_whose_esim_is_of_no_use_at_its_network_can_be_ended(
    lab: OrderLab, why: str
) -> None:
    """Somebody has revoked it there, or stopped it; else its fee would fall due for ever."""
    link = lab.create()
    if why == "revoked":
        lab.network.before("suspend", NoSuchEndpoint())
        lab.network.before("usage", NoSuchEndpoint())
    else:
        lab.book.orders[0].status = "inactive"
        lab.network.before("suspend", Rejected("it is deactivated"))
    assert lab.finish(link.id, "end").state == "ended"


@pytest.mark.parametrize("after_s", [4, 5])  # Then a worker settles it, before the request.
def test_a_cancelled_esim_is_given_back_and_free_again(lab: OrderLab, after_s: int) -> None:
    lab.network.after("take_back", lambda: lab.sweep(after_s))
    lab.book.resells = True
    link = lab.finish(lab.create().id, "cancel")
    assert [each.taken_back for each in lab.book.orders] == [True]
    assert holder(lab, link) is None
    lab.clock.forward(minutes=1)
    again = lab.create()
    assert (again.state, again.iccid) == ("active", link.iccid)
    assert holder(lab, again) == again.id


def test_an_esim_that_the_network_does_not_take_back_stays(orders: Orders) -> None:
    lab = orders(takes_back=False)
    link = lab.create()
    with pytest.raises(ProvisioningError) as refused:
        lab.finish(link.id, "cancel")
    assert not refused.value.retryable
    assert (lab.link(link.id).state, holder(lab, link)) == ("active", link.id)


def test_an_esim_without_plans_is_not_taken_for_one_that_was_taken_back(orders: Orders) -> None:
    """Its partner has removed them; the network keeps it, so nothing is given back."""
    lab = orders(takes_back=False)
    link = lab.create()
    (activation,) = link.current_activations
    lab.change(link.id, remove=[activation.id])
    for fault in (None, OutcomeUnknown()):
        if fault is not None:
            lab.network.after("take_back", fault)
        with pytest.raises(ProvisioningError):
            lab.finish(link.id, "cancel")
        lab.clock.forward(minutes=5)
        lab.settle()
    kept = lab.process.log.get(Link, link.id)
    assert (kept.ended, holder(lab, link)) == (None, link.id)


def test_what_the_network_takes_back_without_our_money_is_cancelled(orders: Orders) -> None:
    lab = orders(takes_back=False)
    link = lab.create()
    lab.network.after("take_back", lab.book.orders[0].addons.clear)
    assert lab.finish(link.id, "cancel").state == "ended"
    assert lab.wallet.balance_micros == 500_000_000
    lab.is_odd = True  # A plan is gone from there.


def test_a_network_that_is_not_configured_ends_nothing(lab: OrderLab) -> None:
    link = lab.create()
    lab.process.networks._configured = {"other": far(lab)}  # type: ignore[assignment]  # noqa: SLF001  # It was configured.
    with pytest.raises(ProvisioningError):
        lab.finish(link.id, "end")
    assert lab.link(link.id).open_call is None
    lab.restart()
    lab.clock.forward(seconds=timedelta(minutes=1).total_seconds())
    assert lab.finish(link.id, "end").state == "ended"


def test_a_link_that_was_taken_over_goes_back_to_its_network(lab: OrderLab) -> None:
    bought, plans = lab.book.buy(ProviderPlan("eu-1", 1_000, 7)), [lab.plan(), uuid4()]
    terms = {plans[0]: lab.offer(lab.organization_id, plans[0])}
    terms[plans[1]] = structs.replace(terms[plans[0]], network="another")
    sold = [{"plan_id": str(each), "bought_at": lab.clock().isoformat()} for each in plans]
    entry = {"organization_id": str(lab.organization_id), "iccid": bought.iccid, "plans": sold[:1]}
    process = lab.process
    process.link_import = replace(process.link_import, terms=lambda: terms)
    for wrong, line in (
        ({"endpoint_id": "e-1"}, "endpoint_id: must be the ICCID on this network, or be left out"),
        ({"plans": sold}, "plans[1].plan_id: is a plan of another network"),
    ):
        with pytest.raises(FileRefused) as refused:
            take_over(process, process.cause(), entry | wrong)
        assert refused.value.lines == [f"links[0]: {line}"]
    assert take_over(process, process.cause(), entry).created == 1
    (link,) = lab.books.every(Link)
    ended = lab.finish(link.id, "cancel").ended
    assert ended is not None
    assert (ended.reason, ended.refunds) == ("cancelled", [])
    lab.is_odd = True  # Its order is not ours.
