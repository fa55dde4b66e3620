"""A circuit breaker around a number lookup: a provider that is down costs its callers no time."""

import logging
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final
from uuid import UUID

from domain.lookups.ports import NumberFacts, NumberLookup
from domain.provider_errors import Unavailable

CLOSE_S_MAX: Final = 5.0  # A probe that hangs longer is left behind: its thread is a daemon.

_log = logging.getLogger("app.providers.circuit")  # The name that operators know.


class CircuitBreaker:
    """Opens after `failures_max` failures in a row, then fails fast until a probe succeeds.

    While it is open, and only then, one daemon thread calls `probe` every `open_s` seconds: that
    is the half-open state, which needs no traffic and risks no caller's request. `probe` takes
    its own time-out, and raises while the provider is down. Thread-safe; `close()` ends it.
    """

    def __init__(
        self,
        inner: NumberLookup,
        *,
        failures_max: int,
        open_s: float,
        probe: Callable[[], object],
    ) -> None:
        assert failures_max > 0, failures_max
        assert open_s > 0, open_s
        self.name = inner.name
        self.remote = inner.remote
        self._inner = inner
        self._failures_max = failures_max
        self._open_s = open_s
        self._probe = probe
        self._lock = Lock()
        self._failures = 0
        self._prober: Thread | None = None  # Its presence is the open state.
        self._closing = Event()

    def is_up(self) -> bool:
        """Tell whether lookups are let through now."""
        return self._prober is None

    def look_up(self, organization_id: UUID, phone_number: str) -> NumberFacts:
        """Return what `inner` answers; any failure of it, even a foreign one, is Unavailable."""
        if not self.is_up():
            message = f"the circuit of the lookup provider {self.name} is open"
            raise Unavailable(message)
        try:
            facts = self._inner.look_up(organization_id, phone_number)
        except Unavailable:
            self._note_failure()
            raise
        except Exception as error:  # noqa: BLE001 - the port promises that none passes.
            # Only the type: the text of a foreign error may hold the number.
            _log.warning("lookup provider %s raised %s", self.name, type(error).__name__)
            self._note_failure()
            message = f"the lookup provider {self.name} failed"
            raise Unavailable(message) from None
        self._note_success()
        return facts

    def close(self) -> None:
        """End the probing for good, waiting for a probe that is under way; safe to repeat."""
        self._closing.set()
        with self._lock:
            prober = self._prober
        if prober is not None:
            prober.join(CLOSE_S_MAX)

    def _note_success(self) -> None:
        if self._failures:
            with self._lock:
                self._failures = 0

    def _note_failure(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures < self._failures_max or self._prober is not None:
                return
            prober = Thread(target=self._probe_until_up, name=f"{self.name}-probe", daemon=True)
            try:
                prober.start()
            except RuntimeError:
                # No thread is to be had. Without one nothing would ever close the circuit, so it
                # stays closed and the next failure tries again.
                return
            self._prober = prober
        _log.warning("lookup provider %s: circuit open", self.name)

    def _probe_until_up(self) -> None:
        while not self._closing.wait(self._open_s):
            try:
                self._probe()
            except Exception as error:  # noqa: BLE001 - whatever it is, the provider is not up.
                _log.info("lookup provider %s: probe raised %s", self.name, type(error).__name__)
                continue
            with self._lock:
                self._failures = 0
                self._prober = None
            _log.warning("lookup provider %s: circuit closed", self.name)
            return
