"""Steps in the life of a link for read models, appended as requests and workers append them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID, uuid4

from domain.activation import BoughtPlan
from domain.commands.provisioning_failure import link_metadata
from domain.esim import Esim, esim_id
from domain.link import Link
from domain.money import parse_amount
from domain.monthly_fee import MonthlyFee
from domain.network import Endpoint, LinkStatus
from domain.plan import SponsorProfile
from domain.plan_change import Addition, PlanChange, Removal
from domain.ports import Sealed
from domain.wallet import Charge, Reference, Refund, wallet_id
from tests.installation import Process

PROFILE = SponsorProfile("sp-1", "Ærø", "#1F6FEB")
CODE = b"LPA:1$rsp.example$SECRET"  # As if sealed: nothing of it may be seen anywhere.
LPA = Sealed("2026-03", CODE)
SOON = timedelta(seconds=15)

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
        link = Link.request(
            uuid4(),
            process.cause(),
            organization_id=organization_id,
            name=name,
            plan=self.plan,
            sponsor_profiles=[PROFILE],
            currency="USD",
            deadline=process.clock() + SOON,
        )
        self.id = link.id
        process.log.append(link)

    @property
    def link(self) -> Link:
        return self.process.log.get(Link, self.id)

    def reserve(self) -> "LinkSteps":
        link, cause = self.link, self.process.cause()
        esim = self.process.log.find(Esim, esim_id("simulated", self.iccid))
        esim = esim or Esim.register("simulated", self.iccid, cause)
        esim.reserve(link.id, cause)
        link.reserve_esim(self.iccid, PROFILE, cause)
        price = link.requested.price
        charges = []
        if price is not None:
            charge = Charge(
                price.transaction_id,
                "activation",
                price.amount_micros,
                price.currency,
                Reference("link", str(link.id)),
                f"Activation: {self.plan.name}",
                link_metadata(link),
            )
            charges.append(charge)
        self._charge(charges, link, esim)
        return self

    def begin(self) -> "LinkSteps":
        link = self.link
        link.request_endpoint(self.process.clock() + timedelta(seconds=5), self.process.cause())
        self.process.log.append(link)
        return self

    def activate(self, lpa: Sealed | None = LPA, addon_id: str | None = "addon-1") -> "LinkSteps":
        """Activate a link, with all that has to be before it."""
        link = self.link
        if link.iccid is None:
            link = self.reserve().link
        if link.intent is None:
            link = self.begin().link
        endpoint = Endpoint(f"endpoint-{self.iccid}", self.iccid, str(self.id), addon_id)
        link.activate(endpoint, lpa, self.process.cause(), adopted=False)
        self.process.log.append(link)
        return self

    def fail(self, settled_at: datetime | None = None) -> "LinkSteps":
        link, cause = self.link, self.process.cause()
        refund = link.fail("PROVISIONING_ERROR", {"why": "no answer"}, settled_at, cause)
        esims = []
        if settled_at is not None:
            esims = [self.process.log.get(Esim, esim_id("simulated", self.iccid))]
            esims[0].quarantine(self.id, settled_at, cause)
        refunds = []
        if refund is not None:
            assert link.requested.price is not None
            back = Refund(
                refund.transaction_id,
                link.requested.price.transaction_id,
                refund.amount_micros,
                link.requested.price.currency,
                Reference("link", str(link.id)),
                "Refund of a failed activation",
                link_metadata(link),
            )
            refunds.append(back)
        self._refund(refunds, link, *esims)
        return self

    def remove_endpoint(self) -> "LinkSteps":
        link = self.link
        link.note_endpoint_removed("endpoint-late", self.process.cause())
        self.process.log.append(link)
        return self

    def release(self) -> "LinkSteps":
        link, esim = self.link, self.process.log.get(Esim, esim_id("simulated", self.iccid))
        link.note_esim_released(self.process.cause())
        esim.release(self.id, self.process.cause())
        self.process.log.append(link, esim)
        return self

    def intend(self, status: LinkStatus) -> "LinkSteps":
        link = self.link
        link.request_status(
            status, self.process.clock() + timedelta(seconds=5), self.process.cause()
        )
        self.process.log.append(link)
        return self

    def settle(self, status: LinkStatus) -> "LinkSteps":
        link = self.link
        link.settle_status(status, self.process.cause())
        self.process.log.append(link)
        return self

    def switch(self, status: LinkStatus) -> "LinkSteps":
        return self.intend(status).settle(status)

    def see(
        self, status: LinkStatus, installed: datetime | None = None, used: datetime | None = None
    ) -> "LinkSteps":
        link = self.link
        link.note_seen(status, installed, used, self.process.cause())
        if link.pending_events:
            self.process.log.append(link)
        return self

    def store_lpa(self, lpa: Sealed = LPA) -> "LinkSteps":
        link = self.link
        link.store_lpa(lpa, self.process.cause())
        self.process.log.append(link)
        return self

    def change(self, remove: Sequence[UUID] = (), add: Sequence[BoughtPlan] = ()) -> "ChangeSteps":
        return ChangeSteps(self, remove, add)

    def _charge(self, charges: Sequence[Charge], *aggregates: Link | Esim | PlanChange) -> None:
        if not charges:
            self.process.log.append(*aggregates)
            return
        wallet, cause = wallet_id(self.organization_id), self.process.cause()
        self.process.committer.commit(wallet, lambda w: w.charge_all(charges, cause), *aggregates)

    def _refund(self, refunds: Sequence[Refund], *aggregates: Link | Esim | PlanChange) -> None:
        if not refunds:
            self.process.log.append(*aggregates)
            return
        wallet, cause = wallet_id(self.organization_id), self.process.cause()
        self.process.committer.commit(wallet, lambda w: w.refund_all(refunds, cause), *aggregates)


class ChangeSteps:
    """A change of the plans of a link, step by step."""

    def __init__(
        self, life: LinkSteps, remove: Sequence[UUID] = (), add: Sequence[BoughtPlan] = ()
    ) -> None:
        self.life, self.process, link = life, life.process, life.link
        change = PlanChange.request(
            uuid4(),
            self.process.cause(),
            organization_id=life.organization_id,
            link_id=life.id,
            removals=[Removal(each, link.activations[each].plan) for each in remove],
            plans=add,
            currency="USD",
            deadline=self.process.clock() + SOON,
        )
        self.id = change.id
        link.open_plan_change(change.id, self.process.cause())
        charges = [
            Charge(
                each.price.transaction_id,
                "topup",
                each.price.amount_micros,
                each.price.currency,
                Reference("plan_change", str(change.id)),
                f"Top-up: {each.plan.name}",
                {"link_id": str(life.id), "plan_name": each.plan.name},
            )
            for each in change.requested.additions
            if each.price is not None
        ]
        life._charge(charges, change, link)  # noqa: SLF001  # Two halves of one helper.

    @property
    def change(self) -> PlanChange:
        return self.process.log.get(PlanChange, self.id)

    def start(self) -> "ChangeSteps":
        change = self.change
        change.start_step(self.process.clock() + timedelta(seconds=5), self.process.cause())
        self.process.log.append(change)
        return self

    def do(self) -> "ChangeSteps":
        """Do the present step, the intent before it included; end the change with its last one."""
        change, link, cause = self.start().change, self.life.link, self.process.cause()
        step = change.next
        assert step is not None
        if isinstance(step, Addition):
            change.note_added(f"addon-{step.activation_id}", cause, adopted=False)
            link.add_plan(step.activation_id, step.plan, f"addon-{step.activation_id}", cause)
        else:
            change.note_removed(cause)
            link.remove_plan(step.activation_id, cause)
        if change.next is None:
            change.finish(cause)
            link.close_plan_change(cause)
        self.process.log.append(change, link)
        return self

    def fail(self) -> "ChangeSteps":
        change, cause = self.change, self.process.cause()
        paid = [each for each in change.requested.additions[len(change.added) :] if each.price]
        given = change.fail("PROVISIONING_ERROR", None, cause)
        refunds = [
            Refund(
                back.transaction_id,
                each.price.transaction_id,
                back.amount_micros,
                each.price.currency,
                Reference("plan_change", str(change.id)),
                "Refund of a failed top-up",
                {"link_id": str(self.life.id), "plan_name": each.plan.name},
            )
            for back, each in zip(given, paid, strict=True)
            if each.price is not None
        ]
        self.life._refund(refunds, change)  # noqa: SLF001  # Two halves of one helper.
        return self

    def finish(self) -> "ChangeSteps":
        change, link, cause = self.change, self.life.link, self.process.cause()
        change.finish(cause)
        link.close_plan_change(cause)
        self.process.log.append(change, link)
        return self


def charge_fee(
    process: Process, organization_id: UUID, month: str, link_ids: Sequence[UUID]
) -> MonthlyFee:
    """Let the fee of a month fall due, and charge it."""
    cause = process.cause()
    facts = {"fee_micros": 500_000, "link_ids": link_ids, "currency": "USD"}
    fee = MonthlyFee.fall_due(organization_id, month, cause, **facts)  # type: ignore[arg-type]  # each has its own type
    process.log.append(fee)
    fee = process.log.get(MonthlyFee, fee.id)
    fee.note_charged(cause)
    price = fee.due.price
    charge = Charge(
        price.transaction_id,
        "monthly_link_fee",
        price.amount_micros,
        price.currency,
        Reference("monthly_fee", str(fee.id)),
        f"Monthly link fee {month}",
        {"month": month, "charged_link_ids": [str(each) for each in link_ids]},
    )
    process.committer.commit(
        wallet_id(organization_id), lambda wallet: wallet.charge(charge, cause), fee
    )
    return fee
