"""What a link is like now: asked of the network, or as it was last seen."""

from unittest.mock import patch

import pytest
from eventsourcing.persistence import OperationalError

from domain.catalogue.plan import SIMULATED
from domain.errors import RateLimited, ServiceUnavailable
from domain.links.link import Link
from domain.links.network import ActivationCode
from domain.links.readings import READ_S, LinkReading
from domain.links.waiting import limiters_of
from domain.months import month_of
from domain.provider_errors import Unavailable
from tests.domain.buying import Buyer, Patience
from tests.domain.conftest import clocked_buyer
from tests.installation import wait_until
from tests.support.erasing import erase_months
from workers.links import CreateEndpoint

buyer = clocked_buyer


@pytest.fixture
def link(buyer: Buyer) -> Link:
    """A link that has been in use for an hour since it was made."""
    made = buyer.own("Europe", data_mb=1_000)
    buyer.time.forward(hours=1)
    return made


def read(buyer: Buyer, link: Link, *, live: bool = True) -> LinkReading:
    """Read a link as a request does that has just loaded it."""
    return buyer.process.link_readings.read(
        buyer.link(link.id), buyer.process.cause("request-2"), live=live
    )


def facts(buyer: Buyer, link: Link) -> list[str]:
    """Return what the log says of a link since it is active."""
    events = [each.event for each in buyer.recorded() if each.event.originator_id == link.id]
    return [each.TOPIC for each in events[link.version :] if isinstance(each, Link.Event)]  # type: ignore[attr-defined]  # every event has one


@pytest.mark.parametrize("live", [True, False])
def test_a_link_that_was_never_read_is_as_it_began(buyer: Buyer, link: Link, live: bool) -> None:  # noqa: FBT001  # Given by pytest.
    wait_until(lambda: buyer.process.readings.load([link.id]) != {})
    buyer.process.readings.forget(buyer.clock())
    buyer.network.before("usage", Unavailable("down"))
    reading = read(buyer, link, live=live)
    assert (reading.usage, reading.as_of, reading.stale) == (None, link.activated_at, live)
    [plan] = reading.plans
    assert (plan.used_mb, plan.remaining_mb, plan.expires_at, plan.is_expired) == (
        0.0,
        1_000.0,
        None,
        False,
    )


def test_an_older_reading_does_not_replace_a_newer_one(buyer: Buyer, link: Link) -> None:
    def a_newer_one() -> None:
        buyer.time.forward(minutes=5)
        read(buyer, link)

    buyer.network.after("usage", a_newer_one)
    read(buyer, link)
    assert read(buyer, link, live=False).as_of == buyer.time()


