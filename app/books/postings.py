"""What events post to the accounts of the books, and the work of providers that costs something.

Accounts have the names that Beancount gives to their kinds. Deposits are an asset, of which what is
reversed and paid out is taken, as is what is owed for reversed deposits (claims); wallets are a
liability, charges income and refunds their contra account. What providers charge is an expense, and
a liability to them. What the bank has moved goes from deposits, or these liabilities, to the bank.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from domain.accounts.wallet import Wallet, kind_of, kind_refunded
from domain.catalogue.plan import SIMULATED
from domain.cost import Cost
from domain.finance.settlement import Settlement
from domain.links.bought_plan import BoughtPlan
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.log.aggregate import Event
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from projections.engine.read_model import Uses

WALLETS = "Liabilities:Wallets"
PLAY_MONEY, DEPOSITS, CLAIMS = "Assets:Sandbox-deposits", "Assets:Deposits", "Assets:Claims"
BANK = "Assets:Bank"
# What is opposite a wallet by the kind of its entry, where that is no charge and no refund.
BOOKED_ON = {"deposit": DEPOSITS, "reversal": DEPOSITS, "payout": DEPOSITS, "claim": CLAIMS}
BOOKED_ON |= {"sandbox_deposit": PLAY_MONEY, "adjustment": "Expenses:Adjustments"}
COSTLY: Uses = (
    NumberLookup.Answered,
    BulkJob.ItemsCompleted,
    Link.Activated,
    Link.PlanAdded,
    LostOrder.LeftOver,
    Link.LeftOver,
)
POSTED: Uses = (*COSTLY, Settlement.Booked)  # What posts and moves no wallet.
LEFT_OVER = (LostOrder.LeftOver, Link.LeftOver)  # Nobody uses these, and we pay for them.
_STRANGE = re.compile(r"[^A-Za-z0-9]+")


class Posting(NamedTuple):
    """An amount on an account, or what the account holds; above zero is a debit."""

    account: str
    currency: str
    micros: int


@dataclass(frozen=True, slots=True)
class Work:
    """`count` things that a provider has done; `cost` is for all, None if it is not known.

    `provider` is None for job items of earlier releases, some of which came from the cache.
    `reference` is the provider's id of the work; lookups have none.
    """

    provider: str | None
    count: int
    cost: Cost | None
    reference: str | None = None
    plan: BoughtPlan | None = None


def work_of(event: Event) -> list[Work]:
    """Return the work of providers that an event records; an answer from the cache is none."""
    match event:
        case NumberLookup.Answered():
            return [Work(event.provider, 1, event.cost)] if event.source == "live" else []
        case BulkJob.ItemsCompleted(asked=None):
            return [Work(None, len(event.indexes), None)]
        case BulkJob.ItemsCompleted():
            return [Work(each.provider, each.count, each.cost) for each in event.asked or ()]
        case Link.Activated() if event.bought_at is None:  # Else it was bought elsewhere.
            return [_bought(event.plan, event.cost, event.addon_id or event.endpoint_id)]
        case Link.PlanAdded() | Link.PlanLeftOver():
            return [_bought(event.plan, event.cost, event.addon_id)]
        case Link.EndpointLeftOver(attempt=1):  # Further attempts repeat the incident.
            return [_bought(event.plan, event.cost, event.endpoint_id)]
        case LostOrder.LeftOver():
            return [_bought(event.plan, event.cost, event.order_reference)]
        case Settlement.Booked(settles=None):  # What an invoice asks for beside known work.
            cost = Cost(event.amount_micros - event.known_micros, event.currency, estimated=False)
            return [Work(event.provider, 1, cost, event.reference)]
        case _:
            return []


def _bought(plan: BoughtPlan, cost: Cost | None, known_as: str | None) -> Work:
    reference = cost.reference if cost is not None else None
    return Work(plan.network or SIMULATED, 1, cost, reference or known_as, plan)


def opposite_of(entry: Wallet.Moved) -> Posting:
    match entry:
        case Wallet.Charged():
            account = f"Income:{word_of(entry.kind)}"
        case Wallet.Refunded():
            account = f"Income:Refunds:{word_of(kind_refunded(entry))}"
        case _:
            account = BOOKED_ON[kind_of(entry)]
    return Posting(account, entry.currency, entry.change_micros)


def wallet_of(number: str | None) -> str:
    return f"{WALLETS}:{number}" if number else WALLETS


def postings_of(event: Event) -> Iterator[tuple[Posting, Posting, str, str | None]]:
    """Yield two postings of an event that moves no wallet, what they are, and a reference.

    Work that is free, or whose cost is not known, posts nothing.
    """
    if isinstance(event, Settlement.Booked) and event.settles is not None:
        other = f"Liabilities:Providers:{word_of(event.provider)}" if event.provider else DEPOSITS
        unit, micros = event.currency, event.amount_micros
        yield Posting(BANK, unit, micros), Posting(other, unit, -micros), "Bank", event.reference
    for work in work_of(event):
        cost, name = work.cost, word_of(work.provider or "unknown")
        if cost is not None and cost.amount_micros:
            yield (
                Posting(f"Expenses:Providers:{name}", cost.currency, cost.amount_micros),
                Posting(f"Liabilities:Providers:{name}", cost.currency, -cost.amount_micros),
                "Provider cost, estimated" if cost.estimated else "Provider cost",
                work.reference,
            )


def word_of(name: str) -> str:
    """Return a name as a part of an account: `monthly_link_fee` is Monthly-link-fee."""
    return _STRANGE.sub("-", name).strip("-").capitalize()
