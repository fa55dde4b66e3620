"""A log of everything that moves money, for somebody to rewrite from its first event to its last.

Whoever rewrites it leaves no seam: versions, positions, sequences, balances and what counts against
limits are computed anew, and so are the leaves. Only what the change itself says is wrong.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from domain.accounts.organization import Organization
from domain.accounts.prices import LookupPrice
from domain.accounts.spending import Spending
from domain.accounts.wallet import Payout, Reversal
from domain.cause import Cause
from domain.links.link import Link
from domain.log.log import Stored
from domain.lookups.single import NumberLookup
from domain.months import first_instant, months_before, next_month
from tests.projections.crimes import ends, months, orders
from tests.projections.crimes.adjustments import decided
from tests.projections.crimes.refunds_by_hand import by_hand, entry
from tests.projections.forgery import ITEM_MICROS
from tests.projections.link_forgery import LinkForger, first_of


@dataclass
class Row:
    """One event, with its facts to be changed."""

    stream: str
    version: int
    topic: str
    state: dict[str, Any]


@dataclass
class Rewriting:
    """The rows of a log in their order."""

    rows: list[Row] = field(default_factory=list)

    @classmethod
    def of(cls, stored: list[Stored]) -> "Rewriting":
        facts = ((str(e.stream_id), e.version, e.topic, json.loads(e.state)) for e in stored)
        return cls([Row(*each) for each in facts])

    def all(self, topic: str, **facts: Any) -> list[Row]:
        return [
            row
            for row in self.rows
            if row.topic == topic and all(row.state.get(n) == v for n, v in facts.items())
        ]

    def first(self, topic: str, **facts: Any) -> Row:
        return self.all(topic, **facts)[0]

    def entry(self, transaction: str) -> Row:
        """Return the wallet's entry of a transaction."""
        entries = (row for row in self.rows if row.topic.startswith("wallet."))
        return next(row for row in entries if row.state.get("transaction_id") == transaction)

    def drop(self, *rows: Row) -> None:
        """Remove events; later versions of their streams move up."""
        for row in rows:
            at = next(at for at, each in enumerate(self.rows) if each is row)
            for later in self.rows[at:]:
                if later.stream == row.stream:
                    later.version -= 1
            del self.rows[at]

    def insert(self, after: Row, *copies: Row) -> None:
        """Put events behind another; later versions of their streams move down."""
        at = next(at for at, each in enumerate(self.rows) if each is after) + 1
        for copied in reversed(copies):
            for later in self.rows[at:]:
                if later.stream == copied.stream and later.version >= copied.version:
                    later.version += 1
            self.rows.insert(at, copied)

    def again(self, row: Row, **changes: Any) -> Row:
        """Return a copy of an event as the next one of its stream, with other facts."""
        state = deepcopy(row.state) | changes
        return Row(row.stream, row.version + 1, row.topic, state)

    def settle(self) -> "Rewriting":
        """Compute anew what follows from the entries of each wallet."""
        balances, sequences = defaultdict[str, int](int), defaultdict[str, int](int)
        limits: dict[str, int | None] = {}
        spent: dict[str, tuple[str, int]] = defaultdict(lambda: ("", 0))
        for row in self.rows:
            noun, _, what = row.topic.partition(".")
            if noun != "wallet" or what == "opened":
                continue
            state, wallet = row.state, row.stream
            now = max(spent[wallet][0], state["timestamp"][:7])
            so_far = spent[wallet][1] if now == spent[wallet][0] else 0
            if what == "spending_limited":
                limits[wallet] = (state.get("spending") or {}).get("limit_micros")
            else:
                takes = what in {"charged", "reversed", "paid_out"}
                signed = state["amount_micros"] * (-1 if takes else 1)
                balances[wallet] += signed
                sequences[wallet] += 1
                so_far -= signed if what in {"charged", "refunded"} else 0
            spent[wallet] = (now, so_far)
            state["balance_micros"], state["sequence"] = balances[wallet], sequences[wallet]
            limit = limits.get(wallet)
            state.pop("spending", None)
            if limit is not None:
                told = {"limit_micros": limit, "month": now, "spent_micros": so_far}
                state["spending"] = told
        return self

    def stored(self) -> list[Stored]:
        return [
            Stored(position, UUID(row.stream), row.version, row.topic, _bytes(row.state))
            for position, row in enumerate(self.rows, 1)
        ]


def _bytes(state: Any) -> bytes:
    return json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode()


def write_everything(forger: LinkForger) -> None:
    """Write each thing that moves money, by the rules."""
    for each in _parts():
        each(forger)


def _parts() -> Iterator[Callable[[LinkForger], None]]:
    yield from (
        _pay_in,
        _look_up,
        _run_jobs,
        _live_links,
        _change_plans,
        _refund,
        _limit,
        _owe_fees,  # Last, because it goes on into months to come.
    )


