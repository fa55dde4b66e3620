"""The accounts of the books, by the names that Beancount gives to their kinds.

Deposits are an asset, wallets a liability, charges income and refunds their contra account. What
providers charge is an expense, and a liability to them.
"""

import re

from domain.accounts.wallet import Wallet, kind_refunded
from projections.audit.costs import Work

WALLETS = "Liabilities:Wallets"
_STRANGE = re.compile(r"[^A-Za-z0-9]+")

Side = tuple[str, int]  # Account and micro-units; above zero is a debit.


def other_side(entry: Wallet.Moved) -> Side:
    """Return the account opposite the wallet of an entry, and how much it changes."""
    match entry:
        case Wallet.Charged():
            return f"Income:{_word(entry.kind)}", -entry.amount_micros
        case Wallet.Refunded():
            return f"Income:Refunds:{_word(kind_refunded(entry))}", entry.amount_micros
        case Wallet.Deposited():
            return "Assets:Deposits", entry.amount_micros
        case _:
            return "Expenses:Adjustments", entry.amount_micros


def sides_of(work: Work) -> tuple[Side, ...]:
    """Return the expense and the liability for work; empty if it is free or its cost unknown."""
    micros, name = work.cost.amount_micros if work.cost else 0, _word(work.provider or "unknown")
    sides = (f"Expenses:Providers:{name}", micros), (f"Liabilities:Providers:{name}", -micros)
    return sides if micros else ()


def _word(name: str) -> str:
    """Return a name as a part of an account: `monthly_link_fee` is Monthly-link-fee."""
    return _STRANGE.sub("-", name).strip("-").capitalize()
