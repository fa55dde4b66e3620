"""What the domain needs from outside, in its own terms; each port says what is safe to repeat."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from domain.cost import ProviderBalance

LineType = Literal[
    "mobile",
    "landline",
    "fixed_line_or_mobile",
    "voip",
    "toll_free",
    "premium_rate",
    "shared_cost",
    "personal_number",
    "pager",
    "uan",
    "voicemail",
    "unknown",
]


class Carrier(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who serves a number; fields that are not known are None and stay out of replies.

    `mcc` (3 digits) and `mnc` (2–3 digits) are ITU-T E.212 codes with leading zeros.
    """

    name: str | None = None
    type: LineType | None = None
    mcc: str | None = None
    mnc: str | None = None


class NumberFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a provider knows of one number; `carrier` is None for a number that is not valid."""

    phone_number: str
    valid: bool
    country_code: str | None = None
    national_format: str | None = None
    carrier: Carrier | None = None


class Portability(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a provider tells of the porting of a number, in its own words.

    `carrier` is who serves the number now, `ported_at` a date or moment as it was written.
    """

    ported: bool | None = None
    ported_at: str | None = None
    carrier: str | None = None
    carrier_type: str | None = None
    routing_number: str | None = None
    operating_company: str | None = None
    city: str | None = None
    state: str | None = None
    line_type: str | None = None


class Details(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a provider tells besides the facts; personal, and kept with them.

    `reference` is its own id of the call. `errors` are its codes for what it could not find out, or
    for why a number is not valid.
    """

    reference: str | None = None
    errors: tuple[str, ...] = ()
    portability: Portability | None = None


class Found(msgspec.Struct, frozen=True):
    """An answer: the facts, and the provider, none of which tells its charge.

    `free`: the provider charges nothing for it, such as for a number that is not valid.
    """

    facts: NumberFacts
    provider: str
    details: Details | None = None
    free: bool = False


class LookupProvider(Protocol):
    """A source of carrier data. A lookup changes nothing, so repeating it is always safe.

    `remote`: a call leaves this process, so the calls of a slice run side by side. Thread-safe.
    Raises Unavailable for time-outs, refusals and what is no reply, and NotAnswered if a reply says
    nothing of use about the number, which is no outage. Fields that make no sense are left out. A
    number that does not exist is an answer (`valid=False`), never an error.
    """

    name: str
    remote: bool

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:
        """Look up one E.164 number; `organization_id` is for sandboxes and logs."""

    def balance(self, *, timeout_s: float) -> ProviderBalance | None:
        """Return what our account holds; None if the provider tells none. Raises Unavailable."""
        return None

    def is_up(self) -> bool:
        """Tell whether calls are let through now; False: this process's circuit is open."""
        return True

    def probe(self) -> None:
        """Ask for a sign of life that costs nothing; raises Unavailable while there is none.

        It also prepares what the first lookup would wait for, so each process calls it once at its
        start, in another thread. An open circuit calls it until it succeeds. It has a time-out.
        """


class CachedFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer from an earlier lookup, with its provider and moment."""

    facts: NumberFacts
    provider: str
    as_of: datetime
    told: Details | None = None


class LookupCache(Protocol):
    """Answers of one organization, shared by processes; losing it costs provider calls only."""

    def load(
        self, organization_id: UUID, phone_numbers: Sequence[str], not_before: datetime
    ) -> Mapping[str, CachedFacts]:
        """Return the stored answers of these numbers that are not older than `not_before`."""

    def save(self, organization_id: UUID, answers: Sequence[CachedFacts]) -> None:
        """Store answers, replacing older ones of the same number."""


class Leases(Protocol):
    """Short exclusive leases of idempotent requests; losing one costs a provider call."""

    def acquire(self, key: UUID, holder: str, until: datetime) -> str | None:
        """Claim `key` until a moment; None when claimed, else who holds it."""

    def release(self, key: UUID, holder: str) -> None:
        """Release one's own lease; a lapsed one is no error."""
