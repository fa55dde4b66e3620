"""One real purchase at a provider: bought, read and given back, through its port alone."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID, uuid4

from msgspec.structs import replace

from app.bootstrap.container import Container
from app.processes.providers import supplied_by
from domain.catalogue.plan import SIMULATED
from domain.catalogue.supplied import SuppliedPlan
from domain.cost import Cost
from domain.errors import refuse
from domain.links.esim import holder_of
from domain.links.lost_order import search_span
from domain.links.network import Endpoint, EsimNetwork, OrderNetwork, ProviderPlan, StockNetwork
from domain.lookups.ports import LookupProvider
from domain.money import format_amount
from domain.provider_errors import problem_of

READ_S = 30.0
CHANGE_S = 200.0  # The longest that a network allows itself is 180 s.
NOBODY = UUID(int=0)  # The lookup is for no organization, and nobody is charged.

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Step:
    """One call; `told` says what went wrong, if anything did."""

    step: str
    ok: bool
    ms: float
    told: str | None = None


@dataclass
class Smoked:
    """What was done, and what it cost; `given_back` is None if there was nothing to give back."""

    steps: list[Step] = field(default_factory=list)
    cost: Cost | None = None
    given_back: bool | None = None

    @property
    def ok(self) -> bool:
        return all(each.ok for each in self.steps)

    def do(self, step: str, call: Callable[[], R]) -> R | None:
        started_s, remark, result = time.monotonic(), None, None
        try:
            result = call()
        except Exception as error:  # noqa: BLE001  # What was bought is still given back.
            remark = problem_of(error)
        ms = round((time.monotonic() - started_s) * 1000, 1)
        self.steps.append(Step(step, remark is None, ms, remark))
        return result


def smoke(
    container: Container, name: str, spend_max_micros: int, number: str, plan_id: str | None
) -> Smoked:
    """Look up one number, or buy an eSIM with a plan, read all about it and give it back.

    Raises NotPossible before anything is bought if the cost is unknown, or is more than the given
    amount in the provider's currency.
    """
    container.gate.refuse()
    for lookup in container.lookups:
        if lookup.name == name:
            return _look_up(container, lookup, spend_max_micros, number)
    if not container.networks.is_configured(name):
        refuse(f"{name} is not configured: see LOOKUP_PROVIDER and NETWORK_PROVIDER")
    network = container.networks.of(name)
    plan, cost = _plan(container, network, spend_max_micros, plan_id)
    smoked = Smoked(cost=cost)
    if network.shape == "order":
        _order(container, network, plan, smoked)
    else:
        _create(container, network, plan, smoked)
    return smoked


def _look_up(
    container: Container, provider: LookupProvider, spend_max_micros: int, number: str
) -> Smoked:
    cost = container.settings.lookup_costs.get(provider.name)
    if cost is None:
        refuse(f"COST_PER_LOOKUP does not say what {provider.name} takes for a lookup")
    _require_cheap(cost, spend_max_micros)
    smoked = Smoked(cost=cost)
    found = smoked.do("look up", lambda: provider.look_up(NOBODY, number))
    if found is not None and found.details is not None:
        smoked.cost = replace(cost, reference=found.details.reference)
    return smoked


def _plan(
    container: Container, network: EsimNetwork, spend_max_micros: int, plan_id: str | None
) -> tuple[ProviderPlan, Cost]:
    """Return the named plan, or the cheapest, from the network's catalogue or else from ours."""
    known = [
        (ProviderPlan(each.provider_plan_id, each.data_mb or 0, each.validity_days), each.cost)
        for each in supplied_by(network)
        if isinstance(each, SuppliedPlan)
    ] or list(_imported(container, network.name))
    priced = [(plan, cost) for plan, cost in known if cost is not None]
    wanted = [each for each in priced if plan_id in {None, each[0].provider_plan_id}]
    if not wanted:
        refuse(f"no plan of {network.name} with a known cost: name another, or import one")
    plan, cost = min(wanted, key=lambda each: each[1].amount_micros)
    _require_cheap(cost, spend_max_micros)
    return plan, cost


