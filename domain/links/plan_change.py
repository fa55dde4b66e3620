"""A change of the plans of a link: first the removals, then the top-ups, one step each."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

import msgspec

from domain.accounts.paid_price import GivenBack, PaidPrice, Repaying, Repayment, price_of
from domain.accounts.refund_by_hand import Refundable, RefundByHand
from domain.catalogue.plan import SIMULATED
from domain.cause import Cause
from domain.ids import derive_id
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link
from domain.links.network import Addon
from domain.log.aggregate import NOTHING, SOMETHING, TRUE, Created, Root, fact, itself, sets

NEXT_STEP = sets(done=lambda event: event.index + 1, intent=None)


class Removal(msgspec.Struct, frozen=True):
    """A plan to remove; nothing is refunded for it."""

    activation_id: UUID
    plan: BoughtPlan


class Addition(msgspec.Struct, frozen=True):
    """A plan to add; `price` is None for one that costs nothing."""

    activation_id: UUID
    plan: BoughtPlan
    price: PaidPrice | None


class PlanChange(Refundable):
    """A change of plans. Steps are known by index: the removals, then the additions, in order."""

    TOPIC = "plan_change"
    KIND = "plan_change"

    class Event(Root.Event):
        organization_id: UUID
        link_id: UUID

    class Requested(Event, Created):
        """Saved together with the charges for all additions."""

        TOPIC = "plan_change.requested"
        IS_STEP = True
        SETS = sets("organization_id", "link_id", requested=itself)

        removals: list[Removal]
        additions: list[Addition]
        deadline: datetime

    class StepStarted(Event):
        """An intent: its writer alone calls the network, and the call is over at `until`."""

        TOPIC = "plan_change.step_started"  # Never triggered itself.
        IS_STEP = True
        SETS = sets(intent=itself)

        index: int
        attempt: int
        until: datetime

    class PlanRemovalStarted(StepStarted):
        TOPIC = "plan_change.plan_removal_started"

    class PlanAdditionStarted(StepStarted):
        TOPIC = "plan_change.plan_addition_started"

    class PlanRemovalDone(Event):
        TOPIC = "plan_change.plan_removal_done"
        SETS = NEXT_STEP

        index: int

    class PlanAdditionDone(Event):
        """`adopted`: the reply was lost, and the add-on was found at the network."""

        TOPIC = "plan_change.plan_addition_done"
        SETS = NEXT_STEP

        index: int
        addon_id: str | None
        adopted: bool

    class Failed(Event, Repaying):
        """Step `index` and all later steps were not done, and their charges are refunded.

        `settled_at` is when the network can no longer do that step; None if that is now.
        `reason` is the API's; None in older events.
        """

        TOPIC = "plan_change.failed"
        SETS = sets(failure=itself)

        code: str
        index: int
        refunds: list[Repayment]
        settled_at: datetime | None
        reason: str | None = field(default=None, kw_only=True)

    class Finished(Event):
        """Nothing of this change can happen any more, so the link can take another change."""

        TOPIC = "plan_change.finished"
        SETS = sets(finished_at=fact("timestamp"))

    class Returned(Event):
        """Its link was cancelled in this commit, with refunds of what was left of its charges."""

        TOPIC = "plan_change.returned"

        refunds: list[GivenBack]

        def apply(self, aggregate: "PlanChange") -> None:
            aggregate.returned = (*aggregate.returned, *self.refunds)

    class RefundedByHand(RefundByHand):
        TOPIC = "plan_change.refunded_by_hand"

        link_id: UUID

    OWN = ("organization_id", "link_id")
    STAGES: ClassVar = {
        "next_kind": {
            **dict.fromkeys((PlanRemovalStarted, PlanRemovalDone), (Removal,)),
            **dict.fromkeys((PlanAdditionStarted, PlanAdditionDone), (Addition,)),
            Failed: (Removal, Addition),
        },
        "failure": dict.fromkeys((PlanAdditionDone, Failed), NOTHING),
        "is_answered": {Finished: TRUE},
        "finished_at": {**dict.fromkeys((PlanRemovalDone, Finished), NOTHING), Returned: SOMETHING},
    }

    link_id: UUID
    requested: Requested
    done: int = 0
    intent: "PlanChange.StepStarted | None" = None
    failure: "PlanChange.Failed | None" = None
    finished_at: datetime | None = None
    returned: tuple[GivenBack, ...] = ()

    @classmethod
    def request(
        cls,
        change_id: UUID,
        cause: Cause,
        *,
        plans: Sequence[BoughtPlan],
        currency: str,
        **facts: Any,
    ) -> Self:
        """Request a change; saved together with its charges and with its link, which opens it."""
        facts["additions"] = [_addition(change_id, i, e, currency) for i, e in enumerate(plans)]
        assert facts["removals"] or plans
        return cls.begin(cls.Requested, cause, change_id, **facts)

    @property
    def network(self) -> str:
        """The name of the network of its link, which is that of each of its plans."""
        steps: list[Removal | Addition] = [*self.requested.removals, *self.requested.additions]
        return steps[0].plan.network or SIMULATED

    @property
    def next(self) -> Removal | Addition | None:
        """The step to do now; None when all are done."""
        steps: list[Removal | Addition] = [*self.requested.removals, *self.requested.additions]
        return steps[self.done] if self.done < len(steps) else None

    @property
    def next_kind(self) -> type[Removal | Addition | None]:
        return type(self.next)

    @property
    def attempts(self) -> int:
        """How often the present step was started."""
        return self.intent.attempt if self.intent is not None else 0

    @property
    def removed(self) -> list[Removal]:
        return self.requested.removals[: self._applied]

    @property
    def added(self) -> list[Addition]:
        return self.requested.additions[: max(0, self._applied - len(self.requested.removals))]

    @property
    def _applied(self) -> int:
        """How many steps were done when the sender was answered; a removal may come later."""
        return self.failure.index if self.failure is not None else self.done

    @property
    def kept_micros(self) -> int:
        """What the change has cost in the end: all charges minus the refunds."""
        charged = sum(each.price.amount_micros for each in self.requested.additions if each.price)
        refunds = self.failure.refunds if self.failure is not None else []
        return charged - sum(refund.amount_micros for refund in refunds)

    @property
    def is_answered(self) -> bool:
        """Tell whether the sender can be told the outcome."""
        return self.failure is not None or self.next is None

    @property
    def kept_nothing(self) -> bool:
        """Tell whether it has failed and certainly changed and cost nothing.

        Until the change has finished, a removal whose reply was lost may still turn out to be done.
        """
        failed_first = self.failure is not None and self.failure.index == 0 and self.done == 0
        return failed_first and (not self.requested.removals or self.finished_at is not None)

    def start_step(self, until: datetime, cause: Cause) -> None:
        """State the intent before the call; only its writer may call, until that moment.

        A step that failed with an unknown outcome may be repeated in order to be undone.
        """
        assert self.failure is None or self.failure.settled_at is not None
        is_removal = isinstance(self.next, Removal)
        event = self.PlanRemovalStarted if is_removal else self.PlanAdditionStarted
        self.record(event, cause, index=self.done, attempt=self.attempts + 1, until=until)

    def record_added(self, link: Link, addon: Addon, cause: Cause, *, adopted: bool) -> None:
        """Note that the present addition is on the link; `adopted`: its reply was lost.

        This and what follows also record it in the link, which is saved together with the change.
        """
        addition = self.next
        assert isinstance(addition, Addition)
        facts = {"index": self.done, "addon_id": addon.addon_id, "adopted": adopted}
        self.record(self.PlanAdditionDone, cause, **facts)
        link.add_plan(addition.activation_id, addition.plan, addon, cause)
        for each in _unbought(link, addition, addon):
            link.record_plan_left_over(each, addition.plan, cause)
        if self.is_answered:
            self.finish(link, cause)

    def record_removed(self, link: Link, cause: Cause) -> None:
        """Note that the present removal is done, after all if the change has failed at it."""
        assert isinstance(self.next, Removal)
        link.remove_plan(self.next.activation_id, cause)
        self.record(self.PlanRemovalDone, cause, index=self.done)
        if self.is_answered:
            self.finish(link, cause)

    def finish(self, link: Link, cause: Cause, left_over: str | None = None) -> None:
        """End a change of which nothing can happen any more.

        `left_over` is a late add-on that the network refuses to remove: an incident.
        """
        if left_over is not None:
            assert self.next is not None
            link.record_plan_left_over(left_over, self.next.plan, cause)
        self.record(self.Finished, cause)
        link.record(Link.ChangeClosed, cause, change_id=link.open_change)

    def fail(
        self, code: str, settled_at: datetime | None, cause: Cause, reason: str | None = None
    ) -> list[Repayment]:
        """Give up at the present step; return the refunds that belong to the same commit."""
        refunds = [
            Repayment(each.price.amount_micros, derive_id("refund", each.activation_id))
            for each in self.requested.additions[len(self.added) :]
            if each.price is not None
        ]
        facts = {"code": code, "reason": reason, "index": self.done, "refunds": refunds}
        self.record(self.Failed, cause, **facts, settled_at=settled_at)
        return refunds

    def give_back(self, cause: Cause) -> list[GivenBack]:
        """Give back what is left of its charges; saved with its link, which is cancelled."""
        if refunds := self.left():
            self.record(self.Returned, cause, refunds=refunds)
        return refunds

    def paid(self) -> Iterable[tuple[PaidPrice, int]]:
        returned = {each.charge_id: each.amount_micros for each in self.returned}
        for addition in self.requested.additions:
            if (price := addition.price) is not None:
                failed = self.failure is not None and addition not in self.added
                back_micros = price.amount_micros if failed else 0
                yield price, back_micros + returned.get(price.transaction_id, 0)

    def still_open(self) -> str | None:
        return "the change of plans has not finished" if self.finished_at is None else None


def _addition(change_id: UUID, index: int, plan: BoughtPlan, currency: str) -> Addition:
    activation_id = derive_id("activation", change_id, index)
    return Addition(activation_id, plan, price_of(activation_id, plan.price_micros, currency))


def _unbought(link: Link, addition: Addition, addon: Addon) -> Sequence[str]:
    """Return add-ons of the same plan without an activation, such as when one was added twice.

    The first ones are left to activations whose add-on is not known.
    """
    known = {each.addon_id for each in link.activations.values()}
    rest = [each for each in addon.others if each not in known]
    named = addition.plan.provider_plan_id
    bought = [each for each in link.current_activations if each.addon_id is None]
    unknown = [each for each in bought if each.plan.provider_plan_id == named]
    return rest[len(unknown) :]
