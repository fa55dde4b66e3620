"""The margin: revenue, refunds and the costs of providers, from the log alone in one pass.

Revenue is the sum of all charges; what is booked by itself does not count.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from app.books.postings import POSTED, Work, work_of
from domain.accounts.organization import Organization
from domain.accounts.wallet import Wallet, links_of
from domain.catalogue.plan import SIMULATED
from domain.finance.statement import Month, Months
from domain.links.link import Link
from domain.log.aggregate import Event
from domain.log.log import Log
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from domain.money import format_amount
from projections.engine.read_model import Uses
from projections.engine.reader import read_events
from projections.engine.rebuild import Progress, ignore_progress

By = Literal["day", "month", "org", "plan", "provider"]

MONEY: Uses = (Wallet.Moved, Month.Closed, *POSTED)
BESIDES: dict[By, Uses] = {  # Further events that decide the row of an entry.
    "org": (Organization.Registered,),
    "provider": (Link.Began, BulkJob.Created, BulkJob.Finished, BulkJob.Cancelled),
}
# These count in no row, but later entries refer to them.
REFERRED: Uses = (Organization.Registered, *BESIDES["provider"])


@dataclass(slots=True)
class Earned:
    """The sums of one row; costs by currency and whether they are estimated."""

    revenue_micros: int = 0
    refunds_micros: int = 0
    costs_micros: Counter[tuple[str, bool]] = field(default_factory=Counter)
    unknown: int = 0  # How many works of providers have no known cost.

    def add_work(self, work: Work) -> None:
        if work.cost is None:
            self.unknown += work.count
        else:
            key = work.cost.currency, work.cost.estimated
            self.costs_micros[key] += work.cost.amount_micros

    def add(self, other: "Earned") -> None:
        self.revenue_micros += other.revenue_micros
        self.refunds_micros += other.refunds_micros
        self.costs_micros.update(other.costs_micros)
        self.unknown += other.unknown

    def cost_micros(self, currency: str) -> int:
        return sum(micros for (its, _), micros in self.costs_micros.items() if its == currency)

    def formatted(self, currency: str) -> dict[str, Any]:
        left = self.revenue_micros - self.refunds_micros - self.cost_micros(currency)
        others = sorted({its for its, _ in self.costs_micros} - {currency})
        return {
            "revenue": format_amount(self.revenue_micros),
            "refunds": format_amount(self.refunds_micros),
            "cost": format_amount(self.cost_micros(currency)),
            "estimated": format_amount(self.costs_micros[currency, True]),
            "other_costs": [
                {"amount": format_amount(self.cost_micros(its)), "currency": its} for its in others
            ],
            "unknown": self.unknown,
            "margin": format_amount(left),
        }


class Providers:
    """Finds the provider behind an entry; remembers only what may still be needed."""

    def __init__(self, provider_of_lookup: Callable[[UUID], str | None]) -> None:
        self._provider_of_lookup = provider_of_lookup
        self._answered: dict[UUID, str] = {}  # By the transaction in the same commit.
        self._networks: dict[UUID, str] = {}  # By link; without the simulated network.
        self._prices: dict[UUID, int] = {}  # Of one item, by job, until the job ends.

    def see(self, event: Event) -> None:
        match event:
            case NumberLookup.Answered():
                if event.price is not None:
                    self._answered[event.price.transaction_id] = event.provider
            case Link.Began():
                if event.plan.network is not None:
                    self._networks[event.originator_id] = event.plan.network
            case BulkJob.Created():
                self._prices[event.originator_id] = event.item_price_micros
            case BulkJob.Finished() | BulkJob.Cancelled():
                self._prices.pop(event.originator_id, None)

    def of_entry(self, entry: Wallet.Moved) -> str | None:
        """Return the provider that a charge or refund is for; None for jobs and monthly fees."""
        match entry.reference.type:
            case "lookup":
                known = self._answered.pop(entry.transaction_id, None)
                return known or self._provider_of_lookup(UUID(entry.reference.id))
            case "link" | "plan_change":
                links = links_of(entry)
                return self._networks.get(links[0], SIMULATED) if links else None
            case _:
                return None

    def price_of(self, items: BulkJob.ItemsCompleted) -> int:
        return self._prices.get(items.originator_id, 0)


class Margin:
    """The rows of a report; give it every event that counts in order, with its month.

    A job is paid before any provider answers. When a provider answers items, their revenue moves to
    its row. A closed month never changes: entries, and work too, count in the month of a statement.
    """

    def __init__(self, by: By, provider_of_lookup: Callable[[UUID], str | None]) -> None:
        self.by = by
        self.rows: defaultdict[str | None, Earned] = defaultdict(Earned)
        self.names: dict[str, str] = {}  # Of organizations or plans.
        self.currency: str | None = None  # Of the wallets.
        self._providers = Providers(provider_of_lookup)

    def add(self, event: Event, month: str) -> None:
        if self.by == "provider":
            self._providers.see(event)
        match event:
            case Wallet.Charged():
                self.currency = event.currency
                self.rows[self._row_of(event, month)].revenue_micros += event.amount_micros
            case Wallet.Refunded():
                self.rows[self._row_of(event, month)].refunds_micros += event.amount_micros
            case Organization.Registered():
                self.names[str(event.originator_id)] = event.name
            case _:
                for work in work_of(event):
                    self._add(event, month, work)

    def _add(self, event: Event, month: str, work: Work) -> None:
        row = self.rows[self._row_of(event, month, work)]
        row.add_work(work)
        if self.by == "provider" and isinstance(event, BulkJob.ItemsCompleted):
            micros = work.count * self._providers.price_of(event)
            self.rows[None].revenue_micros -= micros
            row.revenue_micros += micros

    def _row_of(self, event: Event, month: str, work: Work | None = None) -> str | None:
        match self.by, event:
            case "day", _:
                return event.timestamp.date().isoformat()
            case "month", _:
                return month
            case "org", _:
                owner = event.organization_id  # type: ignore[attr-defined]  # None of an invoice.
                return str(owner) if owner is not None else None
            case "plan", Wallet.Moved(metadata=said):
                return self._named(said.get("plan_id"), said.get("plan_name"))
            case "provider", Wallet.Moved():
                return self._providers.of_entry(event)
        assert work is not None
        if self.by == "provider":
            return work.provider
        return self._named(str(work.plan.plan_id), work.plan.name) if work.plan else None

    def _named(self, plan_id: str | None, name: str | None) -> str | None:
        if plan_id is not None and name is not None:
            self.names[plan_id] = name
        return plan_id

    def formatted(self, currency: str) -> Iterator[dict[str, Any]]:
        """Yield what is told of each row that is not empty, in the order of their keys."""
        keys = [key for key, row in self.rows.items() if row != Earned()]
        for key in sorted(keys, key=lambda key: (key is None, key or "")):
            name = {"name": self.names.get(key or "")} if self.by in {"org", "plan"} else {}
            yield {self.by: key, **name, **self.rows[key].formatted(currency)}

    @property
    def total(self) -> Earned:
        total = Earned()
        for row in self.rows.values():
            total.add(row)
        return total


def margin_of(
    log: Log, by: By, progress: Progress = ignore_progress, month: str | None = None
) -> Margin:
    """Add up the log to its present end; or one month of it, to where that is closed."""

    def provider_of_lookup(stream_id: UUID) -> str | None:
        lookup = log.find(NumberLookup, stream_id)
        return lookup.answer.provider if lookup is not None else None

    margin, months = Margin(by, provider_of_lookup), Months()
    for _, event in read_events(log, (*MONEY, *BESIDES.get(by, ())), progress):
        its = months.of(event)
        if month in {None, its} or isinstance(event, REFERRED):
            margin.add(event, its)
        if month is not None and months.closed >= month:
            break
    return margin
