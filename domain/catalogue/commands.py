"""Operators' commands on the catalogue of plans.

Also how the plan of each entry of a plan file is found, and what forbids to import the entry.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from msgspec.structs import replace

from domain.accounts.organization import Organization
from domain.catalogue.file_errors import FileRefused, Path, Problem, Wrong, lines_of
from domain.catalogue.plan import Plan, PlanKey, PlanTerms, key_of, plan_id
from domain.catalogue.supplied import OddEntry, Supplied, SuppliedPlan
from domain.catalogue.syncing import Synced, SyncRules, sync
from domain.cause import Cause
from domain.errors import Conflict, NotPossible
from domain.log.aggregate import Root
from domain.log.log import Log, retried

PLANS_MAX = 20_000  # One transaction writes them all, and other appends wait for its end.

PlansByKey = Mapping[PlanKey, Sequence[UUID]]
PlansNow = Callable[[], PlansByKey]  # Returns all plans as the log has them at the call.


@dataclass(frozen=True)
class PlanEntry:
    """What a file says about one plan; fields that are None leave the plan as it is.

    Without `names_network`, the network in `terms` applies only to a new plan.
    """

    index: int
    id: UUID | None
    organization_id: UUID | None
    terms: PlanTerms
    enabled: bool | None
    excluded: Sequence[UUID] | None
    names_network: bool

    @property
    def key(self) -> PlanKey:
        """The key of the plan if the entry names no id."""
        terms = self.terms
        return key_of(self.organization_id, terms.provider_plan_id, terms.name, terms.network)

    @property
    def label(self) -> str:
        return label_of(self.index, self.terms.name)


def label_of(index: int, name: str | None) -> str:
    """Name an entry of a plan file for error texts."""
    return f"plans[{index}]" if name is None else f'plans[{index}] "{name}"'


# An entry with the id of its plan, and the plan; None if it must be created.
Match = tuple[PlanEntry, UUID, Plan | None]


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


def match(log: Log, known: PlansByKey, entries: Sequence[PlanEntry]) -> list[Match]:
    """Return the match of each entry.

    Raises FileRefused with every reason against any entry, Conflict when `known` is out of date.
    """
    matching = _Matching(log, known)
    matches: list[Match] = []
    lines: list[str] = []
    for entry in entries:
        problems = [*matching.unknown_organizations(entry), *matching.twins(entry)]
        if not problems:
            try:
                matches.append(matching.of(entry))
            except Wrong as wrong:
                problems += wrong.problems
        lines += lines_of(entry.label, problems)
    if lines:
        raise FileRefused(lines)
    return matches


class _Matching:
    def __init__(self, log: Log, known: PlansByKey) -> None:
        self._log = log
        self._known = known
        self._of_any_network: dict[PlanKey, list[UUID]] = {}
        for key, plan_ids in known.items():
            self._of_any_network.setdefault(key._replace(network=None), []).extend(plan_ids)
        self._by_key: dict[PlanKey, PlanEntry] = {}
        self._by_id: dict[UUID, PlanEntry] = {}
        self._is_organization = cache(lambda owner: log.find(Organization, owner) is not None)

    def of(self, entry: PlanEntry) -> Match:
        stream_id = entry.id or self._known_as(entry)
        earlier = self._by_id.setdefault(stream_id, entry)
        if earlier is not entry:
            raise Wrong((("id",), f"{stream_id} is the plan of {earlier.label} already"))
        return entry, stream_id, self._plan(entry, stream_id)

    def twins(self, entry: PlanEntry) -> list[Problem]:
        """Refuse two entries with one key, unless both name an id."""
        earlier = self._by_key.setdefault(entry.key, entry)
        if earlier is entry or (entry.id is not None and earlier.id is not None):
            return []
        return [((entry.key.kind,), f"is that of {earlier.label} too; give each of them an id")]

    def unknown_organizations(self, entry: PlanEntry) -> list[Problem]:
        excluded = enumerate(entry.excluded or ())
        named: list[tuple[Path, UUID]] = [
            (("excluded_organizations", index), each) for index, each in excluded
        ]
        if entry.organization_id is not None:
            named.append((("organization_id",), entry.organization_id))
        return [
            (path, f"there is no organization {each}")
            for path, each in named
            if not self._is_organization(each)
        ]

    def _known_as(self, entry: PlanEntry) -> UUID:
        if entry.names_network:
            found = self._known.get(entry.key, ())
        else:
            found = self._of_any_network.get(entry.key._replace(network=None), ())
        if len(found) > 1:
            ids = ", ".join(sorted(map(str, found)))
            message = f"is needed, because several plans have this {entry.key.kind}: {ids}"
            raise Wrong((("id",), message))
        return found[0] if found else plan_id(entry.key)

    def _plan(self, entry: PlanEntry, stream_id: UUID) -> Plan | None:
        found = self._log.find(Root, stream_id)
        if found is None:
            return None
        if not isinstance(found, Plan):
            raise Wrong((("id",), "is the id of something that is no plan"))
        if found.organization_id != entry.organization_id:
            raise Wrong((("id",), "is the id of a plan that belongs to another organization"))
        network = entry.key.network if entry.names_network else found.key.network
        if entry.id is None and found.key != entry.key._replace(network=network):
            if entry.key in self._known:
                raise Conflict(stream_id)  # It was changed after `known` was read.
            message = (
                f"is needed: {stream_id} had this {entry.key.kind} when it was first imported, "
                "and has another one now; give that id, or a new one"
            )
            raise Wrong((("id",), message))
        return found
