"""The two calls that make a link: the endpoint of an eSIM from a stock, and an order.

Also how an eSIM is found and taken (eSIM, link, charge and intent in one commit), and how what a
failed link has left at a stock network is removed, or what it has ordered given back.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

import msgspec

from domain.accounts.wallet import Charge
from domain.catalogue.plan import SponsorProfile
from domain.cause import Cause, Clock, lies_ahead
from domain.errors import NO_ESIM, REJECTED, Conflict, IncompleteNetworkAnswer, ProvisioningError
from domain.links.create import ProvisioningRules
from domain.links.driver import Commit, S
from domain.links.esim import Esim
from domain.links.failing import purchase
from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder, claim, is_claimed, is_of, may_adopt, search_span
from domain.links.network import (
    AddonUsage,
    Endpoint,
    EsimNetwork,
    NoActivationCode,
    Order,
    Readings,
    Usage,
)
from domain.links.networks import Networks
from domain.links.saga import Repeat, is_settled
from domain.log.log import Log
from domain.months import month_of
from domain.personal import Sealed, Vault
from domain.provider_errors import ProviderError, Rejected, Unavailable
from workers.driving import CALL, Intent, Worked, by_order, refusal_of, stock

PAGES_MAX = 5  # Of free eSIMs per sponsor profile; if all of these are taken there is no stock.
CALL_S = CALL.total_seconds()

# With the sealed activation code; None where the reply was lost, and the endpoint was found.
Made = tuple[Endpoint, Sealed | None]
# An order; whether its reply was lost, and it was found; whether it is certainly that of this link.
Placed = tuple[Order, bool, bool]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Creating(Worked[Link, S]):
    """What both calls do alike: only with its activation code a link becomes active."""

    readings: Readings
    vault: Vault
    new_id: Callable[[], UUID]

    def lpa(self, link: Link, iccid: str) -> Sealed:
        timeout_s = self.left_s(link.requested.deadline)
        code = self.networks.of(link.network).lpa(iccid, timeout_s=timeout_s)
        month, clear = month_of(self.clock()), code.as_text().encode()
        return self.vault.seal(link.organization_id, month, link.id, clear)

    def first_read(self, link: Link, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint with the add-on id of its plan, if shown.

        Its first reading is kept before the activation, so that readers find its MSISDN.
        """
        plan, timeout_s = link.requested.plan, self.left_s(link.requested.deadline)
        usage = Usage("active", [], self.clock(), msisdn=endpoint.msisdn)
        if endpoint.addon_id is not None:
            data_mb = float(plan.data_mb)
            first = AddonUsage(endpoint.addon_id, plan.provider_plan_id, 0.0, data_mb)
            usage.addons.append(first)
        else:
            with suppress(ProviderError):
                network = self.networks.of(link.network)
                usage = network.usage(endpoint.endpoint_id, timeout_s=timeout_s)
        try:
            self.readings.save_usage(link.organization_id, link.id, usage)
        except Exception:  # It is only a cache, so the link is activated all the same.
            logger.warning("the first reading of link %s was not kept", link.id, exc_info=True)
        mine = (a.addon_id for a in usage.addons if a.provider_plan_id == plan.provider_plan_id)
        return msgspec.structs.replace(endpoint, addon_id=next(mine, None))


