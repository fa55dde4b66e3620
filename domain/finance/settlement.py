"""What operators book from files: a provider's invoice, and what the bank has moved."""

from datetime import date
from typing import NamedTuple
from uuid import UUID

from domain.cause import Cause
from domain.errors import NotPossible
from domain.log.aggregate import ByOperator, Created, Root, itself, sets
from domain.log.log import Log, retried

OTHER = "the invoice was booked with another amount, so take it back first"
PAID = "the invoice is paid, so take back the payment first"
GONE = "the invoice was taken back"


class Settled(NamedTuple):
    """What a booking is for, by the names of `Settlement.Booked`."""

    settles: UUID | None = None
    provider: str | None = None
    reference: str = ""
    organization_id: UUID | None = None

    def stream_id(self, number: int) -> UUID:
        """Return the stream of this booking; odd numbers take back the one before."""
        return Settlement.id_of(self.settles, self.provider, self.reference, number)


class Booking(NamedTuple):
    """What is to be booked, by the names of `Settlement.Booked`."""

    of: Settled
    amount_micros: int
    known_micros: int
    currency: str
    value_date: date


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


@retried
def settle(log: Log, given: Booking, cause: Cause, *, back: bool = False) -> bool:
    """Book what is given, or take it `back`; False if that was done before.

    Raises NotPossible for an invoice of another amount, to take one back that is paid, or to pay
    one that was taken back. So that none of it comes between, a caller holds a lock of commands.
    """
    of, facts = given.of, given._asdict() | given.of._asdict()
    del facts["of"]
    stands, number = _standing(log, of)
    if (stands is not None) is not back:
        amount = given.amount_micros, given.currency
        if stands is not None and (stands.amount_micros, stands.currency) != amount:
            raise NotPossible(f"{OTHER}: {stands.reference}")
        return False
    if stands is not None:
        if stands.settles is None and _standing(log, of._replace(settles=stands.originator_id))[0]:
            raise NotPossible(f"{PAID}: {stands.reference}")
        micros = {name: -getattr(stands, name) for name in ("amount_micros", "known_micros")}
        facts.update(micros, currency=stands.currency)
    elif of.settles is not None and of.provider is not None:
        invoice = _standing(log, of._replace(settles=None))[0]
        if invoice is None or invoice.originator_id != of.settles:
            raise NotPossible(f"{GONE}: {of.reference}")
    its = of.stream_id(number)
    log.append(Settlement.begin(Settlement.Booked, cause, its, number=number, **facts))
    return True


def _standing(log: Log, of: Settled) -> tuple[Settlement.Booked | None, int]:
    """Return the booking that was not taken back, if there is one, and the number of the next."""
    number, newest = 0, None
    while (found := log.find(Settlement, of.stream_id(number))) is not None:
        number, newest = number + 1, found.booked
    return (newest if number % 2 else None), number
