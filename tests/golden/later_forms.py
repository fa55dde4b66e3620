"""Events with the optional fields that they have got since their golden file was written.

Each form has a name and a file of its own, such as `link.activated.1+cost.json`. The file without
a name shows that the field is left out where it is None.
"""

from datetime import UTC, datetime
from typing import Any, cast

from eventsourcing.domain import AggregateEvent
from msgspec.structs import replace

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.organization import ApiClient, Organization
from domain.accounts.spending import Spending
from domain.accounts.wallet import Adjustment, Deposit, Wallet
from domain.catalogue.plan import LaterPrice, Plan
from domain.cost import Cost
from domain.finance.month import Month
from domain.links.bought_plan import TakenOver
from domain.links.link import Link
from domain.links.plan_change import Addition, PlanChange
from domain.log.aggregate import Event
from domain.lookups.bulk_job import Asked, BulkJob
from domain.lookups.number_lookup import NumberLookup
from domain.webhooks.endpoint import WebhookEndpoint
from tests.golden.building import CHARGE, PRICE, SEALED, STREAM
from tests.golden.examples import EVENTS, TERMS
from tests.golden.link_examples import ACTIVATION, PLAN

SPENDING = Spending(50_000_000, "2026-03", -1)
COST = Cost(2_100_000, "EUR")
TOLD = Cost(2_099_999, "USD", "order-ä-7", estimated=False)
COSTLY_TERMS = replace(TERMS, cost=COST, network="bics")
LATER_TERMS = replace(TERMS, later_prices=[LaterPrice(datetime(2027, 1, 1, tzinfo=UTC), 5_000_000)])
UNPRICED_TERMS = replace(TERMS, retail_price_micros=0, unpriced=True)
BOUGHT_AT = datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)
OTHER = TakenOver(ACTIVATION, PLAN, BOUGHT_AT, "addon-2")
NOTICES = ["identity_check", "starts_at_installation", "voice_and_text", "manual_apn"]
NOTICED_PLAN = replace(PLAN, notices=NOTICES)
COSTLY_PLAN = replace(PLAN, cost=COST, network="bics")


def _with(kind: type[AggregateEvent], /, **facts: Any) -> Event:
    """Return the first example of a kind with some facts changed."""
    known: dict[type, Event] = {type(each): each for each in reversed(EVENTS)}
    return cast("Event", kind(**{**vars(known[kind]), **facts}))


LATER_FORMS: tuple[tuple[str, Event], ...] = (
    ("reason", _with(Wallet.Refunded, reason="provisioning_failed")),
    *(
        ("limited", _with(kind, spending=SPENDING))
        for kind in (
            Wallet.Deposited,
            Wallet.Adjusted,
            Wallet.Charged,
            Wallet.Refunded,
            Wallet.SpendingLimited,
        )
    ),
    ("low", _with(Organization.LowBalanceThresholdSet, balance_micros=9_750_000, currency="EUR")),
    ("ends", _with(ApiClient.SecretRotated, kept_until=datetime(2026, 3, 2, tzinfo=UTC))),
    ("key", _with(WebhookEndpoint.Registered, key_id="0123456789abcdef" * 2)),
    ("key", _with(WebhookEndpoint.SecretRotated, key_id="0123456789abcdef" * 2)),
    ("ended", _with(ApprovalLimit.Set, above_micros=None)),
    ("covers", _with(ApprovalLimit.Set, covers="people")),
    ("approved", _with(Deposit.Made, proposal=STREAM)),
    ("approved", _with(Adjustment.Made, proposal=STREAM)),
    (
        "operator",
        _with(
            Proposal.Made,
            kind="operator",
            organization_id=None,
            amount_micros=None,
            reference=None,
            subject="finance.anna",
            may=["money", "keys"],
        ),
    ),
    (
        "refund",
        _with(
            Proposal.Made,
            kind="refund",
            reason="A complaint, half of it",
            transaction_id=CHARGE,
            charged_for=STREAM,
            metadata={"link_id": str(STREAM)},
        ),
    ),
    (
        "limit",
        _with(
            Proposal.Made, kind="limit", organization_id=None, amount_micros=None, reference=None
        ),
    ),
    *(
        ("actor", _with(kind, actor="operator:5"))
        for kind in (
            BulkJob.Cancelled,
            Link.StatusRequested,
            Link.Suspended,
            Link.Reactivated,
            Link.EndRequested,
            Link.Ended,
        )
    ),
    ("operator", _with(WebhookEndpoint.Disabled, reason="operator", actor="operator:5")),
    ("cost", _with(NumberLookup.Answered, source="live", cost=COST)),
    ("cost", _with(BulkJob.ItemsCompleted, asked=[Asked("offline", 1), Asked("far", 1, COST)])),
    ("cached", _with(BulkJob.ItemsCompleted, asked=[])),
    ("cost", _with(Plan.Published, terms=COSTLY_TERMS)),
    ("cost", _with(Plan.Changed, terms=COSTLY_TERMS)),
    ("later", _with(Plan.Published, terms=LATER_TERMS)),
    ("later", _with(Plan.Changed, terms=LATER_TERMS)),
    ("unpriced", _with(Plan.Published, terms=UNPRICED_TERMS, enabled=False)),
    ("notices", _with(Plan.Published, terms=replace(TERMS, notices=NOTICES))),
    ("notices", _with(Plan.Changed, terms=replace(TERMS, notices=NOTICES))),
    ("notices", _with(Link.Requested, plan=NOTICED_PLAN)),
    ("notices", _with(Link.Activated, plan=NOTICED_PLAN)),
    ("notices", _with(Link.PlanAdded, plan=NOTICED_PLAN)),
    (
        "notices",
        _with(PlanChange.Requested, additions=[Addition(ACTIVATION, NOTICED_PLAN, PRICE)]),
    ),
    ("cost", _with(Link.Requested, plan=COSTLY_PLAN)),
    ("unawaited", _with(Link.Requested, unawaited=True)),
    ("cost", _with(Link.Activated, plan=COSTLY_PLAN, cost=TOLD)),
    *(
        ("sealed_name", _with(kind, name=None, sealed_name=SEALED))
        for kind in (Link.Requested, Link.Imported, Link.Activated, Link.Renamed)
    ),
    ("taken_over", _with(Link.Activated, bought_at=BOUGHT_AT, more=[OTHER])),
    ("cost", _with(Link.PlanAdded, plan=COSTLY_PLAN, cost=TOLD)),
    (
        "cost",
        _with(PlanChange.Requested, additions=[Addition(ACTIVATION, COSTLY_PLAN, PRICE)]),
    ),
    ("actor", _with(Month.Closed, actor="os:ærø")),
)
