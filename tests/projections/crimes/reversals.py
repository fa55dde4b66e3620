"""What breaks the invariants of reversals, of what is owed after them, and of payouts."""

from collections.abc import Sequence
from typing import Any

from domain.accounts.approvals import Proposal
from domain.accounts.wallet import Payout, Reversal
from domain.log.aggregate import Event
from tests.projections.crimes.operators import ABOVE, LIMIT, approved, by, covered
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger

PAID_IN = 500_000  # What a deposit of the forger is.


def paid_in(forger: LinkForger, *references: str) -> LinkForger:
    for each in references or ("bank-2",):
        forger.write(*forger.deposit(each))
    return forger


def reversed_by(forger: LinkForger, micros: int = PAID_IN, deposit: str = "bank-2") -> int:
    """Reverse a deposit by the rules of the wallet; return the position of the reversal."""
    made, entries = forger.outgoing(Reversal, micros, deposit=deposit)
    position = forger.write(made)
    forger.write(*entries)
    return position


def a_reversal_twice(forger: LinkForger) -> int:
    reversed_by(paid_in(forger))
    made, entries = forger.outgoing(Reversal, 1, deposit="bank-2")
    position = forger.write(forged(made, originator_version=2))
    forger.write(*entries)
    return position


def a_reversal_of_play_money(forger: LinkForger) -> int:
    forger.write(*forger.play_money("played"))
    return reversed_by(forger, deposit="played")


def owing(forger: LinkForger, micros: int = 100_000) -> LinkForger:
    """Reverse a deposit of which so much is lacking then."""
    spent, entries = paid_in(forger).outgoing(Payout, 1_000_000 + micros)
    forger.write(spent, *entries)
    reversed_by(forger)
    assert forger.wallet.claim_micros == micros
    return forger


def lacking(forger: LinkForger) -> tuple[Event, Sequence[Any]]:
    """A reversal of which something is lacking, and both of its entries, none written yet."""
    spent, entries = paid_in(forger).outgoing(Payout, 1_100_000)
    forger.write(spent, *entries)
    return forger.outgoing(Reversal, PAID_IN, deposit="bank-2")


def more_is_owed(forger: LinkForger) -> int:
    """More than is lacking; every balance adds up."""
    made, (claim, entry) = lacking(forger)
    facts = {"amount_micros": 150_000, "balance_micros": 550_000, "claim_micros": 150_000}
    forger.write(made, forged(claim, **facts))
    return forger.write(forged(entry, balance_micros=50_000, claim_micros=150_000))


def a_claim_that_nothing_follows(forger: LinkForger) -> int:
    _, (claim, _) = lacking(forger)
    return forger.write(claim)


def paid(forger: LinkForger, micros: int = 60_000) -> tuple[Any, Any, Any]:
    """A deposit into a wallet that owes something, its entry, and what settles the claim."""
    made, (entry, settled) = owing(forger).paid_in("bank-3", micros)
    return made, entry, settled


def settled_by_less(forger: LinkForger) -> int:
    made, entry, settled = paid(forger)
    forger.write(made, entry)
    facts = {"amount_micros": -50_000, "balance_micros": 10_000, "claim_micros": 50_000}
    return forger.write(forged(settled, **facts))


def settled_by_nothing(forger: LinkForger) -> int:
    made, entry, _ = paid(forger)
    return forger.write(made, entry)


def settled_after_a_purchase(forger: LinkForger) -> int:
    made, entry, _ = paid(forger, 160_000)
    forger.write(made, entry)
    forger.wallet.balance_micros, forger.wallet.sequence = 160_000, entry.sequence
    forger.wallet.claim_micros = 100_000
    lookup = forger.lookup()
    forger.write(lookup)
    return forger.write(forger.charge_for(lookup))


def settled_without_a_payment(forger: LinkForger) -> int:
    """Nothing has come in, so it takes what the wallet does not have."""
    _, entry, settled = paid(forger)
    return forger.write(forged(settled, sequence=entry.sequence, balance_micros=-60_000))


def a_forgotten_claim(forger: LinkForger) -> int:
    made, entry, _ = paid(forger)
    forger.write(made)
    return forger.write(forged(entry, claim_micros=None))


def a_limit_that_forgets_the_claim(forger: LinkForger) -> int:
    owing(forger).wallet.limit_spending(None, forger.cause)
    (limited,) = forger.wallet.collect_events()
    return forger.write(forged(limited, claim_micros=None))  # type: ignore[type-var]  # an event


def a_payout_of_more_than_there_is(forger: LinkForger) -> int:
    forger.wallet.balance_micros += 1
    made, (entry,) = forger.outgoing(Payout, 1_000_001)
    forger.write(made)
    return forger.write(forged(entry, balance_micros=-1))


def a_payout_while_something_is_owed(forger: LinkForger) -> int:
    owing(forger).wallet.balance_micros = 1
    made, (entry,) = forger.outgoing(Payout, 1)
    forger.write(made)
    return forger.write(forged(entry, balance_micros=-1))


def above_the_limit(forger: LinkForger, kind: Any, **facts: Any) -> int:
    covered(paid_in(forger)).cause = by(forger, 2)
    made, entries = forger.outgoing(kind, LIMIT + 1, **facts)
    position = forger.write(made)
    forger.write(*entries)
    return position


def another_deposit_than_was_approved(forger: LinkForger) -> int:
    covered(paid_in(forger, "bank-2", "bank-3"))
    owner, cause = forger.organization_id, by(forger, 2)
    day = cause.at.date()
    facts: dict[str, Any] = {"reference": "r-1", "reason": "why", "value_date": day}
    of = Reversal.id_of(owner, "bank-2")
    proposal = Proposal.of(
        cause,
        "reversal",
        *(of, "r-1"),
        organization_id=owner,
        amount_micros=LIMIT + 1,
        deposit="bank-2",
        **facts,
    )
    forger.write(proposal.pending_events[0])
    forger.write(approved(proposal, by(forger, 3)))
    forger.cause = by(forger, 3)
    made, entries = forger.outgoing(Reversal, LIMIT + 1, deposit="bank-3", **facts)
    position = forger.write(made)
    forger.write(*entries)
    return position


OTHERWISE = "a claim is opened or settled otherwise than the entry beside it asks for"
MORE = "reverses more than the deposit was, or what was reversed or never paid in"
CRIMES: Crimes = [
    (lambda f: reversed_by(paid_in(f), PAID_IN + 1), MORE),
    (a_reversal_twice, MORE),
    (a_reversal_twice, "begins again, or with something else"),
    (lambda f: reversed_by(f, deposit="never"), MORE),
    (a_reversal_of_play_money, MORE),
    (lambda f: f.write(lacking(f)[0]), ", which never comes"),
    (a_claim_that_nothing_follows, ", which never comes"),
    (more_is_owed, OTHERWISE),
    (settled_by_less, OTHERWISE),
    (settled_by_nothing, ", which never comes"),
    (settled_after_a_purchase, OTHERWISE),
    (settled_without_a_payment, OTHERWISE),
    (a_forgotten_claim, "it states another claim than"),
    (a_limit_that_forgets_the_claim, "it states another claim than"),
    (a_payout_of_more_than_there_is, "its balance is below zero"),
    (a_payout_while_something_is_owed, "its balance is below zero"),
    (lambda f: above_the_limit(f, Payout), ABOVE),
    (lambda f: above_the_limit(f, Reversal, deposit="bank-2"), ABOVE),
    (another_deposit_than_was_approved, ABOVE),
]
