"""The work of a lost order: once it is settled, look for its eSIM, and give that back."""

import logging
from dataclasses import dataclass
from uuid import UUID

from domain.cause import Cause, Clock
from domain.links.esim import Esim, esim_id
from domain.links.lost_order import (
    LostOrder,
    LostStep,
    claim,
    is_claimed,
    is_of,
    next_step,
    search_span,
)
from domain.links.networks import Networks
from domain.log.log import Log
from domain.provider_errors import ProviderError
from workers.links import CALL, by_order, do_steps
from workers.shares import Shares

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LostOrders:
    """Works on lost orders; any message may come twice, late or never.

    `clock` raises ServiceUnavailable while it is wrong.
    """

    log: Log
    networks: Networks
    clock: Clock
    shares: Shares

    def work(self, lost_id: UUID) -> None:
        """Bring a lost order as far as it can go now, once its organization has a free thread."""
        lost = self.log.find(LostOrder, lost_id)
        if lost is None:
            logger.error("lost order %s does not exist", lost_id)
            return
        opened = lost.opened
        self.shares.run(opened.network, opened.organization_id, lost_id, lambda: self._work(lost))

    def _work(self, lost: LostOrder) -> None:
        do_steps(self.log, lost, lambda it: self._do(next_step(it, self.clock()), it))

    def _do(self, step: LostStep, lost: LostOrder) -> bool:
        match step:
            case LostStep.LOOK:
                return self._look(lost)
            case LostStep.TAKE_BACK:
                return self._take_back(lost)
            case _:
                return False

    def _look(self, lost: LostOrder) -> bool:
        """Claim an unclaimed order of that time; settle if there is none."""
        plan = lost.opened.plan.at_provider
        try:
            network = by_order(self.networks.of(lost.opened.network))
            by_reference = network.keeps_reference
            span = search_span(lost.opened.since, lost.opened.until, by_reference=by_reference)
            orders = network.orders(plan, *span, timeout_s=CALL.total_seconds())
        except ProviderError:
            return False
        for order in orders:
            of_this = is_of(lost, order, by_reference=by_reference)
            if of_this and not is_claimed(self.log, lost.opened.network, order):
                cause = self._cause(lost)
                esim = claim(self.log, lost.opened.network, order, lost.opened.link_id, cause)
                lost.note_found(order, cause)
                self.log.append(lost, esim)
                return True
        lost.settle(self._cause(lost))
        self.log.append(lost)
        return False

    def _take_back(self, lost: LostOrder) -> bool:
        """Give the eSIM back; if the network does not take it, that is an incident."""
        order = lost.order
        try:
            network = by_order(self.networks.of(lost.opened.network))
            taken_back = network.take_back(order, timeout_s=CALL.total_seconds())
        except ProviderError:
            return False
        cause = self._cause(lost)
        esim = self.log.get(Esim, esim_id(lost.opened.network, order.iccid))
        if esim.link_id is not None:
            esim.release(lost.opened.link_id, cause)
        lost.note_ended(cause, taken_back=taken_back)
        self.log.append(lost, esim)
        if not taken_back:
            logger.error("an order of link %s is left over: nobody has it", lost.opened.link_id)
        return True

    def _cause(self, lost: LostOrder) -> Cause:
        return Cause(self.clock(), lost.opened.request_id)
