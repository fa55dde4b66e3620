"""A plan on a link as it was bought, and how the network's add-ons are matched to it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from domain.cost import Cost
from domain.links.network import AddonUsage, ProviderPlan


class BoughtPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A plan at the moment of purchase; later changes of the catalogue do not touch it.

    `cost`, `network` and `notices` are those of its terms.
    """

    plan_id: UUID
    provider_plan_id: str
    name: str
    price_micros: int
    data_mb: int
    validity_days: int
    countries: list[str]
    cost: Cost | None = None
    network: str | None = None
    notices: list[str] | None = None

    @property
    def at_provider(self) -> ProviderPlan:
        return ProviderPlan(
            self.provider_plan_id, self.data_mb, self.validity_days, tuple(self.countries)
        )

    def cost_of(self, reference: str | None) -> Cost | None:
        """Return the network's charge for its id `reference`; None if the cost is not known."""
        return self.cost and msgspec.structs.replace(self.cost, reference=reference)


class TakenOver(msgspec.Struct, frozen=True, omit_defaults=True):
    """A plan on a link that was issued elsewhere; its price is 0, because it is not sold here."""

    activation_id: UUID
    plan: BoughtPlan
    bought_at: datetime
    addon_id: str | None = None


@dataclass(slots=True)
class Activation:
    """One plan on a link. `addon_id` is the network's id for it; None while it is not known."""

    id: UUID
    plan: BoughtPlan
    bought_at: datetime
    addon_id: str | None
    removed_at: datetime | None = None


def match_addons(
    activations: Collection[Activation], addons: Sequence[AddonUsage]
) -> tuple[dict[UUID, AddonUsage], list[AddonUsage]]:
    """Return which add-on belongs to which activation, and the add-ons that belong to none.

    An activation without a known add-on gets the first remaining add-on of its plan; activations
    take their turn in order of purchase.
    """
    by_id = {addon.addon_id: addon for addon in addons}
    matched: dict[UUID, AddonUsage] = {}
    for activation in activations:
        if activation.addon_id is not None and activation.addon_id in by_id:
            matched[activation.id] = by_id.pop(activation.addon_id)
    for activation in sorted(activations, key=lambda each: each.bought_at):
        if activation.addon_id is None and activation.removed_at is None:
            plan = activation.plan.provider_plan_id
            found = next((a for a in by_id.values() if a.provider_plan_id == plan), None)
            if found is not None:
                matched[activation.id] = by_id.pop(found.addon_id)
    return matched, [*by_id.values()]
