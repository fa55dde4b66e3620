"""Erases the keys of months, as `privacy erase --before` does, without the event of it."""

from uuid import UUID

from domain.accounts.operator_acts import Part
from projections.stores.personal_keys import PersonalKeys


def erase_months(vault: PersonalKeys, before: str, organization_id: UUID | None = None) -> int:
    """Delete the keys of all months before `YYYY-MM`; return how many there were."""
    found = vault.keys_before(before, organization_id)
    return sum(vault.erase(owner, map(Part, keys)) for owner, keys in found.items())
