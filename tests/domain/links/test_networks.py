"""Each link runs on the network of its plan, and one network has no part in another's trouble."""

from uuid import UUID

import pytest

from domain.catalogue.plan import SIMULATED
from domain.errors import NetworkUnavailable, NotSupportedByNetwork, ValidationFailed
from domain.links.buying import OTHER_NETWORK
from domain.links.esim import Esim
from domain.links.link import Link, Stage
from domain.links.networks import DRAINED, NOT_SOLD
from domain.provider_errors import Unavailable
from tests.domain.buying import Buyer, Gate, NewBuyer
from tests.faulty_network import FaultyNetwork, Killed
from tests.installation import Installation, Process, SetClock, wait_until
from tests.plan_files import import_plans, plan, refusal, stored
from tests.second_network import SECOND, add_to


@pytest.fixture
def buyer(
    installation: Installation, new_buyer: NewBuyer, monkeypatch: pytest.MonkeyPatch
) -> Buyer:
    """One who can buy of two networks, with workers."""
    add_to(installation.environment, monkeypatch)
    buyer = new_buyer()
    buyer.hire()
    return buyer


def second(process: Process) -> FaultyNetwork:
    network = process.networks.of(SECOND)
    assert isinstance(network, FaultyNetwork)
    return network


def test_a_link_lives_on_the_network_of_its_plan(buyer: Buyer) -> None:
    here, there = buyer.own(), buyer.own("Asia", network=SECOND)
    assert (here.network, there.network) == (SIMULATED, SECOND)
    assert here.requested.plan.network is None, "as plans from before there were several"
    network = second(buyer.process)
    assert network.count("create_endpoint") == buyer.network.count("create_endpoint") == 1
    esim = buyer.process.log.get(Esim, Esim.id_of(SECOND, there.iccid))
    assert (esim.link_id, esim.iccid) == (there.id, there.iccid)
    assert buyer.switch(there.id, "suspended").status == "suspended"
    assert (network.count("suspend"), buyer.network.count("suspend")) == (1, 0)
    reading = buyer.process.link_readings.read(there, buyer.process.cause(), live=True)
    assert (reading.is_live, reading.status) == (True, "suspended")


def test_a_link_is_topped_up_by_its_own_network_only(buyer: Buyer) -> None:
    link = buyer.own("Asia", network=SECOND)
    other, more = buyer.sell("Europe"), buyer.sell("Asia more", "2.00", network=SECOND)
    with pytest.raises(ValidationFailed) as refused:
        buyer.change(link.id, add=[more, other])
    assert refused.value.details["add.1"] == [OTHER_NETWORK]
    change, _ = buyer.change(link.id, add=[more])
    assert change.network == SECOND
    assert second(buyer.process).count("add_plan") == 1
    buyer.change(link.id, remove=[change.requested.additions[0].activation_id])
    assert second(buyer.process).count("remove_plan") == 1
    assert buyer.network.count("add_plan") == 0


def test_what_a_network_cannot_do_is_refused_before_anything_is_done(buyer: Buyer) -> None:
    link = buyer.own("Asia", network=SECOND)
    second(buyer.process).capabilities = frozenset({"location"})
    before = buyer.process.log.head()
    with pytest.raises(NotSupportedByNetwork):
        buyer.switch(link.id, "suspended")
    (activation,) = link.current_activations
    with pytest.raises(NotSupportedByNetwork):
        buyer.change(link.id, remove=[activation.id], add=[link.requested.plan.plan_id])
    assert buyer.process.log.head() == before
    buyer.change(link.id, add=[link.requested.plan.plan_id])
    assert len(buyer.link(link.id).current_activations) == 2


def test_a_file_that_names_no_network_leaves_a_plan_on_its_own(
    buyer: Buyer, installation: Installation
) -> None:
    assert import_plans(buyer.process, plan()).created == 1
    installation.environment["NETWORK_PROVIDER"] = f"{SECOND},simulated"
    later = installation.process()
    assert import_plans(later, plan(retail_price="5.00")).updated == 1
    assert stored(later).terms.network is None, "the simulated one"
    assert import_plans(later, plan(network=SECOND)).created == 1, "of the same name there"
    assert import_plans(later, plan(network="simulated", retail_price="6.00")).updated == 1
    (line,) = refusal(later, plan())
    assert "id: is needed" in line
    assert import_plans(later, plan("Asia")).created == 1
    assert stored(later, "Asia", network=SECOND).terms.network == SECOND


@pytest.fixture
def left(buyer: Buyer, installation: Installation) -> Link:
    """A link whose network is not configured any more."""
    link = buyer.own("Asia", network=SECOND)
    buyer.process.link_readings.read(link, buyer.process.cause(), live=True)
    installation.environment["NETWORK_PROVIDER"] = SIMULATED
    buyer.dismiss()
    buyer.process = buyer.open()
    buyer.hire()
    return link


