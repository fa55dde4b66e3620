"""The sandbox numbers: each plays, on demand, one failure that a partner can meet."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from domain.cost import ProviderBalance
from domain.lookups.ports import Carrier, Found, LookupProvider, NumberFacts
from domain.provider_errors import Unavailable

UNAVAILABLE: Final = "+15005550001"
SLOW: Final = "+15005550002"
MALFORMED: Final = "+15005550003"
SECOND_ATTEMPT: Final = "+15005550004"
# Answers about these numbers are never cached.
NUMBERS: Final = frozenset({UNAVAILABLE, SLOW, MALFORMED, SECOND_ATTEMPT})

SLOW_S: Final = 3.0

# E.212 reserves 001-01 for test networks, so the answer names no real operator.
_CARRIER: Final = Carrier(name="Sandbox Mobile", type="mobile", mcc="001", mnc="01")


class SandboxLookup:
    """Plays the sandbox numbers and passes every other number to `inner`.

    Put it outside a circuit breaker, because what it plays says nothing about the provider.
    """

    def __init__(
        self,
        inner: LookupProvider,
        count: Callable[[UUID, str], int],
        sleep: Callable[[float], None],
    ) -> None:
        """`count` counts attempts of an organization at a number, over all processes."""
        self.name = inner.name
        self.remote = inner.remote
        self.is_up = inner.is_up
        self.probe = inner.probe
        self._inner = inner
        self._count = count
        self._sleep = sleep

    def balance(self, *, timeout_s: float) -> ProviderBalance | None:
        """Return what our account holds at `inner`."""
        return self._inner.balance(timeout_s=timeout_s)

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:
        """Play a sandbox number, or return what `inner` answers."""
        if phone_number not in NUMBERS:
            return self._inner.look_up(organization_id, phone_number)
        if phone_number == UNAVAILABLE:
            message = "the sandbox plays a provider that is unavailable"
            raise Unavailable(message)
        if phone_number == MALFORMED:
            message = "the sandbox plays a reply that is malformed"
            raise Unavailable(message)
        if phone_number == SLOW:
            self._sleep(SLOW_S)
        elif self._count(organization_id, phone_number) == 1:
            message = "the sandbox plays a provider that fails on the first attempt"
            raise Unavailable(message)
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
