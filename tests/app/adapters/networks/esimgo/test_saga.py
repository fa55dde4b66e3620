"""Links on eSIM Go from the request to the end, whatever happens to a request on the wire."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import workers.links
import workers.lost_orders
import workers.plan_changes
from app.adapters.remote.api import RemoteRules
from app.bootstrap import providers
from domain.errors import NotSupportedByNetwork, ProvisioningError
from domain.links import ending
from domain.links.link import Link, Stage
from domain.money import parse_amount
from projections.audit.auditor import check_log
from tests.app.adapters.networks.esimgo.esimgo_lab import EsimGoLab, left_over
from tests.installation import Installation, SetClock, installation, migrated, sqlite_only
from tests.support.providers.esimgo import KEY, MB, EsimGoServer
from tests.support.providers.server import FaultKind
from tests.workers.link_lab import DEPOSIT

__all__ = ["installation", "migrated"]

pytestmark = [
    pytest.mark.any_database,
    sqlite_only("it is about what happens on the wire"),
]

CALL = timedelta(seconds=1)  # Real time: less than a fault lasts, and enough to be sent.
SECRETS = (KEY, "LPA:1$", "MATCH-")
SHOWN_LATE = timedelta(seconds=40)

# What nobody has sold: the link fails and its money goes back.
NOT_SOLD = {
    FaultKind.RESET_BEFORE,
    FaultKind.UNAUTHORIZED,
    FaultKind.RATE_LIMITED,
    FaultKind.SERVER_ERROR,
    FaultKind.UNAVAILABLE,
}


def kinds(*quick: FaultKind) -> list[Any]:
    """Return all kinds of faults; those that are not named take their turn in the long run only."""
    return [
        pytest.param(kind, marks=[] if kind in quick else [pytest.mark.soak], id=kind.name)
        for kind in FaultKind
    ]


@pytest.fixture
def server() -> Iterator[EsimGoServer]:
    with EsimGoServer(SetClock()) as server:
        yield server


@pytest.fixture
def lab(
    installation: Installation, server: EsimGoServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EsimGoLab]:
    for module in (workers.links, workers.plan_changes, workers.lost_orders):
        monkeypatch.setattr(module, "CALL", CALL)
    monkeypatch.setattr(providers, "ESIMGO", RemoteRules())  # Its pace is by a clock that stands.
    lab = EsimGoLab(installation, server)
    yield lab
    for each in lab.process.log.read(0, 10_000):
        stored = lab.process.log.mapper.to_stored_event(each.event).state
        assert not [secret for secret in SECRETS if secret.encode() in stored]


@pytest.mark.parametrize("kind", kinds(*FaultKind))
def test_a_creation_is_delivered_or_paid_back_whatever_happens_to_its_order(
    lab: EsimGoLab, kind: FaultKind
) -> None:
    lab.server.fault(kind, on="order", headers={"Retry-After": "0"}, seconds=3)

    link = lab.create()
    lab.settle()

    assert (lab.link(link.id).stage is Stage.ACTIVE) == (kind not in NOT_SOLD)
    lab.check(strays=kind is FaultKind.EFFECT_TWICE)


@pytest.mark.parametrize("kind", kinds(FaultKind.DELAY, FaultKind.RESET_AFTER))
@pytest.mark.parametrize("refunds", [True, False])
def test_an_order_that_is_listed_too_late_is_given_back_or_an_incident(
    lab: EsimGoLab, kind: FaultKind, *, refunds: bool
) -> None:
    lab.server.shown_after, lab.server.refunds = SHOWN_LATE, refunds
    lab.server.fault(kind, on="order", headers={"Retry-After": "0"}, seconds=3)

    link = lab.create()
    lab.settle()

    assert lab.link(link.id).stage is (
        Stage.ACTIVE if kind in {FaultKind.DUPLICATE, FaultKind.EFFECT_TWICE} else Stage.ENDED
    )
    lab.check(strays=kind is FaultKind.EFFECT_TWICE)
    if kind is FaultKind.RESET_AFTER:
        assert bool(left_over(lab.books, "esimgo")) != refunds
        assert (lab.server.balance == Decimal("1000.00")) == refunds


@pytest.mark.soak
@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("route", ["orders", "esim", "bundles", "revoke"])
def test_a_creation_is_delivered_or_paid_back_whatever_happens_around_it(
    lab: EsimGoLab, route: str, kind: FaultKind
) -> None:
    lab.server.shown_after = SHOWN_LATE
    lab.server.fault(FaultKind.RESET_AFTER, on="order")
    lab.server.fault(kind, on=route, times=2, headers={"Retry-After": "0"}, seconds=3)

    lab.create()
    lab.create("esim_2GB")
    lab.settle()

    lab.check()


def test_a_lost_order_is_another_links_when_that_one_asks_first(lab: EsimGoLab) -> None:
    lab.server.shown_after = timedelta(seconds=3)
    lab.server.fault(FaultKind.RESET_AFTER, on="order", times=2)
    first, second = lab.create(), lab.create()

    lab.clock.forward(seconds=4)
    lab.work(second.id)
    lab.settle()

    iccids = {lab.link(each.id).iccid for each in (first, second)}
    assert iccids == lab.server.held
    lab.check()


@pytest.mark.parametrize("kind", kinds(FaultKind.DELAY, FaultKind.RESET_AFTER, FaultKind.HTML))
def test_a_topup_is_done_or_paid_back_whatever_happens_to_its_order(
    lab: EsimGoLab, kind: FaultKind
) -> None:
    link = lab.create()
    lab.server.fault(kind, on="order", headers={"Retry-After": "0"}, seconds=3)

    lab.change(link.id, add=["esim_3GB"])
    lab.settle()

    lab.check(strays=kind is FaultKind.EFFECT_TWICE)


@pytest.mark.parametrize("kind", kinds(FaultKind.RESET_AFTER))
def test_a_removal_is_done_or_left_whatever_happens_to_its_request(
    lab: EsimGoLab, kind: FaultKind
) -> None:
    link = lab.create()
    lab.server.install(link.iccid or "")
    (first,) = link.current_activations
    lab.server.fault(kind, on="revoke", headers={"Retry-After": "0"}, seconds=3)

    lab.change(link.id, [first.id])
    lab.settle()

    lab.check()


@pytest.mark.parametrize("kind", kinds(FaultKind.RESET_AFTER, FaultKind.WRONG_TYPES))
@pytest.mark.parametrize("target", ["suspended", "active"])
def test_a_status_is_in_the_end_that_of_the_network(
    lab: EsimGoLab, kind: FaultKind, target: str
) -> None:
    link = lab.create()
    if target == "active":
        lab.switch(link.id, "suspended")
    lab.server.fault(kind, on="suspend", headers={"Retry-After": "0"}, seconds=3)

    lab.switch(link.id, target)
    lab.clock.forward(seconds=15)
    lab.settle()

    (esim,) = lab.server.esims.values()
    assert lab.link(link.id).status == esim.state
    lab.check()


def test_the_cost_of_an_order_and_of_a_topup_is_what_their_replies_told(lab: EsimGoLab) -> None:
    link = lab.create()
    lab.change(link.id, add=["esim_3GB"])

    costs = [each.cost for each in lab.books.events if isinstance(each, Link.Activated)]
    costs += [each.cost for each in lab.books.events if isinstance(each, Link.PlanAdded)]
    references = [sale.reference for sale in lab.server.sales]
    assert [(each.amount_micros, each.reference) for each in costs if each] == [
        (2_280_000, reference) for reference in references
    ]
    assert not any(each.estimated for each in costs if each)


def test_a_topup_whose_reply_was_lost_is_known_as_on_the_invoice(lab: EsimGoLab) -> None:
    link = lab.create()
    lab.server.fault(FaultKind.RESET_AFTER, on="order")
    lab.change(link.id, add=["esim_3GB"])
    lab.settle()

    [cost] = [each.cost for each in lab.books.events if isinstance(each, Link.PlanAdded)]
    assert cost is not None
    assert (cost.amount_micros, cost.reference) == (2_280_000, lab.server.sales[-1].reference)


def test_what_our_balance_cannot_pay_is_not_charged(lab: EsimGoLab) -> None:
    lab.server.balance = Decimal("1.00")

    link = lab.create()
    lab.settle()

    assert lab.link(link.id).stage is Stage.ENDED
    assert lab.wallet.balance_micros == parse_amount(DEPOSIT)
    lab.check()


def test_a_bundle_that_is_used_up_and_bought_again_is_a_plan_of_its_own(lab: EsimGoLab) -> None:
    """The same bundle twice: the add-on that is used up stays that of the first activation."""
    link = lab.create()
    assert link.iccid is not None
    lab.server.use(link.iccid, 1_000 * MB)
    lab.clock.forward(days=8)
    lab.server.fault(FaultKind.RESET_AFTER, on="order")

    lab.change(link.id, add=["esim_1GB"])
    lab.settle()

    newest = lab.link(link.id)
    reading = lab.process.link_readings.read(newest, lab.process.cause(), live=True)
    assert [each.remaining_mb for each in reading.plans] == [1_000, 0]
    lab.check()


@pytest.mark.parametrize("kind", kinds(FaultKind.RESET_BEFORE, FaultKind.RESET_AFTER))
def test_an_unused_link_is_cancelled_or_kept_whatever_happens_to_its_revocation(
    lab: EsimGoLab, monkeypatch: pytest.MonkeyPatch, kind: FaultKind
) -> None:
    monkeypatch.setattr(ending, "CALL_S", CALL.total_seconds())
    link = lab.create()
    lab.server.fault(kind, on="revoke", headers={"Retry-After": "0"}, seconds=3)

    with suppress(ProvisioningError):
        lab.finish(link.id, "cancel")
    lab.settle()

    lab.check()
    assert lab.finish(link.id, "cancel").state == "ended"
    lab.check()
    assert lab.wallet.balance_micros == parse_amount(DEPOSIT)
    assert lab.server.balance == Decimal("1000.00")


def test_a_link_with_a_top_up_is_not_cancelled_but_ended(lab: EsimGoLab) -> None:
    """Its bundles could be revoked only one after the other."""
    link = lab.create()
    lab.change(link.id, add=["esim_1GB"])
    with pytest.raises(ProvisioningError) as refused:
        lab.finish(link.id, "cancel")
    assert not refused.value.retryable
    lab.check()
    ended = lab.finish(link.id, "end")
    assert ended.state == "ended"
    assert lab.process.networks.of("esimgo").usage(str(link.iccid), timeout_s=5).status != "active"
    assert check_log(lab.process.log).failures == []


def test_an_account_without_refunds_cancels_nothing(
    installation: Installation, server: EsimGoServer
) -> None:
    server.refunds = False
    lab = EsimGoLab(installation, server)
    link = lab.create()
    with pytest.raises(NotSupportedByNetwork):
        lab.finish(link.id, "cancel")
    assert lab.finish(link.id, "end").state == "ended"
