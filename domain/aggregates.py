"""Every kind of aggregate; importing this module makes every topic of the log known."""

from collections.abc import Iterable, Iterator

from domain.accounts.ledger import Ledger
from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.operators import Operator
from domain.accounts.organization import ApiClient, Organization
from domain.accounts.providers import Provider
from domain.accounts.wallet import Adjustment, Deposit, Wallet
from domain.catalogue.plan import Plan
from domain.finance.month import Month
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event, Root
from domain.log.discontinuity import Discontinuity
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from domain.webhooks.endpoint import WebhookEndpoint, WebhookList, WebhookRequest

AGGREGATES: tuple[type[Root], ...] = (
    Wallet,
    Deposit,
    Adjustment,
    NumberLookup,
    BulkJob,
    Organization,
    ApiClient,
    Operator,
    Provider,
    Plan,
    Link,
    Esim,
    LostOrder,
    PlanChange,
    MonthlyFee,
    Discontinuity,
    Ledger,
    Month,
    WebhookEndpoint,
    WebhookList,
    WebhookRequest,
)


def topics_but(uses: Iterable[type[Event]]) -> frozenset[str]:
    """Return the topics of all events except of these kinds."""
    return frozenset(_topics(Event)).difference(*map(_topics, uses))


def _topics(kind: type[Event]) -> Iterator[str]:
    if hasattr(kind, "TOPIC"):
        yield kind.TOPIC
    for each in kind.__subclasses__():
        yield from _topics(each)
