"""The replies about a wallet and its transactions."""

from typing import Annotated

from app.http.edge.paging import Page
from projections.engine.shape import Amount, Currency, Shape, means
from projections.models.transactions import Transaction


class Wallet(Shape):
    """A balance."""

    balance: Annotated[Amount, means("What the wallet holds.")]
    currency: Currency


class TransactionPage(Page[Transaction]):
    """Transactions."""
