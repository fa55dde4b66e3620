"""The work of a lost order: once it is settled, look for its eSIM, and give that back."""

import logging
from dataclasses import dataclass

from domain.cause import Cause
from domain.links.esim import Esim, esim_id
from domain.links.lost_order import (
    LostOrder,
    claim,
    is_claimed,
    is_of,
    next_step,
    search_span,
)
from domain.links.saga import Step
from domain.provider_errors import ProviderError
from workers.saga import CALL, Saga, by_order

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LostOrders(Saga[LostOrder]):
    """Works on the lost orders of one network."""

    def _next(self, lost: LostOrder) -> Step:
        return next_step(lost, self.clock())

    def _look_up(self, lost: LostOrder) -> bool:
        """Claim an unclaimed order of that time; settle if there is none."""
        plan = lost.opened.plan.at_provider
        try:
            network = by_order(self.network)
            by_reference = network.keeps_reference
            span = search_span(lost.opened.since, lost.opened.until, by_reference=by_reference)
            orders = network.orders(plan, *span, timeout_s=CALL.total_seconds())
        except ProviderError:
            return False
        for order in orders:
            of_this = is_of(lost, order, by_reference=by_reference)
            if of_this and not is_claimed(self.log, lost.network, order):
                cause = self._cause(lost)
                esim = claim(self.log, lost.network, order, lost.link_id, cause)
                lost.note_found(order, cause)
                self.log.append(lost, esim)
                return True
        lost.record(LostOrder.Settled, self._cause(lost))
        self.log.append(lost)
        return False

    def _clean_up(self, lost: LostOrder) -> bool:
        """Give the eSIM back; if the network does not take it, that is an incident."""
        order = lost.order
        try:
            network = by_order(self.network)
            taken_back = network.take_back(order, timeout_s=CALL.total_seconds())
        except ProviderError:
            return False
        cause = self._cause(lost)
        esim = self.log.get(Esim, esim_id(lost.network, order.iccid))
        if esim.link_id is not None:
            esim.release(lost.link_id, cause)
        lost.note_ended(cause, taken_back=taken_back)
        self.log.append(lost, esim)
        if not taken_back:
            logger.error("an order of link %s is left over: nobody has it", lost.link_id)
        return True

    def _cause(self, lost: LostOrder) -> Cause:
        return Cause(self.clock(), lost.opened.request_id)
