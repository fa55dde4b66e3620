"""A link is ended or cancelled, whatever fails: log, money and network are of one mind in the end.

A cancelled link has all that was left of its charges back, in the commit that ends it.
"""

from contextlib import suppress
from unittest.mock import patch
from uuid import UUID

import pytest

from domain.accounts.refund_by_hand import NOTHING_LEFT, HandRefund
from domain.errors import (
    CancelWindowOver,
    LinkBusy,
    LinkInUse,
    NotPossible,
    ProvisioningError,
    Refused,
)
from domain.links import driver
from domain.links.link import EndKind, Link
from domain.links.network import NetworkStatus, Usage
from domain.money import parse_amount
from tests.workers.link_checks import check
from tests.workers.link_lab import CANCEL_WITHIN, DEPOSIT, Lab
from tests.workers.network_faults import FAULTS, KILLS, REFUSALS, UNKNOWN, arm
from workers.links import CreateEndpoint

KINDS: list[EndKind] = ["end", "cancel"]
WHOLE = parse_amount(DEPOSIT)


def a_link(lab: Lab, *, topups: int = 1) -> Link:
    """A link for 4.00, with top-ups for 1.00 each."""
    link = lab.create()
    for number in range(topups):
        assert lab.change(link.id, add=[f"t{number}"]).failure is None
    return lab.link(link.id)


def refuse(lab: Lab, link_id: UUID, kind: EndKind, error: type[Refused]) -> Refused:
    """Expect a refusal after which the link is as it was."""
    calls = lab.network.count("remove_endpoint")
    with pytest.raises(error) as refused:
        lab.finish(link_id, kind)
    assert lab.network.count("remove_endpoint") == calls
    assert lab.link(link_id).open_call is None
    check(lab)
    return refused.value


def seen(lab: Lab, usage: Usage) -> None:
    show = lab.simulator.usage

    def shown(endpoint_id: str, *, timeout_s: float) -> Usage:
        lab.simulator.usage = show  # type: ignore[method-assign]  # As it was.
        show(endpoint_id, timeout_s=timeout_s)
        return usage

    lab.simulator.usage = shown  # type: ignore[method-assign]  # This once.


def test_what_was_given_back_by_hand_is_not_given_back_again(lab: Lab) -> None:
    link = a_link(lab, topups=2)
    paid = [(link.id, link.requested.price)]
    paid += [(each, lab.plan_change(each).requested.additions[0].price) for each in link.changes]
    bought = [(stream_id, price.transaction_id) for stream_id, price in paid if price is not None]
    accounts, cause = lab.process.accounts, lab.process.cause()
    for (stream_id, charge_id), micros in zip(bought, (1_500_000, None), strict=False):
        accounts.refund(stream_id, HandRefund(charge_id, "t-1", "a complaint", micros, {}), cause)
    ended = lab.finish(link.id, "cancel").ended
    assert ended is not None
    assert [each.amount_micros for each in ended.refunds] == [2_500_000, 1_000_000]
    assert lab.wallet.balance_micros == WHOLE
    for stream_id, charge_id in bought:
        with pytest.raises(NotPossible, match=NOTHING_LEFT):
            accounts.refund(stream_id, HandRefund(charge_id, "t-2", "more", None, {}), cause)
    lab.is_odd = True  # One charge has two refunds.


@pytest.mark.parametrize("fact", ["installed_at", "first_used_at"])
def test_a_link_in_use_is_not_cancelled_and_the_log_says_since_when(lab: Lab, fact: str) -> None:
    link = a_link(lab)
    at = lab.clock()
    seen(lab, Usage("active", [], at, **{fact: at}))  # type: ignore[arg-type]  # It is a moment.
    refuse(lab, link.id, "cancel", LinkInUse)
    assert getattr(lab.link(link.id), fact) == at
    refuse(lab, link.id, "cancel", LinkInUse)  # Whatever the network says from now on.


def test_a_link_with_traffic_is_not_cancelled(lab: Lab) -> None:
    link = a_link(lab)
    assert link.endpoint_id is not None
    now = lab.simulator.usage(link.endpoint_id, timeout_s=1.0)
    (first, *more) = now.addons
    used = Usage("active", [type(first)(first.addon_id, "eu-1", 0.001, 999.999), *more], now.as_of)
    seen(lab, used)
    refuse(lab, link.id, "cancel", LinkInUse)


