"""What is right in everything but an id that follows from its facts: so it could happen twice."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.currency import Ledger
from domain.accounts.organization import ApiClient
from domain.accounts.prices import LookupPrice
from domain.accounts.providers import Provider
from domain.accounts.wallet import Payout, Reversal, Wallet
from domain.cause import Cause
from domain.finance.statement import Month
from domain.log.aggregate import Event, Root
from domain.log.discontinuity import Discontinuity
from tests.projections.crimes.adjustments import ANNA, waiting
from tests.projections.crimes.links import an_imported_link
from tests.projections.crimes.operators import registered
from tests.projections.crimes.orders import failed, lost_by
from tests.projections.crimes.webhooks import listing
from tests.projections.forgery import forged
from tests.projections.link_forgery import Crimes, LinkForger

NAMED = "follows from its facts"
# What begins each of these streams.
FIRST: dict[str, Callable[[LinkForger], Root | Event]] = {
    "wallet": lambda f: Wallet.open(uuid4(), "USD", f.cause),
    "ledger": lambda f: Ledger.begin(Ledger.Opened, f.cause, uuid4(), currency="USD"),
    "approval_limit": lambda f: ApprovalLimit.begin(ApprovalLimit.Opened, f.cause, uuid4()),
    "price": lambda f: LookupPrice.begin(LookupPrice.Opened, f.cause, uuid4()),
    **{
        f"proposal_of_a_{kind}": lambda f, kind=kind: proposed(f, kind)
        for kind in ("deposit", "adjustment", "refund", "reversal", "payout")
    },
    "adjustment_of_before": lambda f: waiting(
        f.organization_id, "c-9", Cause(f.cause.at, "r-1", ANNA)
    ),
    "adjustment": lambda f: f.adjustment(-5)[0],
    "month": lambda f: Month.close("2026-01", f.cause),
    "discontinuity": lambda f: Discontinuity.notice("b", 1, 2, f.cause),
    "provider": lambda f: Provider.begin(Provider.Registered, f.cause, uuid4(), name="twilio"),
    "client": lambda f: ApiClient.register(
        "cl_1", f.cause, organization_id=None, scopes=[], secret_hash="h"
    ),
    "webhook_list": listing,
    "deposit": lambda f: f.deposit()[0],
    "reversal": lambda f: f.outgoing(Reversal, 5, deposit="bank-1")[0],
    "payout": lambda f: f.outgoing(Payout, 5)[0],
    "lost_order": lambda f: lost_by(f, failed(f)),
    "fee": lambda f: f.fee()[1],
    "esim": lambda f: f.reservation(f.requested("0"))[1],
    "operator": lambda f: registered(1, [], f.cause),
}


def proposed(forger: LinkForger, kind: Any) -> Proposal:
    """Let something wait whose stream follows from its facts; here it does not."""
    facts: dict[str, Any] = {"reference": "r-1", "amount_micros": 5}
    if kind == "refund":
        facts |= {"transaction_id": uuid4(), "charged_for": uuid4(), "metadata": {}}
    if kind == "reversal":
        facts["deposit"] = "bank-1"
    return Proposal.of(forger.cause, kind, organization_id=forger.organization_id, **facts)


def elsewhere(name: str, forger: LinkForger) -> int:
    made = FIRST[name](forger)
    (event,) = [made] if isinstance(made, Event) else made.collect_events()
    return forger.write(forged(event, originator_id=uuid4()))


CRIMES: Crimes = [
    (partial(elsewhere, each), NAMED if each != "operator" else "does not have the next number")
    for each in FIRST
]
CRIMES += [
    (lambda f: an_imported_link(f, "8988247000000000017"), NAMED),
    (lambda f: f.write(forged(f.job().created, originator_id=uuid4())), NAMED),
]
