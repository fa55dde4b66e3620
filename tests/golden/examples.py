"""One canonical example of every event of the log.

A new event class, or a new version of one, gets its example here and its file by
`python -m tests.golden.write`. The files are final: what is stored once must decode for ever, so
a class that is deleted or renamed keeps its example.
"""

from datetime import timedelta
from typing import Any

import msgspec

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.currency import Ledger
from domain.accounts.erasure import Erasure, Part
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.operator_acts import OperatorAct
from domain.accounts.operators import Operator as StaffOperator
from domain.accounts.organization import ApiClient, Organization
from domain.accounts.paid_price import Repayment
from domain.accounts.prices import LookupPrice
from domain.accounts.providers import Provider
from domain.accounts.refund_by_hand import Refundable
from domain.accounts.wallet import Adjustment, Deposit, Reference, Wallet
from domain.catalogue.plan import CountryCoverage, MobileOperator, Plan, PlanTerms, SponsorProfile
from domain.finance.month import Month
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.discontinuity import Discontinuity
from domain.log.origin import LogOrigin
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from domain.webhooks.endpoint import WebhookEndpoint, WebhookList, WebhookRequest
from tests.golden.building import (
    AT,
    CHARGE,
    ORGANIZATION,
    PRICE,
    SEALED,
    STREAM,
    TRANSACTION,
    WHOLE_SECOND,
    created,
    event,
)
from tests.golden.link_examples import LINK_EVENTS

TERMS = PlanTerms(
    name="Liechtenstein & Österreich 1.5 GB",
    provider_plan_id="li-1500mb-7d",
    retail_price_micros=4_500_001,
    currency="EUR",
    data_mb=1500,
    validity_days=7,
    coverage_type="regional",
    sponsor_profiles=[SponsorProfile("sp-1", "Ærø", "#1F6FEB")],
    coverage=[
        CountryCoverage("LI", [MobileOperator("FL1", ["4G", "5G"]), MobileOperator("Salt", [])]),
        CountryCoverage("AT", []),
    ],
)


