"""The steps of a plan change, one per plan; any worker may start any of them at any time."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.cause import Cause
from domain.errors import Conflict, Refused
from domain.links.bought_plan import match_addons
from domain.links.link import Link
from domain.links.network import Addon, AddonUsage, NoSuchEndpoint
from domain.links.plan_change import Addition, PlanChange, Removal
from domain.links.saga import Step, after_nothing, is_settled, next_step
from domain.log.log import retry_on_conflict
from domain.provider_errors import ProviderError, Rejected, Unavailable
from workers.saga import CALL, Calling

UNSEEN = timedelta(hours=1)  # How long to wait for a network that does not answer.

logger = logging.getLogger(__name__)

Decide = Callable[[PlanChange, Link, Cause], None]


@dataclass(frozen=True)
class PlanChanges(Calling[PlanChange]):
    """Works on the changes of one network."""

    def _next(self, change: PlanChange) -> Step:
        return next_step(change, self.clock(), self.network.shape)

    def _start(self, change: PlanChange) -> bool:
        """Append the intent and only then call; a worker that loses the race must not call."""
        link = self.log.get(Link, change.link_id)
        now = self.clock()
        until = self._until(change, now)
        if until <= now:
            return True
        change.start_step(until, self._cause(change))
        self.log.claim(change)
        if isinstance(removal := change.next, Removal):
            done = self._called(change, lambda _: self._remove(link, removal, until))
            return done is None or self._save(change, PlanChange.note_removed)
        addon = self._called(change, lambda left_s: self._put_on(link, change, left_s))
        return addon is None or self._add(change, addon)

    def _remove(self, link: Link, removal: Removal, until: datetime) -> bool:
        addon_id = link.activations[removal.activation_id].addon_id
        if addon_id is None:
            addon = self._addon_of(link, removal, self._left_s(until))
            addon_id = addon.addon_id if addon is not None else None
        if addon_id is not None:  # Otherwise the network does not have it any more.
            assert link.endpoint_id is not None
            if not (left_s := self._left_s(until)):  # The lookup took all the time.
                raise Unavailable
            self.network.remove_plan(link.endpoint_id, addon_id, timeout_s=left_s)
        return True

    def _add(self, change: PlanChange, addon: Addon) -> bool:
        try:
            return self._note_added(change, addon, adopted=False)
        except Conflict:
            self._take_back(change, addon.addon_id)
            raise

    def _put_on(self, link: Link, change: PlanChange, timeout_s: float) -> Addon:
        """Ask the network to add the plan of the current step, under its reference."""
        assert link.endpoint_id is not None
        addition = change.next
        assert isinstance(addition, Addition)
        plan, reference = addition.plan.at_provider, str(addition.activation_id)
        return self.network.add_plan(link.endpoint_id, plan, reference, timeout_s=timeout_s)

    def _take_off(self, link: Link, addon_id: str) -> None:
        assert link.endpoint_id is not None
        self.network.remove_plan(link.endpoint_id, addon_id, timeout_s=CALL.total_seconds())

    def _take_back(self, change: PlanChange, addon_id: str | None) -> None:
        """Remove an add-on that was added after its failed change had ended."""
        current, link = self.log.get(PlanChange, change.id), self.log.get(Link, change.link_id)
        known = {activation.addon_id for activation in link.activations.values()}
        if current.finished_at is None or (addon_id is not None and addon_id in known):
            return
        logger.error("a plan was added after change %s had ended; it is removed", change.id)
        try:
            if addon_id is None and (found := self._new_addons(link, change, CALL.total_seconds())):
                addon_id = found[0].addon_id
            if addon_id is not None:
                self._take_off(link, addon_id)
        except ProviderError:  # Nobody tries again, so this is an incident.
            if addon_id is not None and (step := change.next) is not None:
                left, plan, cause = addon_id, step.plan, self._cause(change)
                self.log.change(link, lambda it: it.note_plan_left_over(left, plan, cause))

    def _look_up(self, change: PlanChange) -> bool:
        link = self.log.get(Link, change.link_id)
        timeout_s, step = self._left_s(change.requested.deadline), change.next
        assert step is not None
        try:
            if isinstance(step, Removal):
                if self._addon_of(link, step, timeout_s) is None:
                    return self._save(change, PlanChange.note_removed)
            elif found := self._new_addons(link, change, timeout_s):
                first, *more = found
                cost = step.plan.cost_of(first.order_reference or first.addon_id)
                addon = Addon(first.addon_id, cost, tuple(each.addon_id for each in more))
                return self._note_added(change, addon, adopted=True)
        except ProviderError:
            return False
        once = self.network.adds_once or isinstance(step, Removal)
        then = after_nothing(change, self.clock(), may_repeat=once)
        return then is not Step.WAIT and self._do(then, change)

    def _clean_up(self, change: PlanChange) -> bool:
        """Find out what happened to a failed step with an unknown outcome; then end the change."""
        link = self.log.get(Link, change.link_id)
        is_removal = isinstance(change.next, Removal)
        # Asked before the look, because the answer may lack changes made after it was asked for.
        settled = self._is_settled(change)
        try:
            seen = self._look_for(link, change)
        except ProviderError:
            return self._is_unseen(change) and self._end_unseen(change, link)
        if is_removal and seen is None:
            return self._save(change, PlanChange.note_removed)
        if is_removal or seen is None:
            return settled and self._save(change, PlanChange.finish)
        try:
            self._take_off(link, seen.addon_id)
        except Rejected:  # For good, such as while it is in use; the link must not wait for ever.
            addon_id = seen.addon_id
            return self._save(change, lambda it, *more: it.finish(*more, addon_id))
        except ProviderError:
            return False
        return self._save(change, PlanChange.finish)

    def _end_unseen(self, change: PlanChange, link: Link) -> bool:
        """End a change whose link the network has not shown for long.

        A removal is left as it is. An addition is repeated under its reference and then removed;
        after that no add-on can appear under this reference any more. If the network would add a
        repeated plan twice, the change stays open until the network shows the link again.
        """
        if isinstance(change.next, Removal):
            return self._save(change, PlanChange.finish)
        if not self.network.adds_once:
            return False
        until = self.clock() + CALL
        change.start_step(until, self._cause(change))
        self.log.claim(change)
        left_s = (until - self.clock()).total_seconds()
        if left_s <= 0:
            return True
        addon_id = None
        try:
            # Rejected: there is no add-on, because its reference was removed before.
            with suppress(Rejected):
                addon_id = self._put_on(link, change, left_s).addon_id
            if addon_id is not None:
                self._take_off(link, addon_id)
        # It is tried again after UNSEEN has passed once more.
        except ProviderError:
            if addon_id is not None:
                self._take_back(change, addon_id)
            return False
        return self._save(change, PlanChange.finish)

    def _is_unseen(self, change: PlanChange) -> bool:
        """Tell whether the last call ended so long ago that waiting for its outcome should end."""
        assert change.intent is not None
        waited = self.clock() >= change.intent.until + self.network.settles_after + UNSEEN
        return waited and self._is_settled(change)

    def _is_settled(self, change: PlanChange) -> bool:
        """Tell whether the failed call can have no more effect."""
        return is_settled(change, self.network.settles_after, self.clock())

    def _look_for(self, link: Link, change: PlanChange) -> AddonUsage | None:
        """Return the add-on of the current step, if the network shows it."""
        timeout_s = CALL.total_seconds()
        if isinstance(change.next, Removal):
            return self._addon_of(link, change.next, timeout_s)
        return next(iter(self._new_addons(link, change, timeout_s)), None)

    def _addon_of(self, link: Link, removal: Removal, timeout_s: float) -> AddonUsage | None:
        """Return the add-on to remove, if the network still has it."""
        return match_addons(link.activations.values(), self._addons(link, timeout_s))[0].get(
            removal.activation_id
        )

    def _new_addons(self, link: Link, change: PlanChange, timeout_s: float) -> list[AddonUsage]:
        """Return add-ons of the plan to add that no activation has and that are not left over."""
        assert change.next is not None
        _, new = match_addons(link.activations.values(), self._addons(link, timeout_s))
        wanted = change.next.plan.provider_plan_id
        return [
            each
            for each in new
            if each.provider_plan_id == wanted and each.addon_id not in link.left_over
        ]

    def _addons(self, link: Link, timeout_s: float) -> list[AddonUsage]:
        assert link.endpoint_id is not None
        try:
            return self.network.usage(link.endpoint_id, timeout_s=timeout_s).addons
        except NoSuchEndpoint:  # The endpoint is gone, with all that was on it.
            return []

    def _note_added(self, change: PlanChange, addon: Addon, *, adopted: bool) -> bool:
        def decide(current: PlanChange, link: Link, cause: Cause) -> None:
            current.note_added(link, addon, cause, adopted=adopted)

        return self._save(change, decide)

    def _save(self, change: PlanChange, decide: Decide) -> bool:
        """Append to the change and its link in one commit; repeat if only the link has moved."""
        version, beaten = change.version, Conflict(change.id)

        def save() -> bool:
            # Read the link first. A step moves the change and the link together; a link that is
            # read after the change could show a step that the change, as read, has not done.
            link = self.log.get(Link, change.link_id)
            current = self.log.get(PlanChange, change.id)
            if current.version != version:
                return False
            decide(current, link, self._cause(change))
            self.log.append(current, link)
            return True

        if not retry_on_conflict(save, beaten):
            raise beaten
        return True

    def _end(self, change: PlanChange, refusal: Refused, *, outcome_known: bool) -> bool:
        self.failing.fail_change(change, refusal, outcome_known=outcome_known)
        return True
