"""Every kind of aggregate; importing this module makes every topic of the log known."""

from collections.abc import Iterable
from functools import cache

from domain.accounts.approvals import ApprovalLimit, Proposal
from domain.accounts.currency import Ledger
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.operator_acts import Erasure, OperatorAct
from domain.accounts.operators import Operator
from domain.accounts.organization import ApiClient, Organization, SecretRotation
from domain.accounts.prices import LookupPrice
from domain.accounts.providers import Provider
from domain.accounts.wallet import BOOKINGS, Wallet
from domain.catalogue.plan import Plan
from domain.finance.settlement import Settlement
from domain.finance.statement import Month
from domain.links.esim import Esim
from domain.links.handover import Handover
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event, Root, kinds_below
from domain.log.discontinuity import Discontinuity
from domain.log.origin import LogOrigin
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from domain.webhooks.endpoint import WebhookEndpoint, WebhookList, WebhookRequest

AGGREGATES: tuple[type[Root], ...] = (
    Wallet,
    *BOOKINGS.values(),
    ApprovalLimit,
    LookupPrice,
    Proposal,
    NumberLookup,
    BulkJob,
    Organization,
    ApiClient,
    SecretRotation,
    Operator,
    OperatorAct,
    Provider,
    Plan,
    Link,
    Handover,
    Esim,
    LostOrder,
    PlanChange,
    MonthlyFee,
    Discontinuity,
    LogOrigin,
    Ledger,
    Month,
    Settlement,
    WebhookEndpoint,
    WebhookList,
    WebhookRequest,
    Erasure,
)


def topics_but(uses: Iterable[type[Event]]) -> frozenset[str]:
    """Return the topics of all events except those of these kinds."""
    return _topics_of(Event).difference(*map(_topics_of, uses))


@cache
def _topics_of(kind: type[Event]) -> frozenset[str]:
    return frozenset(each.TOPIC for each in (kind, *kinds_below(kind)) if hasattr(each, "TOPIC"))
