"""Operators' commands on the catalogue of plans."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from msgspec.structs import replace

from domain.catalogue.matching import PlanEntry, PlansByKey, match
from domain.catalogue.plan import Plan
from domain.catalogue.supplied import OddEntry, Supplied, SuppliedPlan
from domain.catalogue.syncing import Synced, SyncRules, sync
from domain.cause import Cause
from domain.errors import NotPossible
from domain.log.log import Log, retried

PlansNow = Callable[[], PlansByKey]  # Returns all plans as the log has them at the call.


@dataclass(frozen=True)
class Imported:
    """How many plans an import has created, changed, and found unchanged."""

    created: int
    updated: int
    unchanged: int


@dataclass(frozen=True)
class Catalogue:
    """Operators' commands. Each one commits before it returns; unknown ids raise NotFound."""

    log: Log
    known: PlansNow

    @retried
    def import_plans(self, entries: Sequence[PlanEntry], cause: Cause) -> Imported:
        """Create or change the plans of a file, all or none; plans that are not in it stay.

        Raises FileRefused with every reason, ServiceUnavailable when others keep changing them.
        """
        matches = match(self.log, self.known(), entries)
        plans = [_apply(*each, cause) for each in matches]
        changed = [plan for plan in plans if plan.pending_events]
        if changed:
            self.log.append(*changed)
        created = sum(plan is None for *_, plan in matches)
        return Imported(created, len(changed) - created, len(plans) - len(changed))

    @retried
    def sync(
        self, supplied: Sequence[Supplied], rules: SyncRules, cause: Cause, *, dry_run: bool
    ) -> Synced:
        """Take over the plans that a network supplies, in one commit; `dry_run` changes nothing.

        Raises NotPossible for a list without plans, which would call every plan withdrawn.
        """
        if not any(isinstance(each, SuppliedPlan) for each in supplied):
            message = f"the network {rules.network} lists no plans"
            odd = [each.reason for each in supplied if isinstance(each, OddEntry)]
            raise NotPossible("; ".join([message, *odd[:1]]))
        known = (ids for key, ids in self.known().items() if key.is_of(rules.network))
        ours = [self.log.get(Plan, id_, f"plan {id_}") for ids in known for id_ in ids]
        synced = sync(self.log, ours, supplied, rules, cause)
        if synced.changed and not dry_run:
            self.log.append(*synced.changed)
        return synced

    def change(self, plan_id: UUID, change: Callable[[Plan], None]) -> Plan:
        return self.log.update(self.log.get(Plan, plan_id, f"plan {plan_id}"), change)


def _apply(entry: PlanEntry, plan_id: UUID, plan: Plan | None, cause: Cause) -> Plan:
    """Change a plan to what its entry says; what the entry leaves out stays as it is."""
    if plan is None:
        return Plan.publish(
            plan_id,
            cause,
            organization_id=entry.organization_id,
            terms=entry.terms,
            enabled=entry.enabled is not False and not entry.terms.unpriced,
            excluded=entry.excluded or (),
        )
    network = entry.terms.network if entry.names_network else plan.terms.network
    terms = replace(entry.terms, network=network, notices=plan.terms.notices)
    plan.change(terms, cause)
    if entry.enabled is not None:
        plan.switch(cause, enabled=entry.enabled)
    if entry.excluded is not None:
        plan.hide_from(entry.excluded, cause)
    return plan
