"""The replies about a wallet and its transactions, with examples."""

from typing import Annotated, Final

from app.http.edge.paging import Page, PageMeta
from app.http.edge.replies import JOB_ID, TRANSACTION_ID, example
from projections.engine.shape import Amount, Currency, Shape, means
from projections.models.transactions import Reference, Transaction


class Wallet(Shape):
    """A balance."""

    balance: Annotated[Amount, means("What the wallet holds.")]
    currency: Currency


class TransactionPage(Page[Transaction]):
    """Transactions."""


_ENTRY: Final = Transaction(
    id=TRANSACTION_ID,
    sequence=7,
    kind="bulk_lookup",
    amount="5.00",
    direction="debit",
    currency="USD",
    charged_at="2026-11-21T03:04:05.100Z",
    plan_name=None,
    description="Bulk number lookup",
    reference=Reference("job", str(JOB_ID)),
    metadata={"count": 1000, "price_per_lookup": "0.005"},
    balance_after="87.50",
    position=4711,
)
WALLET: Final = example("The balance.", Wallet("87.50", "USD"))
TRANSACTION: Final = example("The transaction.", _ENTRY)
TRANSACTION_PAGE: Final = example(
    "A page of transactions.",
    TransactionPage([_ENTRY], PageMeta(total=7, per_page=1, current_page=1, last_page=7)),
)
