"""Operators' commands on the catalogue of plans."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from domain.accounts.organization import Organization
from domain.catalogue.matching import Match, PlansByKey, match
from domain.catalogue.plan import Plan
from domain.catalogue.plan_file import PlanEntry
from domain.cause import Cause
from domain.errors import Conflict, NotFound, NotPossible
from domain.log.log import Log

RETRIES_MAX = 20  # Operators race each other seldom; each lost race means another one won.


class KnownPlans(Protocol):
    """Returns all plans by what they are known by, as the log has them at the call."""

    def __call__(self) -> PlansByKey: ...


@dataclass(frozen=True)
class Imported:
    """How many plans an import has made, changed and found as they should be."""

    created: int
    updated: int
    unchanged: int


@dataclass(frozen=True)
class Catalogue:
    """Every method commits before it returns. Unknown ids raise NotFound."""

    log: Log
    known: KnownPlans

    def import_plans(self, entries: Sequence[PlanEntry], cause: Cause) -> Imported:
        """Make or change the plans of a file, all or none; plans it lacks stay as they are.

        Raises PlansRefused with every reason, NotPossible when others keep changing the plans.
        """
        for _ in range(RETRIES_MAX):
            try:
                matches = match(self.log, self.known(), entries)
                plans = [_apply(each, cause) for each in matches]
                changed = [plan for plan in plans if plan.pending_events]
                if changed:
                    self.log.append(*changed)
            except Conflict:
                continue
            created = sum(each.plan is None for each in matches)
            return Imported(created, len(changed) - created, len(plans) - len(changed))
        message = "others keep changing these plans; try again"
        raise NotPossible(message)

    def switch(self, plan_id: UUID, cause: Cause, *, enabled: bool) -> Plan:
        """Offer a plan, or no longer."""
        return self._change(plan_id, lambda plan: plan.switch(cause, enabled=enabled))

    def exclude(self, plan_id: UUID, organization_id: UUID, cause: Cause) -> Plan:
        """Hide a global plan from an organization; NotPossible for one that has an owner."""
        self._require_organization(organization_id)
        return self._change(plan_id, lambda plan: plan.exclude(organization_id, cause))

    def include(self, plan_id: UUID, organization_id: UUID, cause: Cause) -> Plan:
        """Show a plan to an organization again."""
        self._require_organization(organization_id)
        return self._change(plan_id, lambda plan: plan.include(organization_id, cause))

    def _change(self, plan_id: UUID, change: Callable[[Plan], None]) -> Plan:
        for _ in range(RETRIES_MAX):
            plan = self.log.find(Plan, plan_id)
            if plan is None:
                message = f"there is no plan {plan_id}"
                raise NotFound(message)
            change(plan)
            if not plan.pending_events:
                return plan
            try:
                self.log.append(plan)
            except Conflict:
                continue
            return plan
        message = f"others keep changing plan {plan_id}; try again"
        raise NotPossible(message)

    def _require_organization(self, organization_id: UUID) -> None:
        if self.log.find(Organization, organization_id) is None:
            message = f"there is no organization {organization_id}"
            raise NotFound(message)


def _apply(match: Match, cause: Cause) -> Plan:
    """Let a plan become what its entry says; what the entry leaves out stays as it is."""
    entry, plan = match.entry, match.plan
    if plan is None:
        return Plan.publish(
            match.id,
            cause,
            organization_id=entry.organization_id,
            terms=entry.terms,
            enabled=entry.enabled is not False,
            excluded=entry.excluded or (),
        )
    plan.change(entry.terms, cause)
    if entry.enabled is not None:
        plan.switch(cause, enabled=entry.enabled)
    if entry.excluded is not None:
        for each in sorted(set(entry.excluded) - plan.excluded, key=str):
            plan.exclude(each, cause)
        for each in sorted(plan.excluded - set(entry.excluded), key=str):
            plan.include(each, cause)
    return plan
