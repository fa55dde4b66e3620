"""What a network supplies: the plans that can be bought from it, in its own words."""

import msgspec

from domain.cost import Cost

# What a traveller must know of a plan: it needs an identity check, its time begins when the eSIM is
# installed, it has voice and text as well, the name of its access point is set by hand.
IDENTITY, AT_INSTALLATION = "identity_check", "starts_at_installation"
VOICE, APN = "voice_and_text", "manual_apn"
NOTICES = (IDENTITY, AT_INSTALLATION, VOICE, APN)


class SuppliedCountry(msgspec.Struct, frozen=True):
    """Where a plan works: an ISO 3166-1 alpha-2 code, and names of operators with generations."""

    country_code: str
    operators: tuple[tuple[str, tuple[str, ...]], ...] = ()


class SuppliedPlan(msgspec.Struct, frozen=True):
    """A plan as its network lists it, before it has a price. `data_mb` in MB, 1 GB = 1000 MB.

    `data_mb` None is a plan without a limit; `cost` None means that the network does not tell it.
    `notices` are some of NOTICES.
    """

    provider_plan_id: str
    name: str
    data_mb: int | None
    validity_days: int
    coverage: tuple[SuppliedCountry, ...]
    cost: Cost | None = None
    notices: tuple[str, ...] = ()


class OddEntry(msgspec.Struct, frozen=True):
    """A part of a catalogue that cannot be read; the id is None if it is no plan or has none."""

    provider_plan_id: str | None
    reason: str


Supplied = SuppliedPlan | OddEntry