@dataclass(frozen=True)
class CreateEndpoint(Creating[Made]):
    """Takes a free eSIM of a stock network and creates its endpoint, under the id of the link.

    | the network shows for its eSIM | then |
    |---|---|
    | our endpoint | it is the link's; if the link has failed, it is removed and the eSIM freed |
    | an endpoint of somebody else | the link fails, and nobody touches that endpoint |
    | none | made again if the network creates once; a failed link frees the eSIM once settled |
    """

    rules: ProvisioningRules

    def repeat(self, network: EsimNetwork) -> Repeat:
        return "safe" if stock(network).creates_once else "at_deadline"

    def prepare(self, work: Link) -> Iterator[Intent[Made]]:
        """Take the first free eSIM of the first sponsor profile that has one, and the price.

        A link that has an eSIM keeps it. The activation code takes time, so the intent comes after.
        """
        if work.stage is not Stage.REQUESTED:
            assert work.iccid is not None
            yield self._intent(work, self.lpa(work, work.iccid), self.cause(work))
            return
        try:
            for profile, iccid, known in self._free(work):
                try:
                    lpa = self.lpa(work, iccid)
                except NoActivationCode:
                    continue  # Nobody could install it.
                cause = self.cause(work)
                esim = known or Esim.register(work.network, iccid, cause)
                esim.reserve(work.id, cause)
                work.record(Link.EsimReserved, cause, iccid=iccid, sponsor_profile=profile)
                yield self._intent(work, lpa, cause, esim)
                work = self.log.get(Link, work.id)  # Another link was first, or another worker.
                if work.stage is not Stage.REQUESTED:
                    raise Conflict(work.id)
        except ProviderError as error:
            raise refusal_of(error, work.requested.deadline, self.clock()) from None
        raise ProvisioningError(NO_ESIM)

    def _intent(self, link: Link, lpa: Sealed, cause: Cause, *esims: Esim) -> Intent[Made]:
        link.request_endpoint(self.until(link, cause.at), cause, self.new_id())
        plan, base, reference = link.requested.plan.at_provider, self.rules.base_plan, str(link.id)
        create, iccid = stock(self.networks.of(link.network)).create_endpoint, link.iccid
        assert iccid is not None

        def call(left_s: float) -> Made:
            return create(iccid, plan, base, reference, timeout_s=left_s), lpa

        return [link, *esims], charges_of(link) if esims else [], call

    def _free(self, link: Link) -> Iterator[tuple[SponsorProfile | None, str, Esim | None]]:
        """Yield the eSIMs that the network shows as free and no link holds, with their streams.

        Each link starts at another place of the list. Otherwise many links at once would all try
        the same first eSIM.
        """
        plan, network = link.requested.plan.at_provider, stock(self.networks.of(link.network))
        profiles: Sequence[SponsorProfile | None] = link.requested.sponsor_profiles
        for profile in profiles or [None]:
            wanted, page = profile.id if profile is not None else None, 0
            while page < PAGES_MAX:
                if not (timeout_s := self.left_s(link.requested.deadline)):
                    raise Unavailable
                found = network.available_esims(
                    plan, wanted, self.rules.product, page=page, timeout_s=timeout_s
                )
                if not found:
                    break
                start, over = link.id.int % len(found), 0
                for each in [*found[start:], *found[:start]]:
                    esim = self.log.find(Esim, Esim.id_of(network.name, each))
                    if esim is None or esim.link_id is None:
                        yield profile, each, esim
                    elif (holder := self.log.find(Link, esim.link_id)) and holder.ended:
                        over += network.skip_esim(each)  # It is never free again.
                page += over < len(found)  # If all were passed over, this page now has others.

    def look_up(self, work: Link, timeout_s: float) -> Made | None:
        assert work.iccid is not None
        network = stock(self.networks.of(work.network))
        found = network.find_endpoint(work.iccid, timeout_s=timeout_s)
        return None if found is None else (found, None)

    def settle(self, work: Link, seen: Made | None, cause: Cause) -> Commit:
        assert seen is not None
        endpoint, lpa = seen
        if endpoint.reference != str(work.id):
            raise ProvisioningError(REJECTED)
        code = lpa or self.lpa(work, endpoint.iccid)
        endpoint = self.first_read(work, endpoint)
        work.activate(endpoint, code, replace(cause, at=self.clock()), adopted=lpa is None)
        return [work], []

    def undo(self, newest: Link, seen: Made) -> None:
        """Remove an endpoint that was created after its failed link had been cleaned up."""
        endpoint, lpa = seen
        if lpa is None or newest.stage is not Stage.ENDED:
            return
        logger.error("an endpoint was made after link %s had ended; it is removed", newest.id)
        with suppress(ProviderError):
            network = stock(self.networks.of(newest.network))
            network.remove_endpoint(endpoint.endpoint_id, timeout_s=CALL_S)
            network.release_esim(endpoint.iccid, timeout_s=CALL_S)

    def clean_up(self, work: Link) -> Link | None:
        """Look for a late endpoint and remove it; free the eSIM once none can appear any more."""
        assert work.iccid is not None
        network, cause = stock(self.networks.of(work.network)), self.cause(work)
        if work.stage is Stage.ENDPOINT_REMOVED:
            return self._release(work)
        if work.endpoint_id is None:  # The answer may lack changes made after it was asked for.
            settled = is_settled(work, network.settles_after, cause.at)
            endpoint = network.find_endpoint(work.iccid, timeout_s=CALL_S)
            if endpoint is None or endpoint.reference != str(work.id):
                return self._release(work) if settled else None
            work.record(Link.EndpointFound, self.cause(work), endpoint_id=endpoint.endpoint_id)
            self.log.append(work)
        try:
            network.remove_endpoint(work.endpoint, timeout_s=CALL_S)
        except Rejected:
            work.record_endpoint_left_over(self.cause(work))
            self.log.append(work)
            return None
        work.record(Link.EndpointRemoved, self.cause(work), endpoint_id=work.endpoint)
        self.log.append(work)
        return work

    def _release(self, link: Link) -> Link:
        assert link.iccid is not None
        esim = self.log.get(Esim, Esim.id_of(link.network, link.iccid))
        esim.release(link.id, self.cause(link))  # Before the call: another link may have it.
        stock(self.networks.of(link.network)).release_esim(link.iccid, timeout_s=CALL_S)
        link.record(Link.EsimReleased, self.cause(link), iccid=link.iccid)
        self.log.append(link, esim)
        return link


