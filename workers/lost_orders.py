"""The work of a lost order: once it is settled, look for its eSIM, and give that back."""

import logging
from dataclasses import dataclass

from domain.cause import Cause, Clock
from domain.links.esim import Esim
from domain.links.lost_order import LostOrder, claim, is_claimed, is_of, search_span
from domain.links.networks import Networks
from domain.log.log import Log
from workers.driving import CALL, by_order

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LostOrders:
    """Works on lost orders, by a table of their own: they have no intent and no deadline."""

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
        for order in network.orders(plan, *span, timeout_s=CALL.total_seconds()):
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
        taken_back = network.take_back(order, timeout_s=CALL.total_seconds())
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
