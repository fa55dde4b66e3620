"""What breaks the invariants of invoices and of what the bank has moved."""

from typing import Any
from uuid import UUID

from domain.finance.settlement import Settlement
from domain.ids import derive_id
from tests.projections.crimes.operators import by, staffed
from tests.projections.crimes.reversals import PAID_IN, paid_in
from tests.projections.link_forgery import Crimes, LinkForger

NOTHING = "it settles, or takes back, what is not there, or another amount"
COUNTED = "it is counted as if it had been booked before"


def booked(forger: LinkForger, **changes: Any) -> int:
    """Book a deposit of the forger, in which something may differ; return the position."""
    owner = forger.organization_id
    facts: dict[str, Any] = {
        "settles": derive_id("transaction", derive_id("deposit", owner, "bank-2")),
        "provider": None,
        "reference": "bank-2",
        "number": 0,
        "organization_id": owner,
        "amount_micros": PAID_IN,
        "known_micros": 0,
        "currency": "USD",
        "value_date": forger.cause.at.date(),
        **changes,
    }
    named = [facts[name] for name in ("settles", "provider", "reference", "number")]
    stream_id = Settlement.id_of(*named)
    made = Settlement.begin(Settlement.Booked, forger.cause, stream_id, **facts)
    return forger.write(*made.collect_events())


def invoiced(forger: LinkForger, number: int = 0, micros: int = 700) -> UUID:
    """Book an invoice, or take it back; return its stream."""
    more = {"amount_micros": micros, "known_micros": 600, "currency": "EUR"}
    named: dict[str, Any] = {"settles": None, "provider": "far", "reference": "INV-7"}
    booked(forger, **named, number=number, organization_id=None, **more)
    return Settlement.id_of(*named.values(), number)


def paying(forger: LinkForger, micros: int = -700, **changes: Any) -> int:
    facts: dict[str, Any] = {"settles": Settlement.id_of(None, "far", "INV-7", 0)}
    facts |= {"provider": "far", "reference": "INV-7", "organization_id": None, "currency": "EUR"}
    return booked(forger, **{**facts, "amount_micros": micros, **changes})


def taken_back_and_paid(forger: LinkForger) -> int:
    invoiced(forger)
    invoiced(forger, 1, -700)
    return paying(forger)


def paid_and_taken_back(forger: LinkForger) -> int:
    invoiced(forger)
    paying(forger)
    invoiced(forger, 1, -700)
    return forger.log.head()


def twice(forger: LinkForger) -> int:
    booked(paid_in(forger))
    booked(forger, number=1, amount_micros=-PAID_IN)
    booked(forger, number=2)
    return booked(forger, number=3, amount_micros=PAID_IN)


def without_the_right(forger: LinkForger) -> int:
    staffed(paid_in(forger))
    forger.cause = by(forger, 2)
    return booked(forger)


CRIMES: Crimes = [
    (booked, NOTHING),  # No deposit has this reference.
    (lambda f: booked(paid_in(f), amount_micros=PAID_IN - 1), NOTHING),
    (lambda f: booked(paid_in(f), currency="EUR"), NOTHING),
    (lambda f: booked(paid_in(f), provider="far"), NOTHING),
    (lambda f: booked(paid_in(f), reference="bank-3"), NOTHING),
    (lambda f: booked(paid_in(f), settles=None), NOTHING),  # An invoice of no provider.
    (
        lambda f: booked(paid_in(f), organization_id=None, provider=str(f.organization_id)),
        NOTHING,
    ),
    (twice, NOTHING),
    (lambda f: booked(paid_in(f), number=1, amount_micros=-PAID_IN), NOTHING),
    (lambda f: booked(paid_in(f), number=2), COUNTED),
    (taken_back_and_paid, NOTHING),
    (paid_and_taken_back, NOTHING),
    (lambda f: (invoiced(f), paying(f, -699))[1], NOTHING),
    (lambda f: (invoiced(f), paying(f, provider="near"))[1], NOTHING),
    (lambda f: (invoiced(f), invoiced(f, 2), f.log.head())[2], COUNTED),
    (without_the_right, "without the right audit"),
]
