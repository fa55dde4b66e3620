"""What the tests of the domain are made of: one organization, its moments and its money."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from domain.accounts.committer import Committer
from domain.accounts.paid_price import PaidPrice
from domain.accounts.wallet import Adjustment, Charge, Deposit, Reference, Refund, Wallet, wallet_id
from domain.cause import Cause
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from domain.money import parse_amount
from domain.personal import Sealed

ORGANIZATION = UUID("0d9c8f3e-58f5-4f0c-9c3e-2a4b8f1d7e60")
TRANSACTION = UUID("7a1e5c20-93b4-4d6f-8e2a-1c0b9d8f7e6a")
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def cause(minute: int = 0, request_id: str = "request-1") -> Cause:
    return Cause(START + timedelta(minutes=minute), request_id)


def charge(amount: str, **fields: Any) -> Charge:
    """A charge with an id of its own, as every command makes one."""
    given = {
        "transaction_id": uuid4(),
        "kind": "lookup",
        "currency": "EUR",
        "reference": Reference("lookup", "1"),
        **fields,
    }
    return Charge(amount_micros=parse_amount(amount), description="Number lookup", **given)


def refund(amount: str, charge_id: UUID) -> Refund:
    return Refund(
        transaction_id=uuid4(),
        charge_id=charge_id,
        amount_micros=parse_amount(amount),
        currency="EUR",
        reference=Reference("job", "1"),
        description="Failed items",
        reason="lookup_unavailable",
    )


def adjustment(micros: int, reason: str = "a correction", reference: str = "") -> Adjustment:
    """A correction with a reference of its own."""
    reference = reference or str(uuid4())
    return Adjustment.make(ORGANIZATION, reference, micros, cause(), reason=reason)


def lookup(stream_id: UUID | None = None, now: Cause | None = None, **facts: Any) -> NumberLookup:
    now = now or cause()
    given = {
        "organization_id": ORGANIZATION,
        "source": "live",
        "as_of": now.at,
        "provider": "offline",
        "price": PaidPrice(parse_amount("0.01"), "EUR", uuid4()),
        "personal": sealed(),
        **facts,
    }
    return NumberLookup.begin(NumberLookup.Answered, now, stream_id or uuid4(), **given)


def bulk_job(total: int, slice_size: int, price: str = "0.01", job: UUID | None = None) -> BulkJob:
    item_micros = parse_amount(price)
    paid = PaidPrice(item_micros * total, "EUR", TRANSACTION) if item_micros else None
    return BulkJob.create(
        job or uuid4(),
        cause(),
        organization_id=ORGANIZATION,
        total_count=total,
        slice_size=slice_size,
        item_price_micros=item_micros,
        price=paid,
        personal=sealed(),
    )


def sealed() -> Sealed:
    return Sealed("2026-03", b"sealed")


def open_wallet(log: Log, committer: Committer, amount: str, organization: UUID) -> UUID:
    """Open a wallet and pay an amount into it; return its stream."""
    log.append(Wallet.open(organization, "EUR", cause()))
    if parse_amount(amount):
        pay_in(committer, amount, organization)
    return wallet_id(organization)


def pay_in(committer: Committer, amount: str, organization: UUID = ORGANIZATION) -> int:
    deposit = Deposit.make(organization, str(uuid4()), parse_amount(amount), cause())
    return committer.commit(
        wallet_id(organization), lambda wallet: wallet.enter(deposit, "EUR", cause()), deposit
    )


def take(
    committer: Committer, amount: str, organization: UUID = ORGANIZATION, currency: str = "EUR"
) -> int:
    """Charge an amount for a lookup of its own."""
    return pay_for(committer, lookup(), amount, organization, currency)


def pay_for(
    committer: Committer,
    answer: NumberLookup,
    amount: str,
    organization: UUID = ORGANIZATION,
    currency: str = "EUR",
) -> int:
    """Charge an amount for this lookup."""
    charges = [charge(amount, currency=currency)]
    return committer.commit_entries(organization, charges, cause(), answer)
