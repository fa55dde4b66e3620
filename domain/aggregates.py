"""Every kind of aggregate: whoever imports this can resolve every topic of the log."""

from collections.abc import Iterable, Iterator

from domain.aggregate import Event, Root
from domain.bulk_job import BulkJob
from domain.discontinuity import Discontinuity
from domain.esim import Esim
from domain.ledger import Ledger
from domain.link import Link
from domain.monthly_fee import MonthlyFee
from domain.number_lookup import NumberLookup
from domain.organization import ApiClient, Organization
from domain.plan import Plan
from domain.plan_change import PlanChange
from domain.wallet import Adjustment, Deposit, Wallet

AGGREGATES: tuple[type[Root], ...] = (
    Wallet,
    Deposit,
    Adjustment,
    NumberLookup,
    BulkJob,
    Organization,
    ApiClient,
    Plan,
    Link,
    Esim,
    PlanChange,
    MonthlyFee,
    Discontinuity,
    Ledger,
)


def topics_but(uses: Iterable[type[Event]]) -> frozenset[str]:
    """Return the topics of all events but of these kinds."""
    return frozenset(_topics(Event)).difference(*map(_topics, uses))


def _topics(kind: type[Event]) -> Iterator[str]:
    if hasattr(kind, "TOPIC"):
        yield kind.TOPIC
    for each in kind.__subclasses__():
        yield from _topics(each)