def test_a_link_whose_used_plan_was_taken_off_is_not_cancelled(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its usage no longer lists that plan, but the network has seen it."""
    link, now = lab.create(), lab.clock()
    lab.change(link.id, [plan.id for plan in link.current_activations], ["eu-2"])
    was_seen = NetworkStatus("active", connected=False, network=None, last_seen_at=now, as_of=now)
    monkeypatch.setattr(lab.simulator, "status", lambda *_, **__: was_seen)
    refuse(lab, link.id, "cancel", LinkInUse)


def test_a_link_is_cancelled_until_its_time_is_over(lab: Lab) -> None:
    first, second = a_link(lab), lab.create()
    assert first.activated_at is not None
    lab.clock.forward(seconds=(first.activated_at + CANCEL_WITHIN - lab.clock()).total_seconds())
    refuse(lab, first.id, "cancel", CancelWindowOver)
    lab.clock.forward(seconds=-1)
    seen(lab, Usage("active", [], lab.clock()))
    assert lab.finish(second.id, "cancel").state == "ended"


@pytest.mark.parametrize("fault", [*REFUSALS, *UNKNOWN, *KILLS])
@pytest.mark.parametrize("kind", KINDS)
def test_the_log_ends_with_what_the_network_has(lab: Lab, kind: EndKind, fault: str) -> None:
    link = a_link(lab)
    arm(lab.network, "remove_endpoint", FAULTS[fault])
    with suppress(ProvisioningError):
        lab.live(lambda: lab.finish(link.id, kind))
    assert (lab.link(link.id).state == "ended") == (fault == "unknown, done")  # It asks at once.
    lab.settle()
    was_done = FAULTS[fault].when == "after"
    assert lab.link(link.id).state == ("ended" if was_done else "active")
    check(lab)
    assert lab.finish(link.id, kind).state == "ended"


@pytest.mark.parametrize("fault", ["unavailable", "unknown, not done"])
def test_a_removal_that_was_cut_in_half_is_completed(lab: Lab, fault: str) -> None:
    """The eSIM shows no endpoint any more; the next removal, by its id, meets a fault too."""
    link = a_link(lab)
    arm(lab.network, "remove_endpoint", KILLS["killed before"])
    assert not lab.live(lambda: lab.finish(link.id, "cancel"))
    lab.simulator.find_endpoint = lambda *_, **__: None  # type: ignore[method-assign]  # The eSIM is off.
    arm(lab.network, "remove_endpoint", FAULTS[fault])
    lab.clock.forward(seconds=driver.CALL_S)
    lab.sweep()
    assert lab.link(link.id).open_call is not None
    del lab.simulator.find_endpoint
    lab.simulator.find_endpoint = lambda *_, **__: None  # type: ignore[method-assign]  # It still is.
    lab.clock.forward(seconds=10)
    lab.sweep()
    del lab.simulator.find_endpoint
    assert lab.link(link.id).state == "ended"


@pytest.mark.parametrize("kind", KINDS)
def test_an_end_waits_for_what_is_open(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, kind: EndKind
) -> None:
    monkeypatch.setattr(driver, "CALL_S", 0.01)
    link = a_link(lab)
    change_id = lab.request_change(link.id, add=[lab.plan("t7", "1.00")])
    with pytest.raises(LinkBusy):
        lab.finish(link.id, kind)
    monkeypatch.setattr(driver, "CALL_S", 5.0)
    lab.work_change(change_id)
    assert lab.finish(link.id, kind).state == "ended"


def test_an_esim_that_a_link_has_had_is_not_sold_again(lab: Lab) -> None:
    link = lab.finish(a_link(lab).id, "cancel")
    assert link.iccid is not None
    lab.only(link.iccid)
    assert lab.create().stage.value == "ended"


def test_an_activation_code_that_comes_after_the_end_is_not_stored(lab: Lab) -> None:
    """A read waits for the code while another request ends the link."""
    with patch.object(CreateEndpoint, "lpa", return_value=None):  # As in earlier releases.
        link = lab.create()
    lab.network.after("lpa", lambda: lab.finish(link.id, "end"))
    lab.process.link_readings.read(lab.link(link.id), lab.process.cause(), live=False)
    assert lab.link(link.id).state == "ended"
