"""Organizations as authorization and operators read them."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from domain.accounts.organization import Organization, Status
from domain.daily import Daily
from projections.engine.read_model import Snapshot


class OrganizationRow(Struct, frozen=True):
    """One organization; `price_micros` is its own price per lookup, None for the general one."""

    id: UUID
    name: str
    status: Status
    price_micros: int | None
    monthly_link_fee_micros: int
    lookup_enabled: bool
    created_at: datetime
    low_balance_threshold_micros: int | None
    rate_limit_per_minute: int | None
    spending_limit_micros: int | None
    thresholds_set: Daily


class Organizations(Snapshot[OrganizationRow]):
    """One row per organization."""

    name = "organizations"
    version = 3
    uses = (Organization.Event,)
    of_kind, row = Organization, OrganizationRow
