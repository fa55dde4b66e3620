"""The two calls that change the plans of a link; a change has a step for each plan."""

import logging
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from domain.cause import Cause
from domain.errors import Conflict
from domain.links.bought_plan import BoughtPlan, match_addons
from domain.links.driver import Commit, S
from domain.links.link import Link
from domain.links.network import Addon, AddonUsage, EsimNetwork, NoSuchEndpoint
from domain.links.plan_change import Addition, PlanChange, Removal
from domain.links.saga import Repeat, is_settled
from domain.provider_errors import ProviderError, Rejected, Unavailable
from workers.driving import CALL, Intent, Worked

UNSEEN = timedelta(hours=1)  # How long to wait for a network that does not answer.
CALL_S = CALL.total_seconds()

# An add-on and its step; True: the reply was lost, and it was found.
Added = tuple[Addition, Addon, bool]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Changing(Worked[PlanChange, S]):
    """What both calls do alike: a step is committed with its link."""

    @abstractmethod
    def call(self, change: PlanChange, link: Link, left_s: float) -> S:
        """Make the call of its present step."""

    def prepare(self, work: PlanChange) -> Iterator[Intent[S]]:
        link, cause = self.log.get(Link, work.link_id), self.cause(work)
        work.start_step(self.until(work, cause.at), cause)
        yield [work], [], lambda left_s: self.call(work, link, left_s)

    def link_of(self, change: PlanChange) -> Link:
        """Return the link to be committed with a change; raises Conflict if others moved both."""
        link = self.log.get(Link, change.link_id)
        if self.log.get(PlanChange, change.id).version != change.version:
            raise Conflict(change.id)
        return link

    def addons(self, link: Link, timeout_s: float) -> list[AddonUsage]:
        try:
            network = self.networks.of(link.network)
            return network.usage(link.endpoint, timeout_s=timeout_s).addons
        except NoSuchEndpoint:  # The endpoint is gone, with all that was on it.
            return []

    def take_off(self, link: Link, addon_id: str, timeout_s: float = CALL_S) -> None:
        network = self.networks.of(link.network)
        network.remove_plan(link.endpoint, addon_id, timeout_s=timeout_s)

    def is_settled(self, change: PlanChange, since: timedelta = timedelta()) -> bool:
        """Tell whether the failed call can have no more effect, and for how long already."""
        settles_after = self.networks.of(change.network).settles_after
        return is_settled(change, settles_after + since, self.clock())


@dataclass(frozen=True)
class RemovePlan(Changing[bool]):
    """Takes a plan off; one that comes off after its change has failed stays off."""

    def is_for(self, work: PlanChange) -> bool:
        return isinstance(work.next, Removal)

    def repeat(self, _network: EsimNetwork) -> Repeat:
        return "safe"

    def call(self, change: PlanChange, link: Link, left_s: float) -> bool:
        removal, intent = change.next, change.intent
        assert isinstance(removal, Removal)
        assert intent is not None
        addon_id = link.activations[removal.activation_id].addon_id
        if addon_id is None:
            addon = self._addon_of(link, removal, self.left_s(intent.until))
            addon_id = addon.addon_id if addon is not None else None
        if addon_id is not None:  # Otherwise the network does not have it any more.
            if not (left_s := self.left_s(intent.until)):  # The lookup took all the time.
                raise Unavailable
            self.take_off(link, addon_id, left_s)
        return True

    def look_up(self, work: PlanChange, timeout_s: float) -> bool | None:
        assert isinstance(work.next, Removal)
        link = self.log.get(Link, work.link_id)
        return self._addon_of(link, work.next, timeout_s) is None or None

    def _addon_of(self, link: Link, removal: Removal, timeout_s: float) -> AddonUsage | None:
        """Return the add-on to remove, if the network still has it."""
        matched, _ = match_addons(link.activations.values(), self.addons(link, timeout_s))
        return matched.get(removal.activation_id)

    def settle(self, work: PlanChange, seen: bool | None, cause: Cause) -> Commit:  # noqa: FBT001  # What the network shows.
        link = self.link_of(work)
        (work.record_removed if seen else work.finish)(link, cause)
        return [work, link], []

    def clean_up(self, work: PlanChange) -> PlanChange | None:
        """End the change once its removal is seen, can no longer come, or was unseen for long."""
        # Asked before the look, because the answer may lack changes made after it was asked for.
        settled = self.is_settled(work)
        try:
            is_gone = self.look_up(work, CALL_S)
        except ProviderError:
            is_gone, settled = None, self.is_settled(work, UNSEEN)
        return self.save(work, is_gone) if is_gone or settled else None


