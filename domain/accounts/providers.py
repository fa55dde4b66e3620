"""Lookup providers and networks that an operator has drained: they get no new work.

Open work is still finished. The log records who drained a provider and who resumed it.
"""

from collections.abc import Iterable, Mapping

from domain.cause import Cause
from domain.log.aggregate import ByOperator, Created, LoadedFromNewest, itself, sets
from domain.log.log import Log, retried


class Provider(LoadedFromNewest):
    """A provider as operators see it; its stream begins when it is drained for the first time."""

    TOPIC = "provider"
    OWN = ("name",)

    class Event(LoadedFromNewest.Event):
        """Every event names the provider, so the newest one is the whole state."""

        name: str

    class Registered(Event, Created):
        TOPIC = "provider.registered"
        SETS = sets("name", drained=None)

    class Drained(Event, ByOperator):
        TOPIC = "provider.drained"
        SETS = sets(drained=itself)

    class Resumed(Event, ByOperator):
        TOPIC = "provider.resumed"
        SETS = sets(drained=None)

    name: str
    drained: "Provider.Drained | None"


def drained(log: Log, names: Iterable[str]) -> Mapping[str, Provider.Drained]:
    """Read which of these providers are drained: since when, and by whom.

    Raises what the log raises.
    """
    found = log.find_all(Provider, [Provider.id_of(name) for name in names])
    return {each.name: each.drained for each in found.values() if each.drained is not None}


@retried
def switch_provider(log: Log, name: str, cause: Cause, *, drained: bool) -> Provider:
    """Drain a provider, or let it work again; nothing is recorded if that is so already."""
    provider_id = Provider.id_of(name)
    known = log.find(Provider, provider_id)
    known = known or Provider.begin(Provider.Registered, cause, provider_id, name=name)
    if drained != (known.drained is not None):
        known.record(Provider.Drained if drained else Provider.Resumed, cause)
    if known.pending_events and (drained or known.version > 1):
        log.append(known)
    return known
