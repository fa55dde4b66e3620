"""What operators book from files: a provider's invoice, and what the bank has moved."""

from collections.abc import Sequence
from datetime import date
from typing import Any
from uuid import UUID

from domain.cause import Cause
from domain.errors import NotPossible
from domain.log.aggregate import ByOperator, Created, Root, itself, sets
from domain.log.log import Log, retry_on_conflict

# What a booking is named by, and what else it says.
NAMED = ("settles", "provider", "reference")
FACTS = (*NAMED, "organization_id", "amount_micros", "known_micros", "currency", "value_date")

OTHER = "the invoice was booked with another amount, so take it back first"
PAID = "the invoice is paid, so take back the payment first"
GONE = "the invoice was taken back"


class Settlement(Root):
    """One booking of an invoice or of the bank, or the one that takes it back."""

    TOPIC = "settlement"

    class Booked(Created, ByOperator):
        """The bank has moved `amount_micros`, below zero for what it paid.

        `settles` is the transaction of the wallet's entry, or the stream of the invoice, that this
        was for. None: it is an invoice of that amount, for work of which the log knew
        `known_micros`. An odd `number` takes back the booking before it: all has the other sign.
        """

        TOPIC = "settlement.booked"
        SETS = sets(booked=itself)

        settles: UUID | None
        provider: str | None
        reference: str
        number: int
        organization_id: UUID | None
        amount_micros: int
        known_micros: int
        currency: str
        value_date: date

    booked: Booked


def settle(log: Log, given: Sequence[Any], cause: Cause, *, back: bool = False) -> bool:
    """Book by `FACTS`, or take `back` what they name; False if that was done before.

    Raises NotPossible for an invoice of another amount, to take one back that is paid, or to pay
    one that was taken back. So that none of it comes between, a caller holds a lock of commands.
    """
    facts, named = dict(zip(FACTS, given, strict=True)), given[: len(NAMED)]
    amount = [facts[name] for name in ("amount_micros", "currency")]

    def attempt() -> bool:
        stands, number = _standing(log, *named)
        if (stands is not None) is not back:
            if stands is not None and [stands.amount_micros, stands.currency] != amount:
                raise NotPossible(f"{OTHER}: {stands.reference}")
            return False
        if stands is not None:
            if stands.settles is None and _standing(log, stands.originator_id, *named[1:])[0]:
                raise NotPossible(f"{PAID}: {stands.reference}")
            micros = {name: -getattr(stands, name) for name in ("amount_micros", "known_micros")}
            facts.update(micros, currency=stands.currency)
        elif facts["settles"] is not None and facts["provider"] is not None:
            invoice = _standing(log, None, *named[1:])[0]
            if invoice is None or invoice.originator_id != facts["settles"]:
                raise NotPossible(f"{GONE}: {facts['reference']}")
        stream_id = Settlement.id_of(*named, number)
        log.append(Settlement.begin(Settlement.Booked, cause, stream_id, number=number, **facts))
        return True

    return retry_on_conflict(attempt)


def _standing(log: Log, *named: object) -> tuple[Settlement.Booked | None, int]:
    """Return the booking that was not taken back, if there is one, and the number of the next."""
    number, newest = 0, None
    while (found := log.find(Settlement, Settlement.id_of(*named, number))) is not None:
        number, newest = number + 1, found.booked
    return (newest if number % 2 else None), number
