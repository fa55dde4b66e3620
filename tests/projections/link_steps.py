"""Steps in the life of a link for read models, appended as requests and workers append them."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.wallet import Charge, Refund, wallet_id
from domain.catalogue.plan import SponsorProfile
from domain.cause import Cause
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim
from domain.links.link import EndKind, Link
from domain.links.network import Endpoint, LinkStatus
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.money import parse_amount
from domain.months import first_instant
from domain.personal import Sealed, in_clear
from tests.installation import Process
from tests.projections.link_entries import (
    SOON,
    asked_change,
    asked_link,
    charge_of,
    do_step,
    due_fee,
    metadata_of,
    refund_of,
)

PROFILE = SponsorProfile("sp-1", "Ærø", "#1F6FEB")
CODE = b"LPA:1$rsp.example$SECRET"  # As if sealed: nothing of it may be seen anywhere.
LPA = Sealed("2026-03", CODE)
CALL = timedelta(seconds=5)

_iccids = count(8_988_247_000_000_000_000)


def bought(name: str = "Europe 5 GB", price: str = "4.00") -> BoughtPlan:
    provider_plan_id = name.lower().replace(" ", "-")
    return BoughtPlan(uuid4(), provider_plan_id, name, parse_amount(price), 5_000, 30, ["AT", "DE"])


class LinkSteps:
    """One link; each method is a step of its life, at the moment of the clock."""

    def __init__(
        self,
        process: Process,
        organization_id: UUID,
        name: str | None = None,
        plan: BoughtPlan | None = None,
    ) -> None:
        self.process = process
        self.organization_id = organization_id
        self.iccid = str(next(_iccids))
        self.plan = plan or bought()
        link = asked_link(organization_id, self.plan, PROFILE, process.cause(), name)
        self.id = link.id
        process.log.append(link)

    @property
    def link(self) -> Link:
        return self.process.log.get(Link, self.id)

    def reserve(self, iccid: str = "") -> "LinkSteps":
        """Take an eSIM, a new one unless it is said which, and the price."""
        self.iccid = iccid or self.iccid
        link, cause = self.link, self.process.cause()
        esim = self.process.log.find(Esim, Esim.id_of("simulated", self.iccid))
        esim = esim or Esim.register("simulated", self.iccid, cause)
        esim.reserve(link.id, cause)
        link.record(Link.EsimReserved, cause, iccid=self.iccid, sponsor_profile=PROFILE)
        price, metadata = link.requested.price, metadata_of(self.id, self.plan)
        charges = [charge_of("activation", self.id, price, metadata)] if price else []
        self._book(charges, link, esim)
        return self

    def begin(self) -> "LinkSteps":
        return self._do(lambda link, cause: link.request_endpoint(cause.at + CALL, cause))

    def activate(
        self, lpa: Sealed | None = LPA, addon_id: str | None = "addon-1", *, adopted: bool = False
    ) -> "LinkSteps":
        """Activate a link, with all that has to be before it."""
        link = self.link
        if link.iccid is None:
            link = self.reserve().link
        if link.intent is None:
            link = self.begin().link
        endpoint = Endpoint(f"endpoint-{self.iccid}", self.iccid, str(self.id), addon_id)
        link.activate(endpoint, lpa, self.process.cause(), adopted=adopted)
        self.process.log.append(link)
        return self

    def fail(
        self, settled_at: datetime | None = None, code: str = "PROVISIONING_ERROR"
    ) -> "LinkSteps":
        """Give up, with the money back; `settled_at` when an endpoint may come until then."""
        link, cause = self.link, self.process.cause()
        refund = link.fail(code, {"why": "no answer"}, settled_at, cause)
        esims = []
        if settled_at is not None and link.iccid is not None:
            esims = [self.process.log.get(Esim, Esim.id_of("simulated", self.iccid))]
            esims[0].quarantine(self.id, settled_at, cause)
        price, metadata = link.requested.price, metadata_of(self.id, self.plan)
        refunds = []
        if refund is not None and price is not None:
            refunds.append(refund_of("activation", self.id, refund, price, metadata))
        self._book(refunds, link, *esims)
        return self

    def remove_endpoint(self) -> "LinkSteps":
        self._record(Link.EndpointFound, endpoint_id="endpoint-late")
        return self._record(Link.EndpointRemoved, endpoint_id="endpoint-late")

    def release(self) -> "LinkSteps":
        link, esim = self.link, self.process.log.get(Esim, Esim.id_of("simulated", self.iccid))
        link.record(Link.EsimReleased, self.process.cause(), iccid=link.iccid)
        esim.release(self.id, self.process.cause())
        self.process.log.append(link, esim)
        return self

    def _do(self, step: Callable[[Link, Cause], object]) -> "LinkSteps":
        link = self.link
        step(link, self.process.cause())
        if link.pending_events:
            self.process.log.append(link)
        return self

    def _record(self, event: type[Event], **facts: Any) -> "LinkSteps":
        return self._do(lambda link, cause: link.record(event, cause, **facts))

    def intend(self, status: LinkStatus) -> "LinkSteps":
        return self._do(lambda link, cause: link.request_status(status, cause.at + CALL, cause))

    def settle(self, status: LinkStatus) -> "LinkSteps":
        return self._do(lambda link, cause: link.settle_status(status, cause))

    def switch(self, status: LinkStatus) -> "LinkSteps":
        return self.intend(status).settle(status)

    def rename(self, name: str | None) -> "LinkSteps":
        return self._do(lambda link, cause: link.rename(in_clear(name), cause))

    def intend_end(self, kind: EndKind) -> "LinkSteps":
        return self._record(Link.EndRequested, kind=kind, until=self.process.clock() + SOON)

    def keep(self) -> "LinkSteps":
        return self._record(Link.EndKept)

    def finish(self) -> "LinkSteps":
        """End it, with what is left of its charges if that was intended."""
        ending = self.process.link_ending
        ending.commit(self.link, True, self.process.cause())  # noqa: FBT003  # It was seen.
        return self

    def see(
        self, status: LinkStatus, installed: datetime | None = None, used: datetime | None = None
    ) -> "LinkSteps":
        return self._do(lambda link, cause: link.record_seen(status, installed, used, cause))

    def tell(self, percent: float, expires_at: datetime | None = None) -> "LinkSteps":
        """Record how much of the first plan is used up, and when it ends."""

        def step(link: Link, cause: Cause) -> None:
            activation_id = next(iter(link.activations))
            link.record_used(activation_id, percent, cause)
            if expires_at is not None:
                link.record_once(Link.PlanStarted, activation_id, cause, expires_at=expires_at)
                link.record_once(Link.ExpiryNear, activation_id, cause, expires_at=expires_at)
                link.record_once(Link.PlanEnded, activation_id, cause)

        return self._do(step)

    def start_plan(self, expires_at: datetime) -> "LinkSteps":
        """Record that its network has told when the first plan ends."""

        def step(link: Link, cause: Cause) -> None:
            link.record_once(
                Link.PlanStarted, next(iter(link.activations)), cause, expires_at=expires_at
            )

        return self._do(step)

    def store_lpa(self, lpa: Sealed = LPA) -> "LinkSteps":
        return self._record(Link.LpaStored, lpa=lpa)

    def change(self, remove: Sequence[UUID] = (), add: Sequence[BoughtPlan] = ()) -> "ChangeSteps":
        return ChangeSteps(self, remove, add)

    def _book(
        self, entries: Sequence[Charge | Refund], *aggregates: Link | Esim | PlanChange
    ) -> None:
        if not entries:
            self.process.log.append(*aggregates)
            return
        wallet, cause = wallet_id(self.organization_id), self.process.cause()
        self.process.committer.commit(wallet, lambda w: w.book(entries, cause), *aggregates)


class ChangeSteps:
    """A change of the plans of a link, step by step."""

    def __init__(
        self, life: LinkSteps, remove: Sequence[UUID] = (), add: Sequence[BoughtPlan] = ()
    ) -> None:
        self.life, self.process, link = life, life.process, life.link
        change = asked_change(link, remove, add, self.process.cause())
        self.id = change.id
        link.record(Link.ChangeOpened, self.process.cause(), change_id=change.id)
        charges = [
            charge_of("topup", change.id, each.price, metadata_of(life.id, each.plan))
            for each in change.requested.additions
            if each.price is not None
        ]
        life._book(charges, change, link)  # noqa: SLF001  # Two halves of one helper.

    @property
    def change(self) -> PlanChange:
        return self.process.log.get(PlanChange, self.id)

    def start(self) -> "ChangeSteps":
        change = self.change
        change.start_step(self.process.clock() + CALL, self.process.cause())
        self.process.log.append(change)
        return self

    def do(self) -> "ChangeSteps":
        """Do the present step, the intent before it included; the last one ends the change."""
        change = self.change
        if change.intent is None:
            change = self.start().change
        link, cause = self.life.link, self.process.cause()
        do_step(change, link, f"addon-{uuid4()}", cause)
        if change.failure is not None or change.next is None:
            change.record(PlanChange.Finished, cause)
            link.record(Link.ChangeClosed, cause, change_id=link.open_change)
        self.process.log.append(change, link)
        return self

    def do_all(self) -> "ChangeSteps":
        while self.change.next is not None:
            self.do()
        return self

    def fail(self, settled_at: datetime | None = None) -> "ChangeSteps":
        """Give up at the present step, with the money back for what was not added."""
        change, cause = self.change, self.process.cause()
        back = iter(change.fail("PROVISIONING_ERROR", settled_at, cause))
        refunds = [
            refund_of(
                "topup", self.id, next(back), each.price, metadata_of(self.life.id, each.plan)
            )
            for each in change.requested.additions[len(change.added) :]
            if each.price is not None
        ]
        self.life._book(refunds, change)  # noqa: SLF001  # Two halves of one helper.
        return self

    def finish(self) -> "ChangeSteps":
        change, link, cause = self.change, self.life.link, self.process.cause()
        change.record(PlanChange.Finished, cause)
        link.record(Link.ChangeClosed, cause, change_id=link.open_change)
        self.process.log.append(change, link)
        return self


def owe(
    process: Process,
    organization_id: UUID,
    month: str,
    links: Sequence[UUID],
    fee_micros: int = 500_000,
) -> MonthlyFee:
    """Let the fee of a month fall due, not before it begins."""
    now = process.cause()
    cause = Cause(max(now.at, first_instant(month)), now.request_id)
    fee = due_fee(organization_id, month, links, cause, fee_micros)
    process.log.append(fee)
    return fee


def charge_fee(
    process: Process, organization_id: UUID, month: str, links: Sequence[UUID], **more: int
) -> MonthlyFee:
    fee, cause = owe(process, organization_id, month, links, **more), process.cause()
    fee.record_charged(cause)
    metadata = {"month": month, "charged_link_ids": [str(each) for each in links]}
    charge = charge_of("monthly_link_fee", fee.id, fee.due.price, metadata)
    process.committer.commit(
        wallet_id(organization_id), lambda wallet: wallet.book([charge], cause), fee
    )
    return fee
