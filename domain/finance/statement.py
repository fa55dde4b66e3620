"""A month of the books, the statement of a wallet for it, and the rule which month an entry has."""

from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Literal, Self
from uuid import UUID

from domain.accounts.wallet import Wallet, kind_of
from domain.cause import Cause
from domain.log.aggregate import ByOperator, Created, Event, Root, sets
from domain.months import month_of, next_month


class Month(Root):
    """A calendar month (UTC) of the books, closed once and for ever; an open one has no stream.

    `workers/months.py` closes it, or an operator where the clock must not. Entries after its event
    in the log belong to a later month, whatever their timestamps say.
    """

    TOPIC = "month"

    class Closed(Created, ByOperator):
        """`month` as YYYY-MM."""

        TOPIC = "month.closed"
        SETS = sets("month")

        month: str

    month: str

    @classmethod
    def close(cls, month: str, cause: Cause) -> Self:
        """Close a month; a second close collides, because the id is derived."""
        return cls.begin(cls.Closed, cause, Month.id_of(month), month=month)


def statement_month(charged_at: datetime, previous: str, closed: str) -> str:
    """Return the month of an entry as YYYY-MM.

    `previous` is the month of the wallet's entry before it, `closed` the last month that was closed
    before its position; "" for none. So no entry joins a closed month, and the months of a wallet
    never go back from entry to entry, whatever the clocks said.
    """
    return max(month_of(charged_at), previous, next_month(closed) if closed else "")


class Months:
    """Tells the month of each event; give it every entry of a wallet and close, in order."""

    def __init__(self) -> None:
        self.closed = ""
        self._newest: dict[UUID, str] = {}  # The month of the newest entry of each wallet.

    def of(self, event: Event) -> str:
        """Return the month of an entry, of other work, or the one that this event closes."""
        if isinstance(event, Month.Closed):
            self.closed = event.month
            return event.month
        if not isinstance(event, Wallet.Moved):
            return statement_month(event.timestamp, "", self.closed)
        previous = self._newest.get(event.originator_id, "")
        month = statement_month(event.timestamp, previous, self.closed)
        self._newest[event.originator_id] = month
        return month


@dataclass(slots=True)
class KindLine:
    """The entries of one kind; the balances are those before the first and after the last one."""

    opening_micros: int
    closing_micros: int
    first_sequence: int
    last_sequence: int
    first_position: int
    last_position: int
    count: int = 0
    debit_micros: int = 0
    credit_micros: int = 0

    def enter(self, position: int, entry: Wallet.Moved) -> None:
        self.last_sequence, self.last_position = entry.sequence, position
        self.closing_micros = entry.balance_micros
        self.count += 1
        self.debit_micros += max(-entry.change_micros, 0)
        self.credit_micros += max(entry.change_micros, 0)


@dataclass(slots=True)
class Statement:
    """A wallet's month by kind of entry."""

    organization_id: UUID
    month: str
    currency: str
    opening_micros: int
    lines: dict[str, KindLine] = field(default_factory=dict)

    @classmethod
    def of(
        cls, organization_id: UUID, month: str, currency: str, lines: dict[str, KindLine]
    ) -> Self:
        """Return the statement that has these lines; at least one."""
        first = min(lines.values(), key=attrgetter("first_sequence"))
        return cls(organization_id, month, currency, first.opening_micros, lines)

    @classmethod
    def begin(cls, month: str, entry: Wallet.Moved) -> Self:
        """Return the empty statement whose first entry this will be."""
        return cls(
            entry.organization_id, month, entry.currency, entry.balance_micros - entry.change_micros
        )

    def enter(self, position: int, entry: Wallet.Moved) -> None:
        kind = kind_of(entry)
        line = self.lines.get(kind)
        if line is None:
            micros, sequence = entry.balance_micros - entry.change_micros, entry.sequence
            line = KindLine(micros, micros, sequence, sequence, position, position)
            self.lines[kind] = line
        line.enter(position, entry)

    def empty_in(self, month: str) -> Self:
        """Return the statement of a later month without an entry."""
        return type(self)(self.organization_id, month, self.currency, self.closing_micros)

    @property
    def closing_micros(self) -> int:
        last = max(self.lines.values(), key=attrgetter("last_sequence"), default=None)
        return self.opening_micros if last is None else last.closing_micros

    def first(self, by: Literal["sequence", "position"]) -> int | None:
        """Return the first sequence or position; None without an entry."""
        return min((getattr(e, f"first_{by}") for e in self.lines.values()), default=None)

    def last(self, by: Literal["sequence", "position"]) -> int | None:
        return max((getattr(e, f"last_{by}") for e in self.lines.values()), default=None)
