"""Checks that a link ends once, as intended, and that a cancelled link gives all money back.

What is left of its charges is read again from the streams of the link and its plan changes, as for
refunds by hand. Cancelled links are few, so nothing is remembered for them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from uuid import UUID

from domain.accounts.paid_price import PaidPrice
from domain.accounts.wallet import ChargeKind, Reference
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from projections.audit.bookings import Bookings, Reason
from projections.audit.promises import Promises
from projections.audit.refunds_by_hand import History, left_of


@dataclass(frozen=True, slots=True)
class _Left:
    """A charge that is not fully refunded, what is left of it, and what it was for."""

    price: PaidPrice
    micros: int
    reference: Reference
    kind: ChargeKind


@dataclass
class EndInvariants:
    """Every end of a link, checked against the earlier charges for the link."""

    _bookings: Bookings
    _promises: Promises
    _history: History

    def check(
        self, position: int, event: Link.Ended, intent: Link.EndRequested | None
    ) -> Iterator[str]:
        link_id, kind = event.originator_id, intent.kind if intent is not None else "end"
        if event.reason != ("cancelled" if kind == "cancel" else "ended"):
            yield f"link {link_id} ends for another reason than was intended"
        if event.reason == "ended":
            if event.refunds:
                yield f"link {link_id} gives money back and was not cancelled"
            return
        before = self._history(link_id, event.originator_version - 1)
        left = {each.price.transaction_id: each for each in self._all_left(event, before)}
        given = [(each.charge_id, each.amount_micros) for each in event.refunds]
        if sorted(given) != sorted((charge, each.micros) for charge, each in left.items()):
            yield f"link {link_id} was cancelled with another sum back than was left"
        for back in event.refunds:
            if (of := left.get(back.charge_id)) is not None:
                reason = Reason(position, event.organization_id, of.reference, of.kind)
                self._bookings.announce_refund(reason, back, of.price)
        self._announce(position, event, left, before)

    def _all_left(self, event: Link.Ended, before: Sequence[Event]) -> Iterator[_Left]:
        """Return what is left of the activation and of each top-up."""
        requested = before[0]
        if isinstance(requested, Link.Requested) and requested.price is not None:
            reference = Reference("link", str(event.originator_id))
            yield from _left(before, requested.price, reference, "activation")
        for change_id in _changes(before):
            # Only events before this commit: after it, nothing of the change is left.
            history = [*takewhile(_is_earlier, self._history(change_id, None))]
            for each in history:
                if isinstance(each, PlanChange.Requested):
                    prices = [addition.price for addition in each.additions if addition.price]
                    reference = Reference("plan_change", str(change_id))
                    for price in prices:
                        yield from _left(history, price, reference, "topup")

    def _announce(
        self, position: int, event: Link.Ended, left: dict[UUID, _Left], before: Sequence[Event]
    ) -> None:
        """Expect the events of this end in its plan changes, and in its eSIM if it was ordered."""
        link_id = event.originator_id
        for change_id in _changes(before):
            reference = Reference("plan_change", str(change_id))
            mine = [
                back
                for back in event.refunds
                if back.charge_id in left and left[back.charge_id].reference == reference
            ]
            if mine:
                missing = f"plan change {change_id} does not say what link {link_id} gives back"
                self._promises.make(position, (PlanChange.Returned, change_id), mine, missing)
        placed = next((each for each in before if isinstance(each, Link.OrderPlaced)), None)
        if placed is not None:
            missing = f"link {link_id} was taken back with an eSIM that is still reserved for it"
            self._promises.make(position, (Esim.Released, link_id), placed.iccid, missing)

    def check_change(self, event: PlanChange.Returned) -> Iterator[str]:
        if not self._promises.keep((PlanChange.Returned, event.originator_id), event.refunds):
            yield f"plan change {event.originator_id} gives back what no end of its link says"


def _changes(history: Sequence[Event]) -> list[UUID]:
    return [each.change_id for each in history if isinstance(each, Link.ChangeOpened)]


def _is_earlier(event: Event) -> bool:
    return not isinstance(event, PlanChange.Returned)


def _left(
    history: Sequence[Event], price: PaidPrice, reference: Reference, kind: ChargeKind
) -> Iterator[_Left]:
    _, micros = left_of(history, price.transaction_id)
    if micros:
        yield _Left(price, micros, reference, kind)
