"""A request waits for its outcome as long as it may, and never takes the threads of all others."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import OperationalError

from domain.accounts.organization import Organization
from domain.catalogue.plan import SIMULATED
from domain.errors import ProvisioningError, RateLimited, ServiceUnavailable
from domain.links import waiting
from domain.links.link import Link, Stage
from domain.links.waiting import limiters_of, wait_for
from tests.domain.buying import Buyer, Gate, NewBuyer, Patience
from tests.installation import PATIENCE_S, Installation, Process, SetClock, wait_until


def is_suspended(organization: Organization) -> bool:
    return organization.status == "suspended"


def suspend(process: Process, organization: Organization) -> None:
    organization.change_status("suspended", process.cause())
    process.log.append(organization)


def test_each_network_has_places_of_its_own() -> None:
    places, one = limiters_of(2), uuid4()
    with places["slow"].slot(one), places["slow"].slot(uuid4()):
        with pytest.raises(ServiceUnavailable), places["slow"].slot(uuid4()):
            pass
        with places[SIMULATED].slot(one), pytest.raises(RateLimited):
            places[SIMULATED].require_share(one)
    with places["slow"].slot(one):
        pass


def test_a_waiter_is_woken_by_the_event_itself(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "POLL_MIN_S", 10 * PATIENCE_S)
    assert found_suspended(process, process).version == 2


def test_an_event_of_another_process_is_seen_by_looking_again_and_again(
    process: Process, installation: Installation
) -> None:
    assert found_suspended(process, installation.process()).version == 2


def test_a_waiter_that_nothing_wakes_looks_ever_more_seldom(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "POLL_MIN_S", 0.01)
    monkeypatch.setattr(waiting, "POLL_MAX_S", 0.04)
    organization = process.log.get(Organization, process.organization())
    looks: list[float] = []

    def looked(_: Organization) -> bool:
        looks.append(time.monotonic())
        return len(looks) == 6

    wait_for(process.log, organization, looked, time.monotonic() + PATIENCE_S)
    between = [later - earlier for earlier, later in pairwise(looks)]
    least = [0.01, 0.02, 0.04, 0.04, 0.04]
    assert all(found >= wanted for found, wanted in zip(between, least, strict=True)), between


def test_the_steps_of_a_worker_wake_nobody_and_its_outcome_does(
    new_buyer: NewBuyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "POLL_MIN_S", PATIENCE_S)
    buyer = new_buyer()
    buyer.hire()
    plan_id = buyer.sell()
    looks: list[Stage] = []
    find = buyer.process.log.find

    def watched(kind: type[Link], stream_id: UUID, *, after: Link | None = None) -> Link | None:
        found = find(kind, stream_id, after=after)
        if after is not None and found is not None:
            looks.append(found.stage)
        return found

    monkeypatch.setattr(buyer.process.log, "find", watched)
    link, _ = buyer.create(plan_id)
    assert link.stage is Stage.ACTIVE
    assert looks == [Stage.ACTIVE]


def found_suspended(process: Process, by: Process) -> Organization:
    """Wait for an organization that is suspended once somebody waits for it."""
    organization = process.log.get(Organization, process.organization())
    waits, found = Gate(), []

    def looked(organization: Organization) -> bool:
        waits.reached.set()
        return is_suspended(organization)

    def wait() -> None:
        until_s = time.monotonic() + PATIENCE_S
        found.append(wait_for(process.log, organization, looked, until_s))

    with ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(wait)
        waits.wait()
        suspend(by, by.log.get(Organization, organization.id))
        waiter.result(PATIENCE_S / 2)
    return found[0]


def test_a_log_out_of_reach_ends_the_wait(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization = process.log.get(Organization, process.organization())

    def fail(*_: object, **__: object) -> None:
        raise OperationalError

    monkeypatch.setattr(process.log.recorder, "select_events", fail)
    with pytest.raises(ServiceUnavailable):
        wait_for(process.log, organization, is_suspended, time.monotonic() + PATIENCE_S)


@pytest.mark.parametrize("jump_h", [0, -1], ids=["a clock that stands still", "one set back"])
def test_a_network_that_blocks_costs_the_deadline_and_no_money(
    new_buyer: NewBuyer, patience: Patience, jump_h: int
) -> None:
    """The wait follows the monotonic clock: by the other one no time passes here."""
    clock = SetClock()
    buyer = new_buyer(clock=clock)
    buyer.hire()
    plan_id, gate = buyer.sell(), Gate()
    buyer.network.before("create_endpoint", gate)
    asked = buyer.create_later(plan_id, "key-1")
    gate.wait()
    clock.forward(hours=jump_h)
    patience.end()
    refused = asked.exception(PATIENCE_S)
    assert isinstance(refused, ProvisioningError)
    assert refused.details == {"reason": "deadline", "refunded": "4.00"}
    told = "The network did not answer in time; 4.00 USD has been refunded; try again."
    assert str(refused) == told
    assert buyer.balance_micros == 10_000_000
    assert buyer.events()["esim.quarantined"] == 1  # The network may still make the endpoint.
    gate.open()
    wait_until(lambda: buyer.events()["link.esim_released"] == 1)
    assert buyer.events()["link.endpoint_removed"] == 1
    assert buyer.network.count("create_endpoint") == 1


def test_a_link_that_comes_at_the_last_moment_is_the_answer(
    buyer: Buyer, patience: Patience
) -> None:
    buyer.hire()
    plan_id, gate, process = buyer.sell(), Gate(), buyer.process
    buyer.network.before("create_endpoint", gate)
    failing, fail = replace(process.failing), process.failing.fail

    def let_it_come(link: Link, why: ProvisioningError, **known: bool) -> None:
        gate.open()
        wait_until(lambda: buyer.events()["link.activated"] == 1)
        fail(link, why, **known)

    object.__setattr__(failing, "fail", let_it_come)
    process.link_create = replace(process.link_create, failing=failing)
    asked = buyer.create_later(plan_id, "key-1")
    gate.wait()
    patience.end()
    link, replayed = asked.result(PATIENCE_S)
    assert (link.stage, replayed) == (Stage.ACTIVE, False)
    assert buyer.balance_micros == 6_000_000


def test_a_request_that_finds_no_place_begins_nothing(buyer: Buyer) -> None:
    buyer.process.waiting = limiters_of(4)  # Two for each organization.
    buyer.hire()
    plan_id, gates = buyer.sell("Europe", "2.00"), [Gate(), Gate()]
    buyer.network.before("create_endpoint", *gates)
    asked = [buyer.create_later(plan_id, f"key-{number}") for number in range(2)]
    for gate in gates:
        gate.wait()
    head = buyer.process.log.head()
    for key in (None, "key-0", "key-3"):  # A twin that would have to wait finds none either.
        with pytest.raises(RateLimited):
            buyer.create(plan_id, key)
    assert buyer.process.log.head() == head
    for gate in gates:
        gate.open()
    links = [each.result(PATIENCE_S)[0] for each in asked]
    assert {link.stage for link in links} == {Stage.ACTIVE}
    assert buyer.create(plan_id, "key-3")[0].stage is Stage.ACTIVE
    assert buyer.create(plan_id, "key-0")[1]