def _pay_in(forger: LinkForger) -> None:
    forger.write(*forger.deposit("bank-2"), *forger.deposit("bank-3"), *forger.deposit("bank-4"))
    forger.write(*forger.play_money("bank-2"), *forger.play_money("tests-3"))
    forger.write(*forger.adjustment(-7_000), *decided(forger))
    for kind, micros, facts in (
        (Payout, 5_000, {}),
        (Reversal, 500_000, {"deposit": "bank-2"}),
        (Payout, 1_988_005, {}),  # All that there is.
        (Reversal, 400_000, {"deposit": "bank-3"}),
    ):
        made, entries = forger.outgoing(kind, micros, **facts)
        forger.write(made, *entries)
    made_again, entered = forger.paid_in("bank-5", 2_500_000)
    forger.write(made_again, *entered)
    forger.write(months.closed("2026-01"), months.closed("2026-02"), months.closed("2026-03"))


def _set_price(forger: LinkForger, micros: int) -> None:
    organization = forger.log.get(Organization, forger.organization_id)
    organization.change_price(micros, forger.cause)
    forger.write(*organization.collect_events())


def _look_up(forger: LinkForger) -> None:
    before = Cause(forger.cause.at - timedelta(days=1), "before")
    price = LookupPrice.begin(LookupPrice.Opened, before, LookupPrice.id_of())
    price.record(LookupPrice.Set, before, amount_micros=ITEM_MICROS, currency="USD")
    forger.write(*price.collect_events())
    for micros in (ITEM_MICROS, 12_000, 14_000):
        _set_price(forger, micros)
        lookup = forger.lookup(micros)
        forger.write(lookup, forger.charge_for(lookup))


def _run_jobs(forger: LinkForger) -> None:
    job = forger.job()
    failed = forger.failed(job, 0, 1)
    forger.write(failed, forger.refund_for(job, failed))
    forger.write(forger.completed(job, 2), forger.completed(job, 3), forger.finished(job))
    other = forger.job(3)
    forger.write(forger.completed(other, 0))
    cancelled = forger.cancelled(other)
    forger.write(cancelled, forger.refund_for(other, cancelled))


def _live_links(forger: LinkForger) -> None:
    forger.active()
    forger.failed_link()
    forger.write(*ends.a_cancelled_link(forger).events)
    orders.right_orders(forger)
    link = forger.active("0.03")
    link.record(Link.EndRequested, forger.cause, kind="end", until=forger.cause.at)
    link.end([], forger.cause)
    forger.write(*link.collect_events())


def _change_plans(forger: LinkForger) -> None:
    link = forger.active("0.05")
    forger.done(forger.changing(link, "0.02", remove=[first_of(link)]), link)
    change = forger.changing(link, "0.02", "0.04")
    forger.start(change)
    forger.write(*forger.step(change, link))
    forger.start(change)
    failed = forger.change_failure(change)
    forger.write(failed, *forger.finish(change, link), *forger.change_money_back(change))


def _owe_fees(forger: LinkForger) -> None:
    """For two months to come; the months up to the second are closed."""
    closed = "2026-03"
    for _ in range(2):
        fee, due = forger.fee(2)
        for month in months_before(next_month(closed), fee.due.month):
            forger.write(months.closed(closed := month))
        forger.cause = Cause(first_instant(fee.due.month) + timedelta(days=5), "later")
        forger.write(due, *forger.fee_charged(fee))


def _refund(forger: LinkForger) -> None:
    _set_price(forger, 16_000)
    lookup = forger.lookup(16_000)
    forger.write(lookup, forger.charge_for(lookup))
    found = forger.log.get(NumberLookup, lookup.originator_id)
    event, refund = by_hand(forger, found, lookup.price)
    forger.write(event, entry(forger, refund))


def _limit(forger: LinkForger) -> None:
    """Spend all that a limit allows, which is lowered then; only fees go on."""
    _set_price(forger, 18_000)
    lookup = forger.lookup(18_000)
    for limit in (50_000_000, 5_000):
        spending = Spending(limit, f"{forger.cause.at:%Y-%m}", _spent(forger))
        forger.wallet.limit_spending(spending, forger.cause)
        forger.write(*forger.wallet.collect_events())
        if limit > 5_000:
            forger.write(lookup, forger.charge_for(lookup))


def _spent(forger: LinkForger) -> int:
    moved = (json.loads(row.state) | {"topic": row.topic} for row in forger.log.stored(0, 10**4))
    signs = {"wallet.charged": 1, "wallet.refunded": -1}
    return sum(signs.get(each["topic"], 0) * each.get("amount_micros", 0) for each in moved)