@dataclass(frozen=True)
class PlaceOrder(Creating[Placed]):
    """Buys an eSIM with its plan, where repeating an order would buy another one.

    What a failed link has ordered its `LostOrder` finds and gives back.
    """

    def is_for(self, work: Link) -> bool:
        is_first = work.stage is Stage.REQUESTED
        return work.stage is Stage.ORDERING or (
            is_first and self.networks.of(work.network).shape == "order"
        )

    def repeat(self, _network: EsimNetwork) -> Repeat:
        return "once_settled"

    def clean_up(self, _: Link) -> None:
        """Leave it to its `LostOrder`."""

    def prepare(self, work: Link) -> Iterator[Intent[Placed]]:
        network, cause = by_order(self.networks.of(work.network)), self.cause(work)
        charges = charges_of(work) if work.stage is Stage.REQUESTED else []
        work.request_order(network.name, self.until(work, cause.at), cause, self.new_id())
        plan, reference = work.requested.plan.at_provider, str(work.id)

        def call(left_s: float) -> Placed:
            return network.order(plan, reference, timeout_s=left_s), False, True

        yield [work], charges, call

    def look_up(self, work: Link, timeout_s: float) -> Placed | None:
        """Return the order whose reply was lost, or an equal one."""
        assert work.intent is not None
        assert work.ordered_since is not None
        now, network = self.clock(), by_order(self.networks.of(work.network))
        by_reference = network.stores_reference
        if not by_reference and lies_ahead(work.intent.until, now):
            raise Unavailable  # Until then the reply may still come.
        until = work.intent.until + network.settles_after
        span = search_span(work.ordered_since, until, by_reference=by_reference)
        for order in network.orders(work.requested.plan.at_provider, *span, timeout_s=timeout_s):
            mine = may_adopt(work, order, now, by_reference=by_reference)
            if mine and not is_claimed(self.log, network.name, order):
                return order, True, by_reference
        return None

    def settle(self, work: Link, seen: Placed | None, cause: Cause) -> Commit:
        """Take the eSIM of an order and activate the link in one commit.

        Another link may have taken this order meanwhile, as an equal one; then the link looks for
        an order as after a lost reply. If the link has failed meanwhile, its `LostOrder` finds it.
        """
        assert seen is not None
        order, adopted, own = seen
        try:
            lpa = self.lpa(work, order.iccid)
        except NoActivationCode:  # Nobody can install it: its `LostOrder` gives it back.
            raise IncompleteNetworkAnswer from None
        cost = order.cost or work.requested.plan.cost_of(order.order_reference)
        endpoint = Endpoint(order.iccid, order.iccid, str(work.id), cost=cost)
        endpoint = self.first_read(work, endpoint)
        cause = replace(cause, at=self.clock())
        try:
            esim = claim(self.log, work.network, order, work.id, cause)
        except Conflict:
            raise Unavailable from None
        work.record(Link.OrderPlaced, cause, **order.facts, adopted=not own)
        work.activate(endpoint, lpa, cause, adopted=adopted)
        was_lost = not own or work.attempts > 1  # The outcome of one of its calls is unknown.
        settles_after = self.networks.of(work.network).settles_after
        left = [LostOrder.open(work, settles_after, cause)] if was_lost else []
        return [work, esim, *left], []


@dataclass(frozen=True)
class LostOrders:
    """Works on lost orders, by a table of their own: they have no intent and no deadline.

    Once one is settled, it looks for its eSIM, and gives that back.
    """

    log: Log
    networks: Networks
    clock: Clock

    def step(self, lost: LostOrder) -> LostOrder | None:
        """Do what is due; returns and raises as `Driver.step`."""
        if lost.found is not None:
            return self._give_back(lost)
        is_due = not lost.is_settled and self.clock() >= lost.opened.settled_at
        return self._look_up(lost) if is_due else None

    def _look_up(self, lost: LostOrder) -> LostOrder | None:
        """Claim an unclaimed order of that time; settle if there is none."""
        network = by_order(self.networks.of(lost.network))
        by_reference = network.stores_reference
        span = search_span(lost.opened.since, lost.opened.until, by_reference=by_reference)
        plan = lost.opened.plan.at_provider
        for order in network.orders(plan, *span, timeout_s=CALL_S):
            of_this = is_of(lost, order, by_reference=by_reference)
            if of_this and not is_claimed(self.log, lost.network, order):
                cause = self._cause(lost)
                esim = claim(self.log, lost.network, order, lost.link_id, cause)
                lost.record_found(order, cause)
                self.log.append(lost, esim)
                return lost
        lost.record(LostOrder.Settled, self._cause(lost))
        self.log.append(lost)
        return None

    def _give_back(self, lost: LostOrder) -> LostOrder:
        """Give the eSIM back; if the network does not take it, that is an incident."""
        order, network = lost.order, by_order(self.networks.of(lost.network))
        taken_back = network.take_back(order, timeout_s=CALL_S)
        cause = self._cause(lost)
        esim = self.log.get(Esim, Esim.id_of(lost.network, order.iccid))
        if esim.link_id is not None:
            esim.release(lost.link_id, cause)
        lost.record_ended(cause, taken_back=taken_back)
        self.log.append(lost, esim)
        if not taken_back:
            logger.error("an order of link %s is left over: nobody has it", lost.link_id)
        return lost

    def _cause(self, lost: LostOrder) -> Cause:
        return Cause(self.clock(), lost.opened.request_id)


def charges_of(link: Link) -> list[Charge]:
    plan = link.requested.plan
    return link.debit(link.requested.price, f"Activation: {plan.name}", purchase(link.id, plan))
