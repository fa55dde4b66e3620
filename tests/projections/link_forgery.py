"""Links, eSIMs, plan changes and fees that are right up to here, for a test to break one thing."""

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.organization import Organization
from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.wallet import ChargeKind, Wallet
from domain.cause import Cause
from domain.links.esim import Esim
from domain.links.link import Link, status_after
from domain.links.network import Endpoint
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import decoded
from domain.months import first_instant, month_of, next_month
from tests.domain.build_links import LPA, PROFILE, bought
from tests.projections.forgery import E, Forger, Paper, forged
from tests.projections.link_entries import (
    SOON,
    asked_change,
    asked_link,
    charge_of,
    do_step,
    due_fee,
    refund_of,
)

FEE_MICROS = 10_000


class LinkForger(Forger):
    """Methods named after a state write the way to it; the others only make the next events."""

    def __init__(self, log: Paper | None = None) -> None:
        super().__init__(log)
        self._esims: dict[str, Esim] = {}

    def requested(self, price: str = "0.10") -> Link:
        link = self.request(price)
        self.write(*link.collect_events())
        return link

    def request(self, price: str = "0.10") -> Link:
        return asked_link(self.organization_id, bought(price), PROFILE, self.cause)

    def requests(self) -> Link.Requested:
        """The request of a link that is not written yet."""
        return self._only(self.request(), Link.Requested)

    def reserved(self, price: str = "0.10") -> Link:
        link = self.requested(price)
        self.write(*self.reservation(link))
        return link

    def reservation(self, link: Link, iccid: str = "") -> list[Event]:
        """The link, its eSIM (registered if it is new), its charge if it has a price."""
        chosen = iccid or f"8988{link.id.int % 10**15:015d}"
        link.record(Link.EsimReserved, self.cause, iccid=chosen, sponsor_profile=PROFILE)
        taken = link.collect_events()
        price = link.requested.price
        paid = [self.charge("activation", link.id, price)] if price is not None else []
        return [*taken, *self.hold(chosen, link.id), *paid]

    def hold(self, iccid: str, link_id: UUID) -> Sequence[Event]:
        """The events of an eSIM that a link takes."""
        if iccid not in self._esims:
            self._esims[iccid] = Esim.register("simulated", iccid, self.cause)
        esim = self._esims[iccid]
        esim.reserve(link_id, self.cause)
        return esim.collect_events()

    def esim_of(self, link: Link) -> Esim:
        return self._esims[link.iccid]

    def begun(self, price: str = "0.10") -> Link:
        link = self.reserved(price)
        link.request_endpoint(self.cause.at + SOON, self.cause)
        self.write(*link.collect_events())
        return link

    def activation(self, link: Link) -> Sequence[Event]:
        endpoint = Endpoint("endpoint-1", link.iccid, str(link.id), "addon-1")
        link.activate(endpoint, LPA, self.cause, adopted=False)
        return link.collect_events()

    def active(self, price: str = "0.10") -> Link:
        link = self.begun(price)
        self.write(*self.activation(link))
        return link

    def failure(self, link: Link, **changes: Any) -> Link.ProvisioningFailed:
        link.fail("PROVISIONING_ERROR", {}, None, self.cause)
        return forged(self._only(link, Link.ProvisioningFailed), **changes)

    def money_back(self, link: Link, failed: Link.ProvisioningFailed) -> Wallet.Refunded:
        return self.refund("activation", link.id, failed.refund, link.requested.price)

    def failed_link(self) -> Link:
        """A link that was begun, with its money back and its eSIM still held."""
        link = self.begun()
        failed = self.failure(link)
        self.write(failed, self.money_back(link, failed))
        return link

    def release(self, link: Link) -> list[Event]:
        esim = self.esim_of(link)
        esim.release(link.id, self.cause)
        link.record(Link.EsimReleased, self.cause, iccid=link.iccid)
        return [*link.collect_events(), *esim.collect_events()]

    def activated(self, link: Link, **changes: Any) -> Link.Activated:
        """An activation, whether it may come or not."""
        facts = {
            "endpoint_id": "endpoint-1",
            "addon_id": None,
            "iccid": link.iccid,
            "sponsor_profile": None,
            "name": None,
            "plan": link.requested.plan,
            "activation_id": uuid4(),
            "lpa": None,
        }
        return self.fact(link, Link.Activated, **{**facts, **changes})

    def of_esim(self, link: Link, kind: type[E], **facts: Any) -> E:
        """Any event of the eSIM of a link, whether it may come or not."""
        esim = self.esim_of(link)
        esim.record(kind, self.cause, **facts)
        return self._only(esim, kind)

    def fact(self, link: Link, kind: type[E], /, **facts: Any) -> E:
        """Any event of a link, whether it may come or not."""
        with patch.object(Link, "STAGES", {}):
            link.record(kind, self.cause, organization_id=link.organization_id, **facts)
        return self._only(link, kind)

    def does(self, link: Link, kind: type[Event], /, **facts: Any) -> int:
        return self.write(self.fact(link, kind, **facts))

    def ask_for_change(
        self, link: Link, *prices: str, remove: Sequence[UUID] = ()
    ) -> tuple[PlanChange, PlanChange.Requested]:
        change = asked_change(link, remove, [bought(price) for price in prices], self.cause)
        return change, self._only(change, PlanChange.Requested)

    def changing(self, link: Link, *prices: str, remove: Sequence[UUID] = ()) -> PlanChange:
        """A change that was asked for, opened and paid for."""
        change, requested = self.ask_for_change(link, *prices, remove=remove)
        link.record(Link.ChangeOpened, self.cause, change_id=change.id)
        self.write(requested, *link.collect_events(), *self.top_ups(change))
        return change

    def top_ups(self, change: PlanChange) -> list[Wallet.Charged]:
        return [
            self.charge("topup", change.id, each.price)
            for each in change.requested.additions
            if each.price is not None
        ]

    def start(self, change: PlanChange) -> None:
        change.start_step(self.cause.at + SOON, self.cause)
        self.write(*change.collect_events())

    def step(self, change: PlanChange, link: Link) -> list[Event]:
        """The present step, on the change and on its link; the change stays open."""
        do_step(change, link, "addon-2", self.cause)
        return [*change.collect_events(), *link.collect_events()]

    def finish(self, change: PlanChange, link: Link) -> list[Event]:
        change.record(PlanChange.Finished, self.cause)
        link.record(Link.ChangeClosed, self.cause, change_id=link.open_change)
        return [*change.collect_events(), *link.collect_events()]

    def done(self, change: PlanChange, link: Link) -> None:
        """All steps of a change, and its end."""
        while change.next is not None:
            self.start(change)
            self.write(*self.step(change, link))
        self.write(*self.finish(change, link))

    def change_failure(self, change: PlanChange, **changes: Any) -> PlanChange.Failed:
        change.fail("PROVISIONING_ERROR", None, self.cause)
        return forged(self._only(change, PlanChange.Failed), **changes)

    def change_money_back(self, change: PlanChange) -> list[Wallet.Refunded]:
        paid = [each.price for each in change.requested.additions[len(change.added) :]]
        prices = [price for price in paid if price is not None]
        return [
            self.refund("topup", change.id, refund, price)
            for refund, price in zip(change.failure.refunds, prices, strict=True)
        ]

    def of_change(self, change: PlanChange, kind: type[E], **facts: Any) -> E:
        """Any event of a change, whether it may come or not."""
        owner = {"organization_id": self.organization_id, "link_id": change.link_id}
        with patch.object(PlanChange, "STAGES", {}):
            change.record(kind, self.cause, **owner, **facts)
        return self._only(change, kind)

    def moves(self, change: PlanChange, kind: type[Event], **facts: Any) -> int:
        return self.write(self.of_change(change, kind, **facts))

    def fee(self, count: int = 1, month: str = "") -> tuple[MonthlyFee, MonthlyFee.Due]:
        """The fee of all links that are active now, for a month to come; it may be many links."""
        month = month or next_month(month_of(self.cause.at))
        organization = self.log.get(Organization, self.organization_id)
        if organization.monthly_link_fee_micros != FEE_MICROS:
            organization.change_monthly_link_fee(FEE_MICROS, self.cause)
            self.write(*organization.collect_events())
        while len(links := self._active()) < count:
            self.active("0")
        cause = Cause(first_instant(month), self.cause.request_id)
        fee = due_fee(self.organization_id, month, links, cause, FEE_MICROS)
        return fee, self._only(fee, MonthlyFee.Due)

    def _active(self) -> list[UUID]:
        newest: dict[UUID, str] = {}
        for event in (decoded(row).event for row in self.log.rows):
            if isinstance(event, Link.Event) and (status := status_after(event)) is not None:
                newest[event.originator_id] = status
        return sorted(link for link, status in newest.items() if status == "active")

    def fee_charged(self, fee: MonthlyFee) -> tuple[MonthlyFee.Charged, Wallet.Charged]:
        due = fee.due
        facts = {"organization_id": due.organization_id, "month": due.month, "price": due.price}
        fee.record(MonthlyFee.Charged, self.cause, **facts)
        charged = self._only(fee, MonthlyFee.Charged)
        return charged, self.charge("monthly_link_fee", fee.id, due.price)

    def charge(
        self, kind: ChargeKind, stream_id: UUID, price: PaidPrice, **changes: Any
    ) -> Wallet.Charged:
        self.wallet.book([charge_of(kind, stream_id, price, {})], self.cause)
        return forged(self._only(self.wallet, Wallet.Charged), **changes)

    def refund(
        self, kind: ChargeKind, stream_id: UUID, refund: Repayment, price: PaidPrice
    ) -> Wallet.Refunded:
        self.wallet.book([refund_of(kind, stream_id, refund, price, {})], self.cause)
        return self._only(self.wallet, Wallet.Refunded)

    def begun_change(self, *prices: str) -> tuple[Link, PlanChange]:
        """A live link and a change of it whose first step has been begun."""
        link = self.active()
        change = self.changing(link, *prices)
        self.start(change)
        return link, change


def first_of(link: Link) -> UUID:
    """The activation that a link was created with."""
    return next(iter(link.activations))


Crime = Callable[[LinkForger], int]  # Writes what must not be; returns the position of the crime.
Crimes = list[tuple[Crime, str]]  # With the reason for which each is found.
