"""Lives of plan changes, as workers and requests append them."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from domain.cause import Cause
from domain.link import Link
from domain.plan_change import Addition, PlanChange, Removal
from domain.wallet import Metadata, wallet_id
from tests.domain.build_links import bought
from tests.projections.link_entries import charge_of, refund_of
from tests.projections.link_lives import DEADLINE, LinkLife


class ChangeLife:
    """One change of the plans of a link, charged for in its first transaction."""

    def __init__(self, life: LinkLife, remove: Sequence[UUID], *prices: str) -> None:
        self.process, self.id = life.process, uuid4()
        link, now = life.link, self.process.cause()
        change = PlanChange.request(
            self.id,
            now,
            organization_id=link.organization_id,
            link_id=link.id,
            removals=[Removal(each, link.activations[each].plan) for each in remove],
            plans=[bought(price, f"Top-up {price}") for price in prices],
            currency="USD",
            deadline=now.at + DEADLINE,
        )
        link.open_plan_change(self.id, now)
        charges = [
            charge_of("topup", self.id, each.price, _metadata(change, each))
            for each in change.requested.additions
            if each.price is not None
        ]
        if charges:
            wallet = wallet_id(change.organization_id)
            commit = self.process.committer.commit
            commit(wallet, lambda w: w.charge_all(charges, now), change, link)
        else:
            self.process.log.append(change, link)

    @property
    def change(self) -> PlanChange:
        return self.process.log.get(PlanChange, self.id)

    def start(self) -> None:
        change, now = self.change, self.process.cause()
        change.start_step(now.at + DEADLINE, now)
        self.process.log.append(change)

    def do(self) -> None:
        """Do the present step, on the change and on its link; the last one ends the change."""
        change, link, now = self._both()
        step = change.next
        if isinstance(step, Removal):
            link.remove_plan(step.activation_id, now)
            change.note_removed(now)
        else:
            assert step is not None
            addon_id = f"addon-{uuid4().hex[:8]}"
            change.note_added(addon_id, now, adopted=False)
            link.add_plan(step.activation_id, step.plan, addon_id, now)
        if change.failure is not None or change.next is None:
            _finish(change, link, now)
        self.process.log.append(change, link)

    def do_all(self) -> None:
        while self.change.next is not None:
            self.start()
            self.do()

    def fail(self, *, unknown: bool = False) -> None:
        """Give up at the present step, and end the change unless its outcome is unknown."""
        change, link, now = self._both()
        settled_at = now.at + DEADLINE if unknown else None
        back = iter(change.fail("PROVISIONING_ERROR", settled_at, now))
        refunds = [
            refund_of("topup", self.id, next(back), each.price, _metadata(change, each))
            for each in change.requested.additions[len(change.added) :]
            if each.price is not None
        ]
        if not unknown:
            _finish(change, link, now)
        if refunds:
            wallet = wallet_id(change.organization_id)
            commit = self.process.committer.commit
            commit(wallet, lambda w: w.refund_all(refunds, now), change, link)
        else:
            self.process.log.append(change, link)

    def finish(self) -> None:
        change, link, now = self._both()
        _finish(change, link, now)
        self.process.log.append(change, link)

    def _both(self) -> tuple[PlanChange, Link, Cause]:
        change = self.change
        return change, self.process.log.get(Link, change.link_id), self.process.cause()


def _metadata(change: PlanChange, addition: Addition) -> Metadata:
    plan = addition.plan
    linked = {"link_id": str(change.link_id), "activation_id": str(addition.activation_id)}
    return {**linked, "plan_id": str(plan.plan_id), "plan_name": plan.name}


def _finish(change: PlanChange, link: Link, now: Cause) -> None:
    change.finish(now)
    link.close_plan_change(now)
