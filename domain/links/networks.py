"""The networks of an installation by name; every call about a link goes to the network of its plan.

Plans that name no network, such as old ones, belong to the simulated one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

from domain.catalogue.plan import SIMULATED, PlanTerms
from domain.errors import NotSupportedByNetwork
from domain.links.link import Link
from domain.links.network import Capability, EsimNetwork
from domain.provider_errors import ProviderError, Unavailable

NOT_SOLD = "This plan is not connected to the network, so it cannot be bought."
DRAINED = "The network of this plan takes no orders at present."


class Networks:
    """The configured networks; the first is the default of new plans."""

    def __init__(
        self,
        configured: Mapping[str, EsimNetwork],
        is_drained: Callable[[str], bool],
        is_paused: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_paused` says whether this process must call nobody."""
        assert configured
        self._is_paused = is_paused
        self._configured = configured
        self._is_drained = is_drained
        self.names = tuple(configured)

    def of(self, name: str | None) -> EsimNetwork:
        """Return the network of this name; None means the simulated one.

        If it is not configured (any more), each of its calls raises Unavailable. So links are shown
        as last seen, and open work waits until the network is configured again. So it is with every
        network while the process rests.
        """
        name = name or SIMULATED
        known = self._configured.get(name)
        if known is None:
            why = f"the network {name} is not configured"
        elif self._is_paused():
            why = f"a process at rest does not call the network {name}"
        else:
            return known
        return cast("EsimNetwork", _NotCalled(name, known or _Unknown, why))

    def require(self, link: Link, capability: Capability) -> None:
        if capability not in self.of(link.network).capabilities:
            raise NotSupportedByNetwork

    def topups(self, link: Link, plans: Sequence[str], timeout_s: float) -> Collection[str] | None:
        """Return which plans, by ids of its network, a link can take; None: all of its profile."""
        network = self.of(link.network)
        if link.sponsor_profile is not None or link.endpoint_id is None or not plans:
            return None
        try:
            return network.topups(link.endpoint_id, plans, timeout_s=timeout_s)
        except ProviderError:
            if network.remote:
                raise
            return None

    def is_configured(self, name: str | None) -> bool:
        return (name or SIMULATED) in self._configured

    def why_unsold(self, terms: PlanTerms) -> str | None:
        """Return why a plan cannot be bought from its network now; None if it can."""
        name = terms.network or SIMULATED
        if terms.provider_plan_id is None or not self.is_configured(name):
            return NOT_SOLD
        return DRAINED if self._is_drained(name) else None


class _NotCalled:
    """A network of which nothing is asked; what it can do is told as ever."""

    def __init__(self, name: str, network: object, why: str) -> None:
        self.name, self._network, self._why = name, network, why

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._network, name, self._refuse)
        return self._refuse if callable(found) else found

    def _refuse(self, *_: object, **__: object) -> Any:
        raise Unavailable(self._why)


class _Unknown:
    """What is told of a network that this process does not know; not even its shape is known."""

    remote = False
    shape = None
    adds_once = creates_once = stores_reference = False
    background_reads_per_s = 1.0
    capabilities: frozenset[str] = frozenset()
    settles_after = timedelta(hours=1)  # Longer than any network needs.
