"""The work of a plan change: a step per plan, each safe to be begun by any worker at any time."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from domain.activation import match_addons
from domain.application import Log
from domain.cause import Cause, Clock
from domain.commands.provisioning_failure import Failing
from domain.errors import Conflict, ProvisioningError, ProvisioningFailed, Refused
from domain.link import Link
from domain.network import (
    AddonUsage,
    EsimNetwork,
    NoEndpoint,
    NoSuchEndpoint,
    OutcomeUnknown,
    Rejected,
)
from domain.plan_change import Addition, PlanChange, Removal
from domain.plan_changing import ChangeStep, after_nothing, is_settled, next_step
from domain.ports import ProviderError
from workers.provisioning import CALL, STEPS_MAX
from workers.steadiness import Steadiness

RACES_MAX = 20  # Reads of the link append what they see; each lost race means one of them did.

logger = logging.getLogger(__name__)

Decide = Callable[[PlanChange, Link, Cause], None]


@dataclass(frozen=True)
class PlanChanges:
    """Works on plan changes; any message may come twice, late or never."""

    log: Log
    network: EsimNetwork
    failing: Failing
    clock: Clock
    steadiness: Steadiness

    def work(self, change_id: UUID) -> None:
        """Bring a change as far as it goes now."""
        for _ in range(STEPS_MAX):
            change = self.log.find(PlanChange, change_id)
            if change is None:
                logger.error("plan change %s does not exist", change_id)
                return
            try:
                if not self._do(next_step(change, self.clock()), change):
                    return
            except Conflict:
                continue  # Somebody else has moved it: look again.

    def _do(self, step: ChangeStep, change: PlanChange) -> bool:
        """Do one step; True when there may be another one now."""
        match step:
            case ChangeStep.BEGIN:
                return self._begin(change)
            case ChangeStep.LOOK_UP:
                return self._look_up(change)
            case ChangeStep.FAIL:
                return self._fail(change, ProvisioningError(), outcome_known=False)
            case ChangeStep.CLEAN_UP:
                return self._clean_up(change)
            case _:
                return False

    def _begin(self, change: PlanChange) -> bool:
        """Append the intent, and only then call: whoever loses the race for it must not."""
        link = self.log.get(Link, change.link_id)
        now = self.clock()
        until = min(now + CALL, change.requested.deadline)
        if until <= now:
            return True
        change.start_step(until, self._cause(change))
        self.log.claim(change)
        left_s = min(until - self.clock(), CALL).total_seconds()  # The clock may be set back.
        if left_s <= 0:  # It took so long to append that others take the call for over.
            return True
        try:
            if isinstance(change.next, Removal):
                self._remove(link, change.next, left_s)
                return self._note_removed(change)
            return self._add(link, change, left_s)
        except NoEndpoint:
            return self._fail(change, ProvisioningFailed(), outcome_known=True)
        except OutcomeUnknown:
            return True  # Looked up at once: most replies are lost after the fact.
        except ProviderError:
            return self._fail(change, ProvisioningError(), outcome_known=True)

    def _remove(self, link: Link, removal: Removal, timeout_s: float) -> None:
        addon_id = link.activations[removal.activation_id].addon_id
        if addon_id is None:
            addon = self._addon_of(link, removal, timeout_s)
            addon_id = addon.addon_id if addon is not None else None
        if addon_id is not None:  # Else the network has it no longer.
            assert link.endpoint_id is not None
            self.network.remove_plan(link.endpoint_id, addon_id, timeout_s=timeout_s)

    def _add(self, link: Link, change: PlanChange, timeout_s: float) -> bool:
        addon_id = self._call_add_plan(link, change, timeout_s)
        try:
            return self._note_added(change, addon_id, adopted=False)
        except Conflict:
            self._take_back(change, addon_id)
            raise

    def _call_add_plan(self, link: Link, change: PlanChange, timeout_s: float) -> str:
        """Ask for the present addition, under its reference."""
        assert link.endpoint_id is not None
        addition = change.next
        assert isinstance(addition, Addition)
        plan, reference = addition.plan.at_provider, str(addition.activation_id)
        return self.network.add_plan(link.endpoint_id, plan, reference, timeout_s=timeout_s)

    def _take_back(self, change: PlanChange, addon_id: str) -> None:
        """Take off an add-on that was held up until its failed change had ended without it."""
        current, link = self.log.get(PlanChange, change.id), self.log.get(Link, change.link_id)
        known = {activation.addon_id for activation in link.activations.values()}
        if current.finished_at is None or addon_id in known:
            return
        logger.error("a plan of change %s came after its end", change.id)
        assert link.endpoint_id is not None
        with suppress(ProviderError):
            self.network.remove_plan(link.endpoint_id, addon_id, timeout_s=CALL.total_seconds())

    def _look_up(self, change: PlanChange) -> bool:
        link = self.log.get(Link, change.link_id)
        left = change.requested.deadline - self.clock()
        timeout_s = max(0.0, min(CALL, left).total_seconds())
        try:
            if isinstance(change.next, Removal):
                if self._addon_of(link, change.next, timeout_s) is None:
                    return self._note_removed(change)
            elif (found := self._new_addon(link, change, timeout_s)) is not None:
                return self._note_added(change, found.addon_id, adopted=True)
        except ProviderError:
            return False
        step = after_nothing(change, self.clock())
        return step is not ChangeStep.WAIT and self._do(step, change)

    def _clean_up(self, change: PlanChange) -> bool:
        """Look what became of the step that failed with an unknown outcome; then end the change."""
        link = self.log.get(Link, change.link_id)
        timeout_s = CALL.total_seconds()
        done = False
        try:
            if isinstance(change.next, Removal):
                done = self._addon_of(link, change.next, timeout_s) is None
            elif (late := self._new_addon(link, change, timeout_s)) is not None:
                assert link.endpoint_id is not None
                self.network.remove_plan(link.endpoint_id, late.addon_id, timeout_s=timeout_s)
                return self._save(change, _finish)
        except ProviderError:
            return self._is_settled(change) and self._end_unseen(change, link)
        if done:
            return self._save(change, _finish_removed)
        return self._is_settled(change) and self._save(change, _finish)

    def _end_unseen(self, change: PlanChange, link: Link) -> bool:
        """End a change whose link the network does not show: repeat the step, which is safe.

        An add-on that is made by it, or was before, is known then and is taken off: under its
        reference none comes any more. A removal is done.
        """
        assert link.endpoint_id is not None
        change.start_step(self.clock() + CALL, self._cause(change))
        self.log.claim(change)
        timeout_s = CALL.total_seconds()
        try:
            if isinstance(change.next, Removal):
                self._remove(link, change.next, timeout_s)
                return self._save(change, _finish_removed)
            addon_id = None
            with suppress(Rejected):  # There is none, and none can come.
                addon_id = self._call_add_plan(link, change, timeout_s)
            if addon_id is not None:
                self.network.remove_plan(link.endpoint_id, addon_id, timeout_s=timeout_s)
        except ProviderError:
            return False  # Once this call can have no effect either it is tried again.
        return self._save(change, _finish)

    def _is_settled(self, change: PlanChange) -> bool:
        """Tell whether the network can do nothing more, even if somebody has set the clock."""
        assert change.failure is not None
        if change.failure.settled_at is None:
            return True
        waited = self.steadiness.lasts(CALL + self.network.settles_after)
        return waited and is_settled(change, self.network.settles_after, self.clock())

    def _addon_of(self, link: Link, removal: Removal, timeout_s: float) -> AddonUsage | None:
        """Return the add-on that is to be removed, if the network still has it."""
        return match_addons(link.activations.values(), self._addons(link, timeout_s))[0].get(
            removal.activation_id
        )

    def _new_addon(self, link: Link, change: PlanChange, timeout_s: float) -> AddonUsage | None:
        """Return an add-on of the plan to be added that no activation of the link accounts for."""
        assert change.next is not None
        _, new = match_addons(link.activations.values(), self._addons(link, timeout_s))
        wanted = change.next.plan.provider_plan_id
        return next((addon for addon in new if addon.provider_plan_id == wanted), None)

    def _addons(self, link: Link, timeout_s: float) -> list[AddonUsage]:
        assert link.endpoint_id is not None
        try:
            return self.network.usage(link.endpoint_id, timeout_s=timeout_s).addons
        except NoSuchEndpoint:  # It has gone, with all that was on it.
            return []

    def _note_removed(self, change: PlanChange) -> bool:
        return self._save(change, _remove)

    def _note_added(self, change: PlanChange, addon_id: str, *, adopted: bool) -> bool:
        def decide(current: PlanChange, link: Link, cause: Cause) -> None:
            addition = current.next
            assert isinstance(addition, Addition)
            current.note_added(addon_id, cause, adopted=adopted)
            link.add_plan(addition.activation_id, addition.plan, addon_id, cause)
            _finish_if_done(current, link, cause)

        return self._save(change, decide)

    def _save(self, change: PlanChange, decide: Decide) -> bool:
        """Append to the change and its link at once; others may append to the link meanwhile."""
        version = change.version
        for _ in range(RACES_MAX):
            # The link first: others who move the change move the link with it, and it would tell
            # of a step that a change which was read before it has not done.
            link = self.log.get(Link, change.link_id)
            current = self.log.get(PlanChange, change.id)
            if current.version != version:
                raise Conflict(change.id)
            decide(current, link, self._cause(change))
            try:
                self.log.append(current, link)
            except Conflict:
                continue
            return True
        raise Conflict(change.id)

    def _fail(self, change: PlanChange, refusal: Refused, *, outcome_known: bool) -> bool:
        self.failing.fail_change(change, refusal, outcome_known=outcome_known)
        return True

    def _cause(self, change: PlanChange) -> Cause:
        return Cause(self.clock(), change.requested.request_id)


def _remove(change: PlanChange, link: Link, cause: Cause) -> None:
    assert isinstance(change.next, Removal)
    link.remove_plan(change.next.activation_id, cause)
    change.note_removed(cause)
    _finish_if_done(change, link, cause)


def _finish_removed(change: PlanChange, link: Link, cause: Cause) -> None:
    """The removal was done after all; the change stays failed, for what came after it was not."""
    assert isinstance(change.next, Removal)
    link.remove_plan(change.next.activation_id, cause)
    change.note_removed(cause)
    _finish(change, link, cause)


def _finish(change: PlanChange, link: Link, cause: Cause) -> None:
    change.finish(cause)
    link.close_plan_change(cause)


def _finish_if_done(change: PlanChange, link: Link, cause: Cause) -> None:
    if change.next is None:
        _finish(change, link, cause)
