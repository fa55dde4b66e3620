"""Lookup providers and networks that an operator has drained: they get no new work.

Open work is still finished. The log records who drained a provider and who resumed it.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Self
from uuid import UUID

from domain.cause import Cause
from domain.ids import derive_id
from domain.log.aggregate import ByOperator, Created, LoadedFromNewest, itself, sets
from domain.log.log import Log, retry_on_conflict

LOOK_S = 1.0  # How soon every process knows.

logger = logging.getLogger(__name__)


class Provider(LoadedFromNewest):
    """A provider as operators see it; its stream begins when it is drained for the first time."""

    TOPIC = "provider"

    class Event(LoadedFromNewest.Event):
        """Every event names the provider, so the newest one is the whole state."""

        name: str

    class Registered(Event, Created):
        TOPIC = "provider.registered"

        def apply(self, aggregate: "Provider") -> None:
            aggregate.restore(self)
            aggregate.drained = None

    class Drained(Event, ByOperator):
        TOPIC = "provider.drained"
        SETS = sets(drained=itself)

    class Resumed(Event, ByOperator):
        TOPIC = "provider.resumed"
        SETS = sets(drained=None)

    name: str
    drained: "Provider.Drained | None"

    @classmethod
    def register(cls, name: str, cause: Cause) -> Self:
        return cls.begin(cls.Registered, cause, provider_id(name), name=name)

    def switch(self, cause: Cause, *, drained: bool) -> None:
        """Drain it, or let it work again; nothing is recorded if that is so already."""
        if drained != (self.drained is not None):
            self.record(self.Drained if drained else self.Resumed, cause, name=self.name)

    def restore(self, event: Event) -> None:
        self.name = event.name


@dataclass(frozen=True, slots=True)
class DrainState:
    """Since when a provider is drained, and by whom; None: by no operator."""

    since: datetime
    actor: str | None


class Drains:
    """What the log says about these providers as of the last look; only `look` reads the log."""

    def __init__(self, log: Log, names: Collection[str]) -> None:
        self._log = log
        self._streams = {provider_id(name): name for name in names}
        self._known: Mapping[str, DrainState] = {}

    def has(self, name: str) -> bool:
        """Tell whether a provider is drained."""
        return name in self._known

    def look(self) -> Mapping[str, DrainState]:
        """Read the log; return what is drained. Raises what the log raises."""
        found = self._log.find_all(Provider, self._streams)
        self._known = {
            each.name: DrainState(each.drained.timestamp, each.drained.actor)
            for each in found.values()
            if each.drained is not None
        }
        return self._known

    def keep(self, stop: Event) -> None:
        """Look each second; while the log cannot be read, the last known state holds."""
        while True:
            try:
                self.look()
            except Exception as error:  # noqa: BLE001  # Others report what is wrong with the log.
                logger.debug("drained providers could not be read: %s", type(error).__name__)
            if stop.wait(LOOK_S):
                return

    def switch(self, name: str, cause: Cause, *, drained: bool) -> Provider:
        """Drain a provider, or let it work again."""

        def switch() -> Provider:
            known = self._log.find(Provider, provider_id(name)) or Provider.register(name, cause)
            known.switch(cause, drained=drained)
            if known.pending_events and (drained or known.version > 1):
                self._log.append(known)
            return known

        return retry_on_conflict(switch)


def provider_id(name: str) -> UUID:
    return derive_id("provider", name)
