"""The replies about a wallet and its transactions, with examples."""

from typing import Annotated, Any, Final
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from app.http.edge.paging import Page, PageMeta
from app.http.edge.replies import (
    JOB_ID,
    MORE_MAY_COME,
    TRANSACTION_ID,
    Amount,
    Currency,
    Moment,
    example,
    format_time,
    means,
    one_of,
)
from domain.accounts.paid_price import REFUND_REASONS
from domain.money import format_amount
from projections.models import transactions

REASON: Final = one_of("RefundReason", REFUND_REASONS, MORE_MAY_COME)
KIND: Final = one_of("TransactionKind", transactions.KINDS, MORE_MAY_COME)


class Wallet(Struct):
    """A balance."""

    balance: Annotated[Amount, means("What the wallet holds.")]
    currency: Currency


class Reference(Struct):
    """What money was for."""

    type: Annotated[str, means("What it names.", example="job")]
    id: Annotated[str, means("Its id.")]


class Transaction(Struct):
    """One entry of the wallet."""

    id: Annotated[UUID, means("The transaction.")]
    sequence: Annotated[int, means("1, 2, 3 … in each wallet, without a gap.")]
    kind: Annotated[str, means("What it was.", **KIND)]
    amount: Annotated[Amount, means("Never negative; `direction` says which way it went.")]
    direction: Annotated[
        str,
        means(
            "Whether it took from the balance or added to it.",
            **one_of("Direction", ["debit", "credit"]),
        ),
    ]
    currency: Currency
    charged_at: Annotated[Moment, means("When it was entered (UTC).")]
    plan_name: Annotated[str | None, means("The plan it paid for, if any.")]
    description: Annotated[str, means("The same, for people.")]
    reference: Reference
    metadata: Annotated[dict[str, Any], means("More about it, by kind.", additionalProperties=True)]
    balance_after: Annotated[Amount, means("What the wallet held then.")]
    position: Annotated[int, means("Its place in the event log: rising, with gaps.")]
    refund_of: Annotated[
        UUID | UnsetType, means("There on a refund: the transaction that it gives back.")
    ] = UNSET
    reason: Annotated[str | UnsetType, means("There on a refund: why it came.", **REASON)] = UNSET


class TransactionPage(Page[Transaction]):
    """Transactions."""


def show_wallet(balance_micros: int, currency: str) -> Wallet:
    """Return a balance as partners see it."""
    return Wallet(format_amount(balance_micros), currency)


def show_transaction(entry: transactions.Transaction) -> Transaction:
    """Return a transaction as partners see it."""
    return Transaction(
        id=entry.id,
        sequence=entry.sequence,
        kind=entry.kind,
        amount=format_amount(entry.amount_micros),
        direction=entry.direction,
        currency=entry.currency,
        charged_at=format_time(entry.charged_at),
        plan_name=entry.metadata.get("plan_name"),
        description=entry.description,
        reference=Reference(entry.reference.type, entry.reference.id),
        metadata=entry.metadata,
        balance_after=format_amount(entry.balance_micros),
        position=entry.position,
        refund_of=entry.refund_of or UNSET,
        reason=entry.reason or UNSET,
    )


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
