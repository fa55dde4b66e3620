"""Keeps the terms of plans for a moment, so that a request reads the plan that it sells once."""

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

from domain.catalogue.plan import PlanTerms
from domain.cause import Clock
from projections.engine.database import Database
from projections.models.plans import Plans

KEPT_S = 1.0  # The age up to which a reply may show the networks of a plan.
PLANS_MAX = 1_000


@dataclass(eq=False)
class KnownPlans:
    """Reads an offer anew for each sale; the terms that the reply shows may be a second old."""

    database: Database
    plans: Plans
    clock: Clock
    _known: dict[UUID, tuple[float, PlanTerms]] = field(default_factory=dict, init=False)

    def offer(self, organization_id: UUID, plan_id: UUID) -> PlanTerms | None:
        """Return the terms of a plan that an organization may buy now, by the database's time."""
        plan = self.plans.find_visible(self.database, organization_id, plan_id)
        if plan is None:
            return None
        self._keep(plan_id, plan.terms)
        return plan.terms.at(self.clock())

    def terms_of(self, plan_ids: Collection[UUID]) -> dict[UUID, PlanTerms]:
        """Return the terms of plans, whoever may buy them; read within the last second."""
        since = time.monotonic() - KEPT_S
        known = {plan_id: self._known.get(plan_id, (since, None)) for plan_id in plan_ids}
        found = {plan_id: terms for plan_id, (at, terms) in known.items() if terms and at > since}
        missing = set(plan_ids) - found.keys()
        if missing:
            with self.database.reading() as connection:
                rows = self.plans.by_id(connection, missing)
            for plan_id, row in rows.items():
                found[plan_id] = row.terms
                self._keep(plan_id, row.terms)
        return found

    def _keep(self, plan_id: UUID, terms: PlanTerms) -> None:
        if len(self._known) >= PLANS_MAX:
            self._known.clear()
        self._known[plan_id] = time.monotonic(), terms
