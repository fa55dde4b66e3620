"""Circuit breakers around providers, so that no call waits for a provider that is down."""

import logging
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from math import inf
from threading import Event, Lock, Thread
from typing import Any, Final, ParamSpec, TypeVar
from uuid import UUID

from app.adapters.remote.exchange import Busy, OddRecord
from domain.links.network import EsimNetwork, Notifying
from domain.lookups.ports import Found, LookupProvider
from domain.provider_errors import (
    NotAnswered,
    OutcomeNotStated,
    ProviderError,
    Rejected,
    Unavailable,
)

FAILURES_MAX: Final = 5  # Failures in a row until callers no longer wait for the provider.
OPEN_S: Final = 5.0  # Between two probes of a provider that is down.
# If another provider can be asked, a single failure that took longer opens the circuit.
PATIENCE_S: Final = 1.0
CLOSE_S_MAX: Final = 5.0  # A probe that hangs longer is left alone; its thread is a daemon.

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("app.providers.circuit")  # The name that operators know.


@dataclass(eq=False)
class CircuitBreaker:
    """Opens after `failures_max` failures in a row, then fails fast until a probe succeeds.

    A single failure that took longer than `patience_s` also opens it, so that no other call waits
    for a slow provider if another provider can do the work.

    While the circuit is open, a daemon thread calls `probe` every `open_s` seconds. This takes the
    place of a half-open state: it needs no traffic and risks no caller's request. `probe` has a
    time-out of its own and raises while the provider is down. Thread-safe; `close()` ends the
    thread.
    """

    name: str  # As log lines have it.
    probe: Callable[[], object]
    _: KW_ONLY
    failures_max: int = FAILURES_MAX
    open_s: float = OPEN_S
    patience_s: float = inf
    _lock: Lock = field(default_factory=Lock, init=False)
    _failures: int = field(default=0, init=False)
    _prober: Thread | None = field(default=None, init=False)  # There is one while it is open.
    _closing: Event = field(default_factory=Event, init=False)

    def is_up(self) -> bool:
        return self._prober is None

    def call(self, reached: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call; raise Unavailable without calling while the circuit is open.

        `Rejected`, `NotAnswered` and `OutcomeNotStated` count as answers, because what one reply
        says of one number or one eSIM is no outage. `Busy` counts as nothing. Every other error
        counts as a failure, even an unknown one.
        """
        if self._prober is not None:
            raise Unavailable(f"the circuit of the {self.name} is open")
        started_s = time.monotonic()
        try:
            answer = reached(*args, **kwargs)
        except (Rejected, NotAnswered, OutcomeNotStated) as error:
            if isinstance(error, OddRecord | OutcomeNotStated):
                _log.warning("%s: an odd record: %s", self.name, error)
            self._record_success()
            raise
        except Busy:
            raise  # A provider that says "not now" is not down.
        except Exception as error:
            if not isinstance(error, ProviderError):
                # Only the type is logged, because the text of an unknown error may hold the number.
                _log.warning("%s raised %s", self.name, type(error).__name__)
            self._record_failure(is_slow=time.monotonic() - started_s > self.patience_s)
            raise
        self._record_success()
        return answer

    def close(self) -> None:
        """Stop probing for good and wait for a probe under way; safe to repeat."""
        self._closing.set()
        with self._lock:
            prober = self._prober
        if prober is not None:
            prober.join(CLOSE_S_MAX)

    def _record_success(self) -> None:
        if self._failures:
            with self._lock:
                self._failures = 0

    def _record_failure(self, *, is_slow: bool) -> None:
        with self._lock:
            self._failures += self.failures_max if is_slow else 1
            if self._failures < self.failures_max or self._prober is not None:
                return
            prober = Thread(target=self._probe_until_up, name=f"{self.name}-probe", daemon=True)
            try:
                prober.start()
            except RuntimeError:
                # No thread can be started. Without one nothing would ever close the circuit, so it
                # stays closed, and the next failure tries again.
                return
            self._prober = prober
        _log.warning("%s: circuit open", self.name)

    def _probe_until_up(self) -> None:
        while not self._closing.wait(self.open_s):
            try:
                self.probe()
            except Exception as error:  # noqa: BLE001 - Whatever the error, the provider is not up.
                _log.info("%s: probe raised %s", self.name, type(error).__name__)
                continue
            with self._lock:
                self._failures = 0
                self._prober = None
            _log.warning("%s: circuit closed", self.name)
            return


class GuardedLookup:
    """A provider of lookups, behind its circuit if it is remote; any error becomes Unavailable."""

    def __init__(
        self,
        inner: LookupProvider,
        circuit: CircuitBreaker,
        is_drained: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.name = inner.name
        self.remote = inner.remote
        self.probe, self.balance = inner.probe, inner.balance  # Whatever the circuit is.
        look_up: Callable[[UUID, str], Found] = inner.look_up
        self._look_up = (lambda *it: circuit.call(look_up, *it)) if inner.remote else look_up
        self._circuit = circuit
        self._is_drained = is_drained

    def is_up(self) -> bool:
        return self._circuit.is_up() and not self._is_drained(self.name)

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:
        if self._is_drained(self.name):
            raise Unavailable(f"the lookup provider {self.name} is drained")
        try:
            return self._look_up(organization_id, phone_number)
        except ProviderError:
            raise
        except Exception:  # noqa: BLE001 - The port promises that no other error passes.
            raise Unavailable(f"the lookup provider {self.name} failed") from None


class GuardedNetwork:
    """An eSIM network behind its circuit. All calls but two go through it.

    `probe` finds out whether the network is back. `notified` calls nobody, and a forged
    notification says nothing about the network.

    An open circuit raises Unavailable, because the call was not made. An unknown error is raised as
    it is, because the change may have happened.
    """

    def __init__(self, inner: EsimNetwork, circuit: CircuitBreaker) -> None:
        self.probe = inner.probe
        if isinstance(inner, Notifying):
            self.notified = inner.notified
        self.is_up = circuit.is_up
        self._inner = inner
        self._circuit = circuit

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return partial(self._circuit.call, found) if callable(found) else found
