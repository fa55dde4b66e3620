"""One canonical example of every event of the log and of the wallet snapshot.

A new event class, or a new version of one, gets its example here and its file by
`python -m tests.golden.write`. The files are final: what is stored once must decode for ever, so
a class that is deleted or renamed keeps its example.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from domain import wallet_snapshot
from domain.aggregate import Event
from domain.bulk_job import BulkJob, ItemRefund
from domain.number_lookup import NumberLookup, Price
from domain.organization import ApiClient, Organization
from domain.ports import Sealed
from domain.wallet import Deposit, Reference, Wallet

ORGANIZATION = UUID("11111111-1111-4111-8111-111111111111")
STREAM = UUID("22222222-2222-4222-8222-222222222222")
TRANSACTION = UUID("33333333-3333-5333-8333-333333333333")
CHARGE = UUID("44444444-4444-5444-8444-444444444444")
AT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
SEALED = Sealed("2026-03", bytes(range(28)))
PRICE = Price(5_000, "EUR", TRANSACTION)
WHOLE_SECOND = AT.replace(microsecond=0)  # Written without a fraction.


def _event(event_class: Any, /, version: int = 2, at: datetime = AT, **facts: Any) -> Event:
    event: Event = event_class(
        originator_id=STREAM,
        originator_version=version,
        timestamp=at,
        request_id="request-ä€😀",
        **facts,
    )
    return event


def _created(event_class: type[Event], aggregate_topic: str, /, **facts: Any) -> Event:
    return _event(event_class, 1, originator_topic=aggregate_topic, **facts)


def _moved(event_class: type[Wallet.Moved], amount_micros: int, /, **facts: Any) -> Event:
    return _event(
        event_class,
        3,
        organization_id=ORGANIZATION,
        currency="EUR",
        sequence=2,
        transaction_id=TRANSACTION,
        amount_micros=amount_micros,
        balance_micros=999_999_999_999_999_999,
        reference=Reference("lookup", str(STREAM)),
        description='Number "lookup" – 1\n',
        metadata={"count": 3, "price_per_lookup": "0.005", "nested": [None, True, 1.5, {"ä": ""}]},
        **facts,
    )


def _job(event_class: type[Event], /, **facts: Any) -> Event:
    return _event(event_class, organization_id=ORGANIZATION, **facts)


EVENTS: tuple[Event, ...] = (
    _created(Wallet.Opened, "wallet", organization_id=ORGANIZATION, currency="EUR"),
    _moved(Wallet.Deposited, 12_500_000),
    _moved(Wallet.Adjusted, -1),
    _moved(Wallet.Charged, 5_000, kind="bulk_lookup"),
    _moved(Wallet.Refunded, 5_000, charge_id=CHARGE),
    _created(
        Deposit.Made,
        "deposit",
        organization_id=ORGANIZATION,
        reference="bank-1",
        amount_micros=12_500_000,
        transaction_id=TRANSACTION,
    ),
    _created(
        NumberLookup.Answered,
        "number_lookup",
        organization_id=ORGANIZATION,
        source="cache",
        as_of=AT - timedelta(days=1),
        provider="offline",
        price=PRICE,
        personal=SEALED,
    ),
    _created(
        BulkJob.Created,
        "bulk_job",
        organization_id=ORGANIZATION,
        total_count=3,
        slice_size=2,
        item_price_micros=0,
        price=None,
        personal=SEALED,
    ),
    _job(BulkJob.SliceStarted, slice_index=1, attempt=5),
    _job(BulkJob.ItemsCompleted, slice_index=0, indexes=[0, 1], personal=SEALED),
    _job(
        BulkJob.ItemsFailed,
        slice_index=1,
        indexes=[2],
        errors=["no answer"],
        refund=ItemRefund(5_000, TRANSACTION),
    ),
    _job(BulkJob.Finished, at=WHOLE_SECOND),
    _created(
        Organization.Registered,
        "organization",
        name="Ærø Telecom",
        price_micros=None,
        monthly_link_fee_micros=1_000_000,
    ),
    _event(Organization.Suspended),
    _event(Organization.Activated),
    _event(Organization.Deactivated),
    _event(Organization.PriceChanged, price_micros=5_000),
    _event(Organization.MonthlyLinkFeeChanged, monthly_link_fee_micros=0),
    _event(Organization.LookupSwitched, enabled=False),
    _created(
        ApiClient.Registered,
        "api_client",
        client_id="partner-1",
        organization_id=None,
        scopes=["lookup", "wallet"],
        secret_hash="hash-1",
    ),
    _event(
        ApiClient.SecretRotated, client_id="partner-1", secret_hash="hash-2", kept_hashes=["hash-1"]
    ),
    _event(ApiClient.Revoked, client_id="partner-1"),
)


def _snapshot_state() -> wallet_snapshot.WalletState:
    return wallet_snapshot.WalletState(
        organization_id=ORGANIZATION,
        currency="EUR",
        balance_micros=999_999_999_999_999_999,
        sequence=499,
        created_on=AT,
        modified_on=AT + timedelta(days=30),
    )


def snapshot_of(state: bytes) -> StoredEvent:
    """The row of a wallet snapshot with this state."""
    return StoredEvent(STREAM, 500, wallet_snapshot.TOPIC, state)


SNAPSHOT_STATE = _snapshot_state()
