"""A reconciliation: compares the amounts of a file with those of the log, by reference."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from domain.accounts.wallet import Wallet
from domain.cost import Cost
from domain.log.log import Log
from domain.months import month_of
from projections.audit.amounts_file import TOLD_MAX, Theirs, WrongFile
from projections.audit.costs import COSTLY, LEFT_OVER, work_of
from projections.audit.walk import walk
from projections.engine.rebuild import Progress, ignore_progress

Period = Literal["day", "month"]
_Key = tuple[str, int | None]  # A reference, with its amount if several owners share it.
LENGTHS: dict[Period, int] = {"day": len("2026-01-31"), "month": len("2026-01")}


@dataclass(frozen=True, slots=True)
class Ours:
    """What the log knows under a reference; `amount_micros` is None for a cost that is not known.

    `position` and `at` are those of its first event. `left_over`: nobody uses what it paid for.
    """

    position: int
    at: datetime
    reference: str
    amount_micros: int | None
    currency: str | None
    left_over: bool = False


@dataclass(frozen=True)
class Reconciliation:
    """How many references agree, and those that do not; `left_over` may be of both."""

    matched: int
    missing_here: list[Theirs]
    missing_there: list[Ours]
    different: list[tuple[Theirs, Ours]]
    left_over: list[Ours]

    @property
    def ok(self) -> bool:
        return not (self.missing_here or self.missing_there or self.different)


def reconcile(
    theirs: Sequence[Theirs],
    ours: Iterable[Ours],
    month: str | None = None,
    shared: Container[str] = (),
) -> Reconciliation:
    """Compare the sums of each reference. With a month, theirs may lack ours of other months.

    Of a `shared` reference each amount is compared by itself, so that too much of one owner does
    not make up for too little of another.
    """
    there = _by_reference(theirs, shared)
    named = {each.reference for each in theirs}
    here: dict[_Key, Ours] = {}
    for each in ours:
        if month is None or each.reference in named or month_of(each.at) == month:
            key = _key_of(each, shared)
            before = here.get(key)
            here[key] = each if before is None else _sum(before, each)
    both = [(each, here[name]) for name, each in there.items() if name in here]
    different = [
        (a, b) for a, b in both if (a.amount_micros, a.currency) != (b.amount_micros, b.currency)
    ]
    nameless = [each for each in theirs if not each.reference]
    return Reconciliation(
        matched=len(both) - len(different),
        missing_here=[*(each for name, each in there.items() if name not in here), *nameless],
        missing_there=[each for name, each in here.items() if name not in there],
        different=different,
        left_over=[each for each in here.values() if each.left_over],
    )


def _key_of(each: Theirs | Ours, shared: Container[str]) -> _Key:
    return each.reference, each.amount_micros if each.reference in shared else None


def _by_reference(theirs: Iterable[Theirs], shared: Container[str]) -> dict[_Key, Theirs]:
    """Add up the lines of each reference, such as an order and its credit."""
    found: dict[_Key, Theirs] = {}
    for each in theirs:
        key = _key_of(each, shared)
        before = found.get(key)
        if before is not None and before.currency != each.currency:
            message = (
                f"line {each.line}: line {before.line} has this reference in {before.currency}"
            )
            raise WrongFile(message)
        if before is not None:
            micros = before.amount_micros + each.amount_micros
            found[key] = replace(before, amount_micros=micros)
        elif each.reference:
            found[key] = each
    return found


def _sum(one: Ours, other: Ours) -> Ours:
    if one.amount_micros is None or other.amount_micros is None or one.currency != other.currency:
        return replace(one, amount_micros=None, currency=None)
    return replace(one, amount_micros=one.amount_micros + other.amount_micros)


def costs_of(log: Log, provider: str, progress: Progress = ignore_progress) -> Iterator[Ours]:
    """Yield the costs of a provider's work that has an id of the provider; lookups have none."""
    for position, event in walk(log, COSTLY, progress):
        for work in work_of(event):
            if work.provider == provider and work.reference is not None:
                micros = work.cost.amount_micros if work.cost is not None else None
                currency = work.cost.currency if work.cost is not None else None
                left = isinstance(event, LEFT_OVER)
                yield Ours(position, event.timestamp, work.reference, micros, currency, left)


def sums_of(
    log: Log, provider: str, period: Period, progress: Progress = ignore_progress
) -> Iterator[Ours]:
    """Yield the costs of all work of a provider, lookups too; the reference is a day or month."""
    for position, event in walk(log, COSTLY, progress):
        for work in work_of(event):
            free = work.cost is not None and not work.cost.amount_micros
            if work.provider == provider and not free:
                when, cost = event.timestamp, work.cost or Cost(0, "")
                micros = cost.amount_micros if work.cost is not None else None
                currency = cost.currency or None
                yield Ours(position, when, when.isoformat()[: LENGTHS[period]], micros, currency)


def by_period(theirs: Iterable[Theirs], period: Period) -> list[Theirs]:
    """Replace the times that lines have as reference by their day or month; raises WrongFile.

    Lines without an amount are left out: some providers list the days without use too.
    """
    found, wrong = [], []
    for each in theirs:
        try:
            day = datetime.fromisoformat(each.reference).isoformat()
        except ValueError:
            wrong.append(f"line {each.line}: {each.reference[:40]!r} is no date such as 2026-01-31")
        else:
            if each.amount_micros:
                found.append(replace(each, reference=day[: LENGTHS[period]]))
    if wrong:
        raise WrongFile(*wrong[:TOLD_MAX])
    return found


def deposits_of(log: Log, progress: Progress = ignore_progress) -> Iterator[Ours]:
    """Yield every deposit, of all organizations."""
    for position, event in walk(log, (Wallet.Deposited,), progress):
        if isinstance(event, Wallet.Deposited):
            yield Ours(
                position, event.timestamp, event.reference.id, event.amount_micros, event.currency
            )
