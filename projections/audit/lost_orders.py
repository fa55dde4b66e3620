"""Checks that every order whose reply was lost is looked for, and that a found one ends once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.links.esim import Esim
from domain.links.lost_order import LostOrder
from projections.audit.promises import Promises


@dataclass
class LostOrderInvariants:
    """Every lost order that is not settled, with the ICCID that was found for it, if any."""

    _promises: Promises
    _open: dict[UUID, str | None] = field(default_factory=dict)

    def check(self, position: int, event: LostOrder.Event) -> Iterator[str]:
        lost = event.originator_id
        if isinstance(event, LostOrder.Opened):
            self._open[lost] = None
            if not self._promises.keep((LostOrder.Opened, event.link_id), event.organization_id):
                yield f"lost order {lost} is of a link that has lost none"
        elif lost not in self._open:
            yield f"lost order {lost} moves before it was opened, or after its end"
        elif isinstance(event, LostOrder.Found):
            if self._open[lost] is not None:
                yield f"lost order {lost} finds an order while it has another"
            self._open[lost] = event.iccid
            missing = f"lost order {lost} found an eSIM that it did not claim"
            self._promises.make(position, (Esim.Reserved, event.link_id), event.iccid, missing)
        elif isinstance(event, LostOrder.TakenBack | LostOrder.LeftOver):
            if self._open[lost] != event.iccid:
                yield f"lost order {lost} ends an order that it has not found"
            self._open[lost] = None
            missing = f"lost order {lost} ended an order whose eSIM it still holds"
            self._promises.make(position, (Esim.Released, event.link_id), event.iccid, missing)
        elif self._open.pop(lost) is not None:
            yield f"lost order {lost} is settled while it has an order"