def test_a_log_that_takes_nothing_leaves_the_reading_whole_and_no_gap(
    buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The news are lost, and the activation code that is stored after them has to follow on."""
    link = own_without_code(buyer)
    buyer.time.forward(hours=1)
    log, failures = buyer.process.log, [OperationalError()]
    insert = log.insert

    def fail_once(*arguments: object) -> int:
        if failures:
            raise failures.pop()
        return insert(*arguments)  # type: ignore[arg-type]  # as they come

    monkeypatch.setattr(log, "insert", fail_once)
    reading = read(buyer, link)
    assert failures == []
    assert (reading.link.installed_at is not None, reading.stale) == (True, False)
    assert reading.code == code_of(buyer, link)
    buyer.check()
    read(buyer, link)
    assert sorted(facts(buyer, link)) == [
        *("link.first_used", "link.installed", "link.lpa_stored", "link.plan_started")
    ]


def own_without_code(buyer: Buyer, called: str = "Europe") -> Link:
    """Get a link as earlier releases sold it when the network did not tell its code."""
    with patch.object(CreateEndpoint, "lpa", return_value=None):
        return buyer.own(called)


def code_of(buyer: Buyer, link: Link) -> ActivationCode:
    return buyer.simulator.lpa(link.iccid, timeout_s=1.0)


def test_two_who_fetch_the_activation_code_store_it_once(buyer: Buyer) -> None:
    link = own_without_code(buyer)
    buyer.network.after("lpa", lambda: read(buyer, link))
    assert read(buyer, link).code == code_of(buyer, link)
    assert facts(buyer, link) == ["link.lpa_stored"]


def test_a_code_that_cannot_be_sealed_is_told_all_the_same(
    buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = own_without_code(buyer)

    def fail(*_: object) -> int:
        raise OperationalError

    with monkeypatch.context() as outage:
        outage.setattr(buyer.process.log, "insert", fail)
        assert read(buyer, link).code == code_of(buyer, link)
    assert read(buyer, link).code == code_of(buyer, link)
    assert facts(buyer, link) == ["link.lpa_stored"]


def test_the_activation_code_is_kept_sealed_and_not_asked_for_again(
    buyer: Buyer, link: Link
) -> None:
    asked = buyer.network.count("lpa")
    for live in (True, False):
        assert read(buyer, link, live=live).code == code_of(buyer, link)
    assert buyer.network.count("lpa") == asked == 1
    stored = buyer.process.log.recorder.select_events(link.id)
    assert not any(code_of(buyer, link).lpa.encode() in each.state for each in stored)


def test_an_activation_code_that_was_erased_is_not_fetched_again(buyer: Buyer, link: Link) -> None:
    asked = buyer.network.count("lpa")
    buyer.time.forward(days=31)
    erase_months(buyer.process.vault, month_of(buyer.time()))
    for live in (True, False):
        assert read(buyer, link, live=live).code is None
    assert buyer.network.count("lpa") == asked
    assert "link.lpa_stored" not in facts(buyer, link)


def test_the_reads_of_one_request_have_one_time_together(buyer: Buyer, patience: Patience) -> None:
    link = own_without_code(buyer)
    left: list[float] = []
    network = buyer.process.network

    def watch(iccid: str, *, timeout_s: float) -> ActivationCode:
        left.append(timeout_s)
        return buyer.simulator.lpa(iccid, timeout_s=timeout_s)

    network.lpa = watch  # type: ignore[method-assign]  # to see its time-out
    read(buyer, link)
    assert 0 < left.pop() <= READ_S
    del network.lpa
    other = own_without_code(buyer, "Asia")
    buyer.network.after("usage", patience.end)
    asked = buyer.network.count("lpa")
    assert not read(buyer, other).stale
    assert buyer.network.count("lpa") == asked


def test_a_reader_that_finds_no_place_to_wait_takes_what_was_last_seen(
    buyer: Buyer, link: Link
) -> None:
    seen = read(buyer, link)
    buyer.time.forward(hours=1)
    full = buyer.open()
    full.waiting = limiters_of(0)
    reading = full.link_readings.read(buyer.link(link.id), full.cause(), live=True)
    assert (reading.usage, reading.stale, reading.code) == (seen.usage, True, seen.code)
    assert full.network.calls == []  # type: ignore[attr-defined]  # it is a faulty one
    with pytest.raises(ServiceUnavailable):
        full.link_readings.status(link, live=True)
    assert full.link_readings.status(link, live=False)[1:] == (True, True)
    full.waiting = limiters_of(1)
    del full.link_readings
    with full.waiting[SIMULATED].slot(link.organization_id):  # Its share.
        with pytest.raises(RateLimited):
            full.link_readings.status(link, live=True)
        assert full.link_readings.status(link, live=False)[1:] == (True, True)
    assert full.network.calls == []  # type: ignore[attr-defined]  # it is a faulty one


def test_the_status_of_a_reading_is_the_networks_while_it_can_be_asked(
    buyer: Buyer, link: Link
) -> None:
    """Also while a change of it is under way, which the log tells only when it is over."""
    shown: list[str] = []
    buyer.network.after("suspend", lambda: shown.append(read(buyer, link).status))
    buyer.network.after("suspend", lambda: shown.append(read(buyer, link, live=False).status))
    for status in ("suspended", "active", "suspended"):
        buyer.switch(link.id, status)  # type: ignore[arg-type]  # it is one
    assert shown == ["suspended", "active"]


@pytest.mark.parametrize(("hours", "told"), [(6 * 24 + 12, 1), (7 * 24 + 12, 1), (9 * 24, 0)])
def test_that_a_plan_ends_is_told_once_also_late_but_not_of_one_that_ended_long_ago(
    buyer: Buyer, hours: int, told: int
) -> None:
    link = buyer.own("Europe", data_mb=1_000)
    buyer.time.forward(minutes=1)
    read(buyer, link)  # It has been used.
    buyer.time.forward(hours=hours)  # Of the week that the plan lasts.
    read(buyer, link)
    read(buyer, link)
    assert facts(buyer, link).count(Link.ExpiryNear.TOPIC) == told
    assert facts(buyer, link).count(Link.PlanStarted.TOPIC) == 1
    assert facts(buyer, link).count(Link.PlanEnded.TOPIC) == (hours > 7 * 24)