def _imported(container: Container, name: str) -> list[tuple[ProviderPlan, Cost | None]]:
    rows = [each.terms for each in container.views.read(container.plans.all)]
    return [
        (ProviderPlan(terms.provider_plan_id, terms.data_mb, terms.validity_days), terms.cost)
        for terms in rows
        if (terms.network or SIMULATED) == name and terms.provider_plan_id is not None
    ]


def _require_cheap(cost: Cost, spend_max_micros: int) -> None:
    if cost.amount_micros > spend_max_micros:
        price = f"{format_amount(cost.amount_micros)} {cost.currency}"
        refuse(f"it costs {price}, more than --spend-max; nothing was bought")


def _order(container: Container, network: OrderNetwork, plan: ProviderPlan, smoked: Smoked) -> None:
    since, reference = container.clock(), str(uuid4())
    order = smoked.do("order", lambda: network.order(plan, reference, timeout_s=CHANGE_S))
    if order is None:
        span = search_span(since, container.clock(), by_reference=False)
        seen = smoked.do("list orders", lambda: network.orders(plan, *span, timeout_s=READ_S))
        smoked.given_back = False  # An operator must look at the provider's own pages.
        if seen == []:
            smoked.cost = smoked.given_back = None
        return
    smoked.cost = order.cost or smoked.cost
    _read(network, order.iccid, order.iccid, smoked)
    returned = smoked.do("take back", lambda: network.take_back(order, timeout_s=CHANGE_S))
    smoked.given_back = bool(returned)


def _create(
    container: Container, network: StockNetwork, plan: ProviderPlan, smoked: Smoked
) -> None:
    rules = container.provisioning_rules
    free = smoked.do(
        "list free eSIMs",
        lambda: network.available_esims(plan, None, rules.product, page=0, timeout_s=READ_S),
    )
    nobodys = (it for it in free or () if holder_of(container.log, [network.name], it) is None)
    iccid, reference = next(nobodys, None), str(uuid4())
    if iccid is None:
        smoked.steps.append(Step("take one of them", ok=False, ms=0, told="there is none"))
        smoked.cost = None
        return
    made = smoked.do(
        "create endpoint",
        lambda: network.create_endpoint(
            iccid, plan, rules.base_plan, reference, timeout_s=CHANGE_S
        ),
    ) or _recover(network, iccid, reference, smoked)
    if made is None:
        return
    smoked.cost = made.cost or smoked.cost
    _read(network, made.endpoint_id, iccid, smoked)
    smoked.do(
        "remove endpoint", lambda: network.remove_endpoint(made.endpoint_id, timeout_s=CHANGE_S)
    )
    smoked.do("release eSIM", lambda: network.release_esim(iccid, timeout_s=CHANGE_S))
    smoked.given_back = all(each.ok for each in smoked.steps[-2:])


def _recover(network: StockNetwork, iccid: str, reference: str, smoked: Smoked) -> Endpoint | None:
    """Find the endpoint of a creation whose reply was lost; a link may have taken the eSIM."""
    found = smoked.do("find endpoint", lambda: network.find_endpoint(iccid, timeout_s=READ_S))
    if found is not None and found.reference == reference:
        return found
    smoked.given_back = False  # An operator must look at the provider's own pages.
    if smoked.steps[-1].ok:
        smoked.cost = smoked.given_back = None
    return None


def _read(network: EsimNetwork, endpoint_id: str, iccid: str, smoked: Smoked) -> None:
    smoked.do("usage", lambda: network.usage(endpoint_id, timeout_s=READ_S))
    smoked.do("activation code", lambda: network.lpa(iccid, timeout_s=READ_S))
    if "location" in network.capabilities:
        smoked.do("status", lambda: network.status(endpoint_id, timeout_s=READ_S))