def _moved(event_class: type[Wallet.Moved], amount_micros: int, /, **facts: Any) -> Event:
    return event(
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
    return event(event_class, organization_id=ORGANIZATION, **facts)


ASKED: dict[str, Any] = {"organization_id": ORGANIZATION, "endpoint_id": CHARGE}
ADJUSTED: dict[str, Any] = {
    "organization_id": ORGANIZATION,
    "reference": "c-2",
    "amount_micros": -5_000_000,
    "reason": "Paid twice – ä",
    "transaction_id": TRANSACTION,
}


def _by_hand(kind: type[Refundable], /, **facts: Any) -> Event:
    return event(
        kind.RefundedByHand,
        organization_id=ORGANIZATION,
        transaction_id=CHARGE,
        refund=Repayment(1, TRANSACTION),
        reference="ticket-ä-7",
        reason="A complaint, half of it",
        actor="operator:55555555-5555-5555-8555-555555555555",
        **facts,
    )


EVENTS: tuple[Event, ...] = (
    created(Ledger.Opened, "ledger", currency="EUR"),
    created(Wallet.Opened, "wallet", organization_id=ORGANIZATION, currency="EUR"),
    _moved(Wallet.Deposited, 12_500_000),
    _moved(Wallet.Adjusted, -1),
    _moved(Wallet.Charged, 5_000, kind="bulk_lookup"),
    _moved(Wallet.Refunded, 5_000, charge_id=CHARGE),
    event(
        Wallet.SpendingLimited,
        organization_id=ORGANIZATION,
        currency="EUR",
        sequence=2,
        balance_micros=12_500_000,
    ),
    created(
        Deposit.Made,
        "deposit",
        organization_id=ORGANIZATION,
        reference="bank-1",
        amount_micros=12_500_000,
        transaction_id=TRANSACTION,
    ),
    created(
        Deposit.Played,
        "deposit",
        organization_id=ORGANIZATION,
        reference="tests-1",
        amount_micros=12_500_000,
        transaction_id=TRANSACTION,
    ),
    created(
        Adjustment.Made,
        "adjustment",
        organization_id=ORGANIZATION,
        reference="c-1",
        amount_micros=-1,
        reason='Number "lookup" – 1\n',
        transaction_id=TRANSACTION,
        actor="os:ærø",
    ),
    created(
        NumberLookup.Answered,
        "number_lookup",
        organization_id=ORGANIZATION,
        source="cache",
        as_of=AT - timedelta(days=1),
        provider="offline",
        price=PRICE,
        personal=SEALED,
    ),
    created(
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
        refund=Repayment(5_000, TRANSACTION),
    ),
    _job(BulkJob.Finished, at=WHOLE_SECOND),
    _job(BulkJob.Cancelled, count=2, refund=Repayment(10_000, TRANSACTION)),
    *(_by_hand(each) for each in (NumberLookup, BulkJob, Link, MonthlyFee)),
    _by_hand(PlanChange, link_id=CHARGE),
    created(Adjustment.Proposed, "adjustment", **ADJUSTED, actor="operator:5"),
    event(Adjustment.Approved, **ADJUSTED, actor="operator:6"),
    event(Adjustment.Rejected, actor="operator:6"),
    created(ApprovalLimit.Opened, "approval_limit"),
    event(ApprovalLimit.Set, above_micros=100_000_000, actor="operator:5"),
    created(LookupPrice.Opened, "price"),
    event(LookupPrice.Set, amount_micros=5_000, currency="EUR", actor="operator:5"),
    created(
        Proposal.Made,
        "proposal",
        kind="deposit",
        organization_id=ORGANIZATION,
        amount_micros=12_500_000,
        reference="bank-1",
        actor="operator:5",
    ),
    event(Proposal.Approved, actor="operator:6"),
    event(Proposal.Granted, actor="operator:6"),
    event(Proposal.Used, actor="operator:5"),
    event(Proposal.Rejected, actor="operator:6"),
    created(
        StaffOperator.Registered,
        "operator",
        name="finance.anna",
        may=["money", "keys"],
        key_hash="0123456789abcdef" * 4,
        actor="os:ærø",
    ),
    event(
        StaffOperator.KeyRotated,
        key_hash="fedcba9876543210" * 4,
        actor="operator:55555555-5555-5555-8555-555555555555",
    ),
    event(
        StaffOperator.KeyRehashed,
        key_hash="0123456789abcdef" * 2 + ":" + "fedcba9876543210" * 4,
        actor="operator:55555555-5555-5555-8555-555555555555",
    ),
    event(StaffOperator.Revoked, actor="operator:55555555-5555-5555-8555-555555555555"),
    created(
        OperatorAct.Done,
        "operator_act",
        act="key.revoked",
        subject="signing key 2026-11",
        actor="operator:55555555-5555-5555-8555-555555555555",
    ),
    created(
        Erasure.Made,
        "erasure",
        organization_id=ORGANIZATION,
        parts=[Part("2026-02"), Part("2026-03.0001", [STREAM])],
        actor="operator:55555555-5555-5555-8555-555555555555",
    ),
    created(Provider.Registered, "provider", name="bics"),
    event(Provider.Drained, name="bics", actor="operator:55555555-5555-5555-8555-555555555555"),
    event(Provider.Resumed, name="bics", actor="operator:55555555-5555-5555-8555-555555555555"),
    created(
        Organization.Registered,
        "organization",
        name="Ærø Telecom",
        price_micros=None,
        monthly_link_fee_micros=1_000_000,
    ),
    event(Organization.Suspended),
    event(Organization.Activated),
    event(Organization.Deactivated),
    event(Organization.PriceChanged, price_micros=5_000),
    event(Organization.MonthlyLinkFeeChanged, monthly_link_fee_micros=0),
    event(Organization.LookupSwitched, enabled=False),
    event(Organization.LowBalanceThresholdSet, threshold_micros=12_500_000),
    event(Organization.RateLimitSet, per_minute=600, actor="os:ærø"),
    event(Organization.SpendingLimitSet, limit_micros=None, actor="os:ærø"),
    created(
        ApiClient.Registered,
        "api_client",
        client_id="partner-1",
        organization_id=None,
        scopes=["lookup", "wallet"],
        secret_hash="hash-1",
    ),
    event(
        ApiClient.SecretRotated, client_id="partner-1", secret_hash="hash-2", kept_hashes=["hash-1"]
    ),
    event(
        ApiClient.SecretRehashed,
        client_id="partner-1",
        old_hash="hash-2",
        secret_hash="0123456789abcdef0123456789abcdef:hash-3",
    ),
    event(ApiClient.Revoked, client_id="partner-1"),
    created(
        Plan.Published,
        "plan",
        organization_id=None,
        terms=TERMS,
        enabled=True,
        excluded_organizations=[ORGANIZATION],
    ),
    event(Plan.Changed, terms=msgspec.structs.replace(TERMS, provider_plan_id=None)),
    event(Plan.Disabled),
    event(Plan.Enabled),
    event(Plan.OrganizationExcluded, organization_id=ORGANIZATION),
    event(Plan.OrganizationIncluded, organization_id=ORGANIZATION),
    *LINK_EVENTS,
    created(Month.Closed, "month", month="2026-02"),
    created(
        WebhookEndpoint.Registered,
        "webhook_endpoint",
        organization_id=ORGANIZATION,
        personal=SEALED,
        events=None,
    ),
    _job(WebhookEndpoint.Changed, personal=SEALED, events=["job.finished"]),
    _job(WebhookEndpoint.SecretRotated, generation=2, previous_until=AT + timedelta(days=1)),
    _job(WebhookEndpoint.Disabled, reason="failing"),
    _job(WebhookEndpoint.Enabled),
    _job(WebhookEndpoint.Deleted),
    created(WebhookList.Opened, "webhook_list", organization_id=ORGANIZATION),
    _job(WebhookList.Added, endpoint_id=CHARGE),
    _job(WebhookList.Removed, endpoint_id=CHARGE),
    created(WebhookRequest.TestAsked, "webhook_request", **ASKED),
    created(
        WebhookRequest.RedeliveryAsked,
        "webhook_request",
        **ASKED,
        delivery_id=TRANSACTION,
        actor="os:ærø",
    ),
    created(
        WebhookRequest.RedeliveriesAsked,
        "webhook_request",
        **ASKED,
        since=AT,
        delivery_ids=[TRANSACTION, CHARGE],
        has_more=True,
    ),
    created(WebhookRequest.RotationAsked, "webhook_request", **ASKED, generation=2),
    created(
        Discontinuity.Noticed,
        "log",
        server="6b03f3c95a1d2e04/00000002/5f0c6f3e-8d4b-4c3e-9a55-6a7f0f1d2c3b",
        last_position=1_204,
        seen_position=1_211,
    ),
    created(LogOrigin.Fixed, "log_origin", origin="api.example.com"),
)
