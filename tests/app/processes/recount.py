"""The figures of a month, counted from an export by a program that shares no code with the service.

It knows only what docs/finance.md says, and the fields that docs/verifier/events.md lists.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

Sums = dict[tuple[str, str], Decimal]
UNIT, CENT = Decimal(1_000_000), Decimal("0.01")
KINDS = {"deposited": "deposit", "adjusted": "adjustment", "refunded": "refund"}
PAID_FOR = {
    "link": "Activation",
    "plan_change": "Topup",
    "monthly_fee": "Monthly-link-fee",
    "lookup": "Lookup",
    "job": "Bulk-lookup",
}
ALL = "total"


def after(month: str) -> str:
    year, number = map(int, month.split("-"))
    return f"{year + number // 12}-{number % 12 + 1:02}"


def rounded(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_UP)  # Away from zero, also below it.


def added(sums: Sums, key: tuple[str, str], amount: Decimal) -> None:
    sums[key] = sums.get(key, Decimal()) + amount


class Recount:
    """Everything that a folder says of one month, added up anew."""

    def __init__(self, export: Path, month: str) -> None:
        self.month = month
        self.closed = ""
        self.names: dict[str, str] = {}  # Of the organizations, in the order of registration.
        self.opening: dict[str, Decimal] = {}
        self.closing: dict[str, Decimal] = {}
        self.kinds: dict[str, dict[str, list[Decimal]]] = defaultdict(dict)
        self.places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.before: Sums = {}
        self.by_day: dict[str, Sums] = defaultdict(dict)  # What moved, without the wallets.
        self.entries = 0
        self.margin: dict[str, dict[str, dict[str, Any]]] = {"provider": {}, "plan": {}}
        self._newest: dict[str, str] = {}
        self._networks: dict[str, str] = {}
        self._answered: dict[str, str] = {}
        self._lookups: dict[str, str] = {}
        self._item_prices: dict[str, Decimal] = {}
        with export.open() as lines:
            for line in map(json.loads, lines):
                if self.closed < month:
                    self._take(line["position"], line, json.loads(line["state"]))

    def _take(self, position: int, line: dict[str, Any], state: dict[str, Any]) -> None:
        noun, _, what = line["topic"].partition(".")
        if line["topic"] == "month.closed":
            self.closed = state["month"]
        elif line["topic"] == "organization.registered":
            self.names[line["stream"]] = state["name"]
        elif noun == "wallet" and what not in {"opened", "spending_limited"}:
            self._enter(position, what, state)
        else:
            self._remember(line["topic"], line["stream"], state)
            self._work(line["topic"], line["stream"], state)

    def _remember(self, topic: str, stream: str, state: dict[str, Any]) -> None:
        if topic in {"link.requested", "link.imported"}:
            self._networks[stream] = state["plan"].get("network") or "simulated"
        if topic == "bulk_job.created":
            self._item_prices[stream] = Decimal(state["item_price_micros"]) / UNIT
        if topic == "number_lookup.answered":
            self._lookups[stream] = state["provider"]

    def _enter(self, position: int, what: str, state: dict[str, Any]) -> None:
        owner, day = state["organization_id"], state["timestamp"][:10]
        month = max(day[:7], self._newest.get(owner, ""), after(self.closed) if self.closed else "")
        self._newest[owner] = month
        if month > self.month:
            return
        amount = Decimal(state["amount_micros"]) / UNIT
        change = -amount if what == "charged" else amount
        balance = Decimal(state["balance_micros"]) / UNIT
        self.closing[owner] = balance
        account = self._account(what, state)
        if month < self.month:
            self.opening[owner] = balance
            added(self.before, (account, state["currency"]), change)
            return
        self.entries += 1
        self.opening.setdefault(owner, Decimal())
        sums = self.kinds[owner].setdefault(KINDS.get(what) or state["kind"], [Decimal()] * 3)
        sums[0] += 1
        sums[1 if change < 0 else 2] += abs(change)
        self.places[owner].append((state["sequence"], position))
        day = max(day, f"{self.month}-01")
        added(self.by_day[day], (account, state["currency"]), change)
        if what in {"charged", "refunded"}:
            self._earn(what, state, amount)

    def _account(self, what: str, state: dict[str, Any]) -> str:
        if what == "deposited":
            return "Assets:Deposits"
        if what == "adjusted":
            return "Expenses:Adjustments"
        kind = PAID_FOR[state["reference"]["type"]]
        return f"Income:Refunds:{kind}" if what == "refunded" else f"Income:{kind}"

    def _earn(self, what: str, state: dict[str, Any], amount: Decimal) -> None:
        column = "revenue" if what == "charged" else "refunds"
        plan, reference = state["metadata"].get("plan_id"), state["reference"]
        provider = None
        if reference["type"] == "lookup":
            provider = self._lookups[reference["id"]]
        elif reference["type"] in {"link", "plan_change"}:
            provider = self._networks.get(state["metadata"]["link_id"], "simulated")
        self._row("plan", plan)[column] += amount
        self._row("provider", provider)[column] += amount

    def _row(self, by: str, key: str | None) -> dict[str, Any]:
        new = {"revenue": Decimal(), "refunds": Decimal(), "cost": Decimal()}
        new |= {"estimated": Decimal(), "unknown": 0, "other_costs": defaultdict(Decimal)}
        return self.margin[by].setdefault(key or "", new)

    def _works(self, topic: str, state: dict[str, Any]) -> Iterator[tuple[Any, int, Any, Any]]:
        """Yield provider, count, cost and plan of what a provider has done."""
        plan = state.get("plan")
        if topic == "number_lookup.answered" and state["source"] == "live":
            yield state["provider"], 1, state.get("cost"), None
        elif topic == "bulk_job.items_completed":
            for each in state["asked"]:
                yield each["provider"], each["count"], each.get("cost"), None
        elif (
            (topic == "link.activated" and state.get("bought_at") is None)
            or topic in {"link.plan_added", "link.plan_left_over", "lost_order.left_over"}
            or (topic == "link.endpoint_left_over" and state["attempt"] == 1)
        ):
            assert plan is not None
            yield plan.get("network") or "simulated", 1, state.get("cost"), plan["plan_id"]

    def _work(self, topic: str, stream: str, state: dict[str, Any]) -> None:
        day = state["timestamp"][:10]
        month = max(day[:7], after(self.closed) if self.closed else "")
        day = max(day, f"{self.month}-01")
        for provider, count, cost, plan in self._works(topic, state):
            micros = Decimal(cost["amount_micros"]) / UNIT if cost else Decimal()
            sums = self.before if month < self.month else self.by_day[day]
            if month <= self.month and micros:
                account = provider.replace("_", "-").capitalize()
                added(sums, (f"Expenses:Providers:{account}", cost["currency"]), micros)
                added(sums, (f"Liabilities:Providers:{account}", cost["currency"]), -micros)
            if month != self.month:
                continue
            for by, key in (("provider", provider), ("plan", plan)):
                row = self._row(by, key)
                if cost is None:
                    row["unknown"] += count
                elif cost["currency"] == "USD":
                    row["cost"] += micros
                    row["estimated"] += micros if cost.get("estimated", True) else 0
                else:
                    row["other_costs"][cost["currency"]] += micros
            if topic == "bulk_job.items_completed":  # The job was paid before anybody answered.
                self._row("provider", None)["revenue"] -= count * self._item_prices[stream]
                self._row("provider", provider)["revenue"] += count * self._item_prices[stream]

    @property
    def statements(self) -> list[str]:
        """The organizations that have one, in the order of their numbers."""
        return [owner for owner in self.names if owner in self.closing]

    @property
    def accounts(self) -> dict[tuple[str, str], tuple[Decimal, Decimal]]:
        """What each account holds at both ends of the month; a debit is above zero."""
        first, last = dict(self.before), dict(self.before)
        for sums in self.by_day.values():
            for key, amount in sums.items():
                added(last, key, amount)
        wallets = ("Liabilities:Wallets", "USD")
        first[wallets] = -sum(self.opening.values(), Decimal())
        last[wallets] = -sum(self.closing.values(), Decimal())
        return {key: (first.get(key, Decimal()), amount) for key, amount in last.items()}
