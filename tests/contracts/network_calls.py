"""Every call of the port of eSIM networks by its name, made on a link that is ready for it."""

from dataclasses import dataclass
from typing import Any

from domain.links.network import EsimNetwork, Order
from tests.contracts.esim_networks import (
    BASE_PLAN,
    OTHER_PLAN,
    PLAN,
    SPONSOR,
    TIMEOUT_S,
    a_free_esim,
)

READS = {"probe", "usage", "status", "lpa"}
CHANGES = {"add_plan", "remove_plan", "suspend", "resume"}
READS_OF = {
    "stock": READS | {"available_esims", "find_endpoint"},
    "order": READS | {"balance", "supplied", "orders"},
}
CHANGES_OF = {
    "stock": CHANGES | {"create_endpoint", "remove_endpoint", "release_esim"},
    "order": CHANGES | {"order", "take_back"},
}


def calls_of(shape: str) -> list[str]:
    """Return the names of all calls of a network of this shape."""
    return sorted(READS_OF[shape] | CHANGES_OF[shape])


@dataclass(frozen=True)
class Ask:
    """A link with one plan, a free eSIM where there is a stock, and the time-out of each call."""

    network: EsimNetwork
    endpoint_id: str
    iccid: str
    addon_id: str
    free_iccid: str
    order: Order | None
    timeout_s: float

    def call(self, name: str) -> object:
        at, until = (self.order.placed_at,) * 2 if self.order is not None else (None, None)
        arguments: dict[str, tuple[object, ...]] = {
            "usage": (self.endpoint_id,),
            "status": (self.endpoint_id,),
            "lpa": (self.iccid,),
            "available_esims": (PLAN, SPONSOR, ""),
            "find_endpoint": (self.iccid,),
            "orders": (PLAN, at, until),
            "create_endpoint": (self.free_iccid, PLAN, BASE_PLAN, "link-2"),
            "remove_endpoint": (self.endpoint_id,),
            "release_esim": (self.free_iccid,),
            "order": (PLAN, "link-2"),
            "take_back": (self.order,),
            "add_plan": (self.endpoint_id, OTHER_PLAN, "topup-1"),
            "remove_plan": (self.endpoint_id, self.addon_id),
            "suspend": (self.endpoint_id,),
            "resume": (self.endpoint_id,),
        }
        more: dict[str, Any] = {"page": 0} if name == "available_esims" else {}
        call = getattr(self.network, name)
        told = call(*arguments.get(name, ()), timeout_s=self.timeout_s, **more)
        return [*told] if name == "supplied" else told


def ready(network: EsimNetwork, timeout_s: float = TIMEOUT_S) -> Ask:
    """Buy a link; the plan to be removed is its own where it can be, and else none that it has."""
    if network.shape == "order":
        order = network.order(PLAN, "link-1", timeout_s=TIMEOUT_S)
        iccid = order.iccid
        return Ask(network, iccid, iccid, "no-such-addon", "", order, timeout_s)
    made = network.create_endpoint(
        a_free_esim(network), PLAN, BASE_PLAN, "link-1", timeout_s=TIMEOUT_S
    )
    (addon,) = network.usage(made.endpoint_id, timeout_s=TIMEOUT_S).addons
    free = a_free_esim(network)
    return Ask(network, made.endpoint_id, made.iccid, addon.addon_id, free, None, timeout_s)
