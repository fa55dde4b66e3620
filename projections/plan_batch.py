"""What a batch of events comes to for each plan: of several changes the last one counts."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from domain.catalogue.plan import Plan, PlanTerms
from domain.log.log import Recorded

Rows = list[dict[str, Any]]
Pair = tuple[UUID, UUID]  # A plan and an organization that it is hidden from.


class PlanBatch:
    """The rows to write, in the order: new plans, changes of old ones, then what belongs to them.

    `changed` and `switched` concern plans of earlier batches only. `countries` and `profiles` are
    whole for the plans they mention. Pairs in `exclusions_touched` go before `exclusions` come.
    """

    def __init__(self, batch: Sequence[Recorded]) -> None:
        self._published: dict[UUID, Plan.Published] = {}
        self._terms: dict[UUID, PlanTerms] = {}
        self._enabled: dict[UUID, bool] = {}
        self._excluded: dict[Pair, bool] = {}
        for recorded in batch:
            self._add(recorded.event)

    def _add(self, event: object) -> None:
        match event:
            case Plan.Published():
                plan_id = event.originator_id
                self._published[plan_id] = event
                self._terms[plan_id] = event.terms
                self._enabled[plan_id] = event.enabled
                self._excluded |= {(plan_id, each): True for each in event.excluded_organizations}
            case Plan.Changed():
                self._terms[event.originator_id] = event.terms
            case Plan.Enabled() | Plan.Disabled():
                self._enabled[event.originator_id] = isinstance(event, Plan.Enabled)
            case Plan.OrganizationExcluded() | Plan.OrganizationIncluded():
                pair = (event.originator_id, event.organization_id)
                self._excluded[pair] = isinstance(event, Plan.OrganizationExcluded)

    @property
    def new(self) -> Rows:
        """Plans that this batch has published, as it leaves them."""
        return [
            {
                "id": plan_id,
                "organization_id": event.organization_id,
                "enabled": self._enabled[plan_id],
                **_columns(self._terms[plan_id]),
            }
            for plan_id, event in self._published.items()
        ]

    @property
    def changed(self) -> Rows:
        """New terms of plans that were there."""
        return [
            {"plan": plan_id, **{f"new_{name}": each for name, each in _columns(terms).items()}}
            for plan_id, terms in self._terms.items()
            if plan_id not in self._published
        ]

    @property
    def switched(self) -> Rows:
        """Whether plans that were there are enabled."""
        return [
            {"plan": plan_id, "on": enabled}
            for plan_id, enabled in self._enabled.items()
            if plan_id not in self._published
        ]

    @property
    def countries(self) -> Rows:
        """Every country of the plans that have new terms."""
        return [
            {"plan_id": plan_id, "country_code": code}
            for plan_id, terms in self._terms.items()
            for code in {each.country_code: None for each in terms.coverage}
        ]

    @property
    def profiles(self) -> Rows:
        """Every sponsor profile of the plans that have new terms."""
        return [
            {"plan_id": plan_id, "profile_id": profile_id, "name": name}
            for plan_id, terms in self._terms.items()
            for profile_id, name in {each.id: each.name for each in terms.sponsor_profiles}.items()
        ]

    @property
    def exclusions_touched(self) -> Rows:
        """Pairs of plan and organization that have become true or false."""
        return [{"plan": plan, "organization": each} for plan, each in self._excluded]

    @property
    def exclusions(self) -> Rows:
        """Pairs of plan and organization that are true."""
        return [
            {"plan_id": plan_id, "organization_id": organization_id}
            for (plan_id, organization_id), is_true in self._excluded.items()
            if is_true
        ]


def _columns(terms: PlanTerms) -> dict[str, Any]:
    return {
        "provider_plan_id": terms.provider_plan_id,
        "name": terms.name,
        "coverage_type": terms.coverage_type,
        "terms": msgspec.json.encode(terms).decode(),
    }