def test_a_link_without_its_network_is_shown_as_last_seen_and_nothing_of_it_is_sold(
    buyer: Buyer, left: Link
) -> None:
    reading = buyer.process.link_readings.read(left, buyer.process.cause(), live=True)
    assert (reading.stale, reading.status, len(reading.plans)) == (True, "active", 1)
    assert buyer.process.link_readings.status(left, live=False).is_stale
    with pytest.raises(NetworkUnavailable):
        buyer.process.link_readings.status(left, live=True)
    with pytest.raises(NotSupportedByNetwork):
        buyer.switch(left.id, "suspended")
    not_sold(buyer, left, left.requested.plan.plan_id, NOT_SOLD)


def not_sold(buyer: Buyer, link: Link, plan_id: UUID, why: str) -> None:
    """Expect that a plan is sold neither with a new link nor for one that is there."""
    with pytest.raises(ValidationFailed) as refused:
        buyer.create(plan_id)
    assert refused.value.details["plan_id"] == [why]
    with pytest.raises(ValidationFailed) as refused:
        buyer.change(link.id, add=[plan_id])
    assert refused.value.details["add.0"] == [why]


def test_open_work_waits_until_its_network_is_configured_again(
    installation: Installation, new_buyer: NewBuyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_to(installation.environment, monkeypatch)
    clock = SetClock()
    buyer = new_buyer(clock=clock)
    second(buyer.process).after("create_endpoint", Killed())
    plan_id = buyer.sell("Asia", network=SECOND)
    created = buyer.create_later(plan_id)
    link_id = _requested(buyer)
    with pytest.raises(Killed):
        buyer.process.provisioning.work(link_id)
    installation.environment["NETWORK_PROVIDER"] = SIMULATED
    without = buyer.open()
    clock.forward(minutes=2)
    without.provisioning.work(link_id)
    with pytest.raises(Exception, match="refunded"):
        created.result()
    clock.forward(days=2)
    without.provisioning.work(link_id)
    assert buyer.link(link_id).stage is Stage.FAILED
    installation.environment["NETWORK_PROVIDER"] = f"simulated,{SECOND}"
    buyer.open().provisioning.work(link_id)
    assert buyer.link(link_id).stage is Stage.ENDED
    assert "link.endpoint_removed" in buyer.events()


def test_a_worker_that_does_not_know_a_network_yet_leaves_its_links_to_others(
    installation: Installation, new_buyer: NewBuyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = installation.process()
    add_to(installation.environment, monkeypatch)
    buyer = new_buyer()
    created = buyer.create_later(buyer.sell("Asia", network=SECOND))
    link_id = _requested(buyer)
    without.provisioning.work(link_id)
    assert buyer.link(link_id).stage is Stage.REQUESTED
    buyer.process.provisioning.work(link_id)
    assert created.result()[0].stage is Stage.ACTIVE


def _requested(buyer: Buyer) -> UUID:
    def found() -> list[UUID]:
        return [
            each.event.originator_id
            for each in buyer.recorded()
            if isinstance(each.event, Link.Requested)
        ]

    wait_until(lambda: bool(found()))
    return found()[0]


def test_a_drained_network_sells_nothing_and_serves_its_links(buyer: Buyer) -> None:
    link, more = buyer.own("Asia", network=SECOND), buyer.sell("Asia more", network=SECOND)
    buyer.process.drain(SECOND)
    not_sold(buyer, link, more, DRAINED)
    assert buyer.switch(link.id, "suspended").status == "suspended"
    assert buyer.own().network == SIMULATED
    buyer.process.drain(SECOND, end=True)
    assert buyer.create(more)[0].network == SECOND


def test_work_that_is_open_when_its_network_is_drained_is_finished(buyer: Buyer) -> None:
    gate = Gate()
    second(buyer.process).before("create_endpoint", gate)
    created = buyer.create_later(buyer.sell("Asia", network=SECOND))
    gate.wait()
    buyer.process.drain(SECOND)
    gate.open()
    assert created.result()[0].activated_at is not None


def test_drained_providers_are_asked_nothing_also_while_the_log_is_away(
    buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert buyer.process.provider.is_up()
    for each in ("offline", SECOND):
        buyer.process.drain(each)
    assert not buyer.process.provider.is_up()
    with pytest.raises(Unavailable, match="drained"):
        buyer.process.provider.look_up(buyer.organization_id, "+14155550100")
    monkeypatch.setattr(buyer.process.log, "find_all", None)
    with pytest.raises(TypeError):
        buyer.process.gate.refresh()
    assert buyer.process.gate.is_drained(SECOND)