@dataclass(frozen=True)
class AddPlan(Changing[Added]):
    """Puts a plan on, under the id of its activation; one that comes too late is taken off."""

    def repeat(self, network: EsimNetwork) -> Repeat:
        return "safe" if network.adds_once else "at_deadline"

    def call(self, change: PlanChange, link: Link, left_s: float) -> Added:
        addition = change.next
        assert isinstance(addition, Addition)
        plan, reference = addition.plan.at_provider, str(addition.activation_id)
        add = self.networks.of(link.network).add_plan
        return addition, add(link.endpoint, plan, reference, timeout_s=left_s), False

    def look_up(self, work: PlanChange, timeout_s: float) -> Added | None:
        assert isinstance(work.next, Addition)
        plan = work.next.plan
        found = self._new(self.log.get(Link, work.link_id), plan, timeout_s)
        if not found:
            return None
        first, *more = found
        cost = plan.cost_of(first.order_reference or first.addon_id)
        return work.next, Addon(first.addon_id, cost, tuple(each.addon_id for each in more)), True

    def _new(self, link: Link, plan: BoughtPlan, timeout_s: float) -> list[AddonUsage]:
        """Return add-ons of a plan that no activation has and that are not left over."""
        _, new = match_addons(link.activations.values(), self.addons(link, timeout_s))
        wanted = plan.provider_plan_id
        return [
            each
            for each in new
            if each.provider_plan_id == wanted and each.addon_id not in link.left_over
        ]

    def settle(self, work: PlanChange, seen: Added | None, cause: Cause) -> Commit:
        """Put it on the link, or end a failed change; what is seen then cannot be taken off."""
        link = self.link_of(work)
        if work.failure is not None:
            work.finish(link, cause, None if seen is None else seen[1].addon_id)
        else:
            assert seen is not None
            _, addon, adopted = seen
            work.record_added(link, addon, cause, adopted=adopted)
        return [work, link], []

    def undo(self, newest: PlanChange, seen: Added) -> None:
        """Remove an add-on that was added after its failed change had ended."""
        addition, addon, adopted = seen
        if adopted or newest.finished_at is None:
            return
        link, addon_id = self.log.get(Link, newest.link_id), addon.addon_id
        if addon_id is not None and addon_id in {it.addon_id for it in link.activations.values()}:
            return
        logger.error("a plan was added after change %s had ended; it is removed", newest.id)
        try:
            if addon_id is None and (found := self._new(link, addition.plan, CALL_S)):
                addon_id = found[0].addon_id
            if addon_id is not None:
                self.take_off(link, addon_id)
        except ProviderError:  # Nobody tries again, so this is an incident.
            if addon_id is not None:
                left, plan, cause = addon_id, addition.plan, self.cause(newest)
                self.log.change(link, lambda it: it.record_plan_left_over(left, plan, cause))

    def clean_up(self, work: PlanChange) -> PlanChange | None:
        """Take off what has come after all; end the change once nothing can come any more."""
        settled = self.is_settled(work)  # Asked before the look, as above.
        try:
            seen = self.look_up(work, CALL_S)
        except ProviderError:
            return self._end_unseen(work) if self.is_settled(work, UNSEEN) else None
        if seen is None:
            return self.save(work, None) if settled else None
        addon_id = seen[1].addon_id
        assert addon_id is not None
        try:
            self.take_off(self.log.get(Link, work.link_id), addon_id)
        except Rejected:  # For good, such as while it is in use; the link must not wait for ever.
            return self.save(work, seen)
        return self.save(work, None)

    def _end_unseen(self, change: PlanChange) -> PlanChange | None:
        """End a change whose link the network has not shown for long.

        The addition is repeated under its reference and then removed; after that no add-on can
        appear under this reference any more. If the network would add a repeated plan twice, the
        change stays open until the network shows the link again.
        """
        link = self.log.get(Link, change.link_id)
        if not self.networks.of(link.network).adds_once:
            return None
        until, made = self.clock() + CALL, None
        change.start_step(until, self.cause(change))
        self.log.claim(change)
        left_s = (until - self.clock()).total_seconds()
        if left_s <= 0:
            return change
        try:
            # Rejected: there is no add-on, because its reference was removed before.
            with suppress(Rejected):
                made = self.call(change, link, left_s)
            if made is not None and (addon_id := made[1].addon_id) is not None:
                self.take_off(link, addon_id)
        except ProviderError:  # It is tried again after UNSEEN has passed once more.
            if made is not None and made[1].addon_id is not None:
                self.undo(self.log.get(PlanChange, change.id), made)
            return None
        return self.save(change, None)
