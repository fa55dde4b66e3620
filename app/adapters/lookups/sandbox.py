"""What a sandbox plays in place of a lookup: each failure that a partner can meet, on demand.

It is asked for by a number of the sandbox, or scripted by an organization for its next lookups.
"""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

from domain.lookups.ports import Carrier, Found, LookupProvider, NumberFacts
from domain.provider_errors import NotAnswered, Unavailable

UNAVAILABLE: Final = "+15005550001"
SLOW: Final = "+15005550002"
MALFORMED: Final = "+15005550003"
SECOND_ATTEMPT: Final = "+15005550004"
# Those that an organization can script; the value is what the provider does.
FAILURES: Final = {
    "unavailable": "is unavailable",
    "slow": "is slow",
    "malformed": "sends a reply that is malformed",
    "no_data": "has no answer",
}
_FIRST_ATTEMPT: Final = "first_attempt"
# Answers about these numbers are never cached.
NUMBERS: Final[Mapping[str, str]] = {
    UNAVAILABLE: "unavailable",
    SLOW: "slow",
    MALFORMED: "malformed",
    SECOND_ATTEMPT: _FIRST_ATTEMPT,
}
NUMBER_OF: Final = {how: number for number, how in NUMBERS.items()}

SLOW_S: Final = 3.0

# E.212 reserves 001-01 for test networks, so the answer names no real operator.
_CARRIER: Final = Carrier(name="Sandbox Mobile", type="mobile", mcc="001", mnc="01")


class SandboxLookup:
    """Plays what is asked for, and passes every other number to `inner`.

    Put it outside a circuit breaker, because what it plays says nothing about the provider.
    """

    def __init__(
        self,
        inner: LookupProvider,
        count: Callable[[UUID, str], int],
        sleep: Callable[[float], None],
        scripted: Callable[[UUID, str], str | None] = lambda *_: None,
    ) -> None:
        """`count` counts attempts of an organization at a number, over all processes.

        `scripted` counts an attempt of an organization at a number, and returns how it has to fail,
        if at all.
        """
        self.name = inner.name
        self.remote = inner.remote
        self.is_up = inner.is_up
        self.probe = inner.probe
        self.balance = inner.balance
        self._inner = inner
        self._count = count
        self._sleep = sleep
        self._scripted = scripted

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:
        how = self._scripted(organization_id, phone_number) or NUMBERS.get(phone_number)
        if how == _FIRST_ATTEMPT and self._count(organization_id, phone_number) == 1:
            how = "unavailable"
        if how == "slow":
            self._sleep(SLOW_S)
        elif how in FAILURES:
            kind = NotAnswered if how == "no_data" else Unavailable
            raise kind(f"the sandbox plays a provider that {FAILURES[how]}")
        if phone_number not in NUMBERS:
            return self._inner.look_up(organization_id, phone_number)
        return Found(_facts(phone_number), self.name, free=True)  # No provider was asked.


def _facts(phone_number: str) -> NumberFacts:
    area, exchange, line = phone_number[2:5], phone_number[5:8], phone_number[8:]
    return NumberFacts(
        phone_number,
        valid=True,
        country_code="US",
        national_format=f"({area}) {exchange}-{line}",
        carrier=_CARRIER,
    )
