"""A number lookup that answers from a script and fails on demand, as a remote provider does."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from threading import Lock
from typing import Final
from uuid import UUID

from app.adapters.circuit import CircuitBreaker, GuardedLookup
from domain.lookups.ports import Carrier, Found, LookupProvider, NumberFacts
from domain.provider_errors import Unavailable

ORGANIZATION: Final = UUID("00000000-0000-4000-8000-000000000001")
VALID_MOBILE: Final = "+34612345678"
NOT_VALID: Final = "+9991234567"

ANSWERS: Final[Mapping[str, NumberFacts]] = {
    VALID_MOBILE: NumberFacts(
        VALID_MOBILE,
        valid=True,
        country_code="ES",
        national_format="612 34 56 78",
        carrier=Carrier(name="Scripted Mobile", type="mobile", mcc="001", mnc="01"),
    )
}


class Fault(StrEnum):
    """What a provider can do instead of answering; CRASHES is a bug of its adapter."""

    TIMES_OUT = "times out"
    REFUSES = "refuses"
    CRASHES = "crashes"


class ScriptedLookup:
    """Plays its faults first, one a call, then answers; a number of no answer is not valid."""

    name = "scripted"
    remote = True

    def __init__(self, answers: Mapping[str, NumberFacts] = ANSWERS) -> None:
        self._answers = answers
        self._faults: list[Fault] = []
        self._lock = Lock()
        self.calls = 0

    def play(self, *faults: Fault) -> None:
        """Let the next calls fail, in this order."""
        with self._lock:
            self._faults.extend(faults)

    def is_up(self) -> bool:
        return True

    def probe(self) -> None:
        """Succeed: what a probe finds is given to the circuit by the test."""

    def balance(self, *, timeout_s: float) -> None:
        """Tell nothing."""

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # The shape of the port.
        with self._lock:
            self.calls += 1
            fault = self._faults.pop(0) if self._faults else None
        if fault is Fault.CRASHES:
            message = f"no such key: {phone_number}"
            raise KeyError(message)
        if fault is not None:
            message = f"the scripted provider {fault}"
            raise Unavailable(message)
        facts = self._answers.get(phone_number, NumberFacts(phone_number, valid=False))
        return Found(facts, self.name)


class Behind(GuardedLookup):
    """A provider behind a circuit that its test closes."""

    def __init__(
        self,
        inner: LookupProvider,
        *,
        failures_max: int = 3,
        open_s: float = 3600.0,
        probe: Callable[[], object] | None = None,
    ) -> None:
        circuit = CircuitBreaker(
            f"lookup provider {inner.name}",
            probe or inner.probe,
            failures_max=failures_max,
            open_s=open_s,
        )
        super().__init__(inner, circuit)
        self.close = circuit.close
