"""The pages: each method reads the query and fills a template with figures."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from itertools import chain, islice
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from flask import Flask, Response, redirect, render_template, request
from marshmallow import EXCLUDE, Schema, ValidationError, fields, validate
from werkzeug.exceptions import BadRequest, NotFound
from werkzeug.wrappers import Response as Reply

from app.finance import plots, words
from app.http.edge import media
from domain.accounts.wallet import BOOKED
from domain.months import next_month
from projections.engine.shape import format_time
from projections.engine.sql_views import SqlView
from projections.finance.figures import Figures, Found, Wanted, as_id, balances, by_day, cursor_of
from projections.finance.views import STATEMENTS, TRANSACTIONS
from projections.models.transactions import KINDS

PAGE_ROWS = 50
LATEST_ROWS = 10
CHECKPOINT_ROWS = 24  # A day of them.
STATEMENT_ROWS = 12
# Few periods, because costs are read event by event; `audit margin` reports longer ones.
MARGIN_PERIODS = {30: "30 days", 90: "90 days"}
PERIODS = {**MARGIN_PERIODS, 365: "12 months"}
CHARGES = tuple(kind for kind in KINDS if kind not in {*BOOKED, "refund"})
DAILY_BARS_MAX = 100
WEEK = 7

TEXT = (validate.Length(max=255), validate.ContainsNoneOf("\0"))  # PostgreSQL takes no NUL.
# Far above any position; a page times its rows still fits into 64 bits.
NUMBER = validate.Range(min=1, max=2**53 - 1)
MONTH = validate.Range(min=date(2000, 1, 1), max=date(2999, 12, 31))  # Its neighbours are months.


class Query(Schema):
    """What the addresses of pages ask for; what is empty is not asked."""

    class Meta:
        unknown = EXCLUDE

    before = fields.Integer(load_default=None, validate=NUMBER)
    days = fields.Integer(load_default=None)
    kind = fields.String(load_default=None, validate=validate.OneOf(KINDS))
    month = fields.Date("%Y-%m", load_default=None, validate=MONTH)
    name = fields.String(load_default="", validate=TEXT)
    organization = fields.UUID(load_default=None)
    page = fields.Integer(load_default=1, validate=NUMBER)
    reference = fields.String(load_default=None, validate=TEXT)
    since = fields.Date(load_default=None)
    until = fields.Date(load_default=None)


class Pages:
    """All pages over one set of figures."""

    def __init__(self, figures: Figures, today: Callable[[], date]) -> None:
        self._figures = figures
        self._today = today

    def route(self, pages: Flask) -> None:
        pages.add_url_rule("/", "overview", self.overview)
        pages.add_url_rule("/wallets", "wallets", self.wallets)
        pages.add_url_rule("/wallets/<uuid:organization_id>", "wallet", self.wallet)
        pages.add_url_rule("/transactions", "transactions", self.transactions)
        pages.add_url_rule("/transactions.csv", "transactions_csv", self.transactions_csv)
        pages.add_url_rule("/transactions/<uuid:transaction_id>", "story", self.story)
        pages.add_url_rule("/statements", "statements", self.statements)
        pages.add_url_rule("/statements.csv", "statements_csv", self.statements_csv)
        pages.add_url_rule("/statements/<uuid:organization_id>", "statement", self.statement)
        pages.add_url_rule("/margin", "margin", self.margin)
        pages.add_url_rule("/checks", "checks", self.checks)
        pages.add_url_rule("/checks/<int(max=2147483647):number>", "checkpoint", self.checkpoint)

    def overview(self) -> str:
        total = self._figures.total_balance()
        period = Period(self._figures, None, total[0], self._today())
        latest = self._figures.entries(Wanted(), LATEST_ROWS)
        return render_template("overview.html", held=total, period=period, entries=latest)

    def wallets(self) -> str:
        query = _query()
        name, page = query["name"], query["page"]
        found = self._figures.wallets(name, (page - 1) * PAGE_ROWS, PAGE_ROWS + 1)
        more = len(found) > PAGE_ROWS
        return render_template(
            "wallets.html", wallets=found[:PAGE_ROWS], name=name, page=page, more=more
        )

    def wallet(self, organization_id: UUID) -> str:
        found = self._figures.wallet(organization_id)
        if found is None:
            raise NotFound
        period = Period(self._figures, organization_id, found.balance_micros, self._today())
        latest = self._figures.entries(Wanted(organization_id), LATEST_ROWS)
        statements = self._figures.statements_of(organization_id, STATEMENT_ROWS)
        return render_template(
            "wallet.html", wallet=found, period=period, entries=latest, statements=statements
        )

    def transactions(self) -> str | Reply:
        wanted = self._wanted()
        named = as_id(wanted.reference or "")
        if named is not None and self._figures.entry(named) is not None:
            return redirect(f"/transactions/{named}", 303)
        hint = _without_organization(wanted)
        found = [] if hint else self._figures.entries(wanted, PAGE_ROWS + 1)
        more = len(found) > PAGE_ROWS
        entries = found[:PAGE_ROWS]
        owner = wanted.organization_id and self._figures.wallet(wanted.organization_id)
        return render_template(
            "transactions.html",
            entries=entries,
            wanted=wanted,
            owner=owner,
            hint=hint,
            kinds=KINDS,
            older=cursor_of(wanted, entries[-1]) if more else None,
        )

    def transactions_csv(self) -> Response:
        wanted = self._wanted()
        if hint := _without_organization(wanted):
            raise BadRequest(hint)
        return _csv_reply("transactions", TRANSACTIONS, self._figures.every_entry(wanted))

    def story(self, transaction_id: UUID) -> str:
        entry = self._figures.entry(transaction_id)
        if entry is None:
            raise NotFound
        same = self._figures.for_the_same(entry)
        refunds = [each for each in same if each.refund_of == entry.id]
        charge = next((each for each in same if each.id == entry.refund_of), None)
        events = self._figures.events(entry)
        return render_template(
            "story.html",
            entry=entry,
            same=same,
            charge=charge,
            refunds=refunds,
            left=entry.amount_micros - sum(each.amount_micros for each in refunds),
            events=events,
            names=self._figures.operators(events),
            own=next((each for each in events if each.position == entry.position), None),
            is_charge=entry.kind in CHARGES,
            facts=_facts(entry.metadata),
        )

    def statements(self) -> str:
        month, page = self._month(), _query()["page"]
        found = self._figures.statements(month, (page - 1) * PAGE_ROWS, PAGE_ROWS + 1)
        closed = found[0].closed_position if found else None
        return render_template(
            "statements.html",
            month=month,
            before=_month_of(date.fromisoformat(f"{month}-01") - timedelta(days=1)),
            after=next_month(month) if month < _month_of(self._today()) else None,
            statements=found[:PAGE_ROWS],
            closed=closed,
            checkpoint=closed and self._figures.checkpoint_covering(closed),
            page=page,
            more=len(found) > PAGE_ROWS,
        )

    def statements_csv(self) -> Response:
        month = self._month()
        return _csv_reply(f"statements-{month}", STATEMENTS, self._figures.every_statement(month))

    def statement(self, organization_id: UUID) -> str:
        month = self._month()
        found = self._figures.statement(organization_id, month)
        if found is None:
            raise NotFound
        has_entries = found.month == month
        return render_template(
            "statement.html",
            month=month,
            statement=found,
            has_entries=has_entries,
            lines=self._figures.lines(organization_id, month) if has_entries else [],
        )

    def margin(self) -> str:
        period = Period(self._figures, None, 0, self._today(), MARGIN_PERIODS)
        since = period.since
        costs = self._figures.costs(since)
        known = [each for each in costs if each.currency is not None]
        sums = Counter[str]()
        for each in known:
            sums[each.currency] += each.cost_micros
        return render_template(
            "margin.html",
            period=period,
            costs=costs,
            sums=sums,
            unknown=sum(each.unknown for each in costs),
            estimated=any(each.estimated for each in known),
        )

    def checks(self) -> str:
        audit = self._figures.audit()
        return render_template(
            "checks.html",
            audit=audit,
            failures=msgspec.json.decode(audit.failures) if audit else [],
            newest=self._figures.newest_event(),
            checkpoints=self._figures.checkpoints(CHECKPOINT_ROWS),
            delivered=self._figures.delivered(),
        )

    def checkpoint(self, number: int) -> Response:
        found = self._figures.checkpoint(number)
        if found is None:
            raise NotFound
        reply = Response(found.note, mimetype="text/plain")
        name = f'attachment; filename="checkpoint-{number}.txt"'
        reply.headers["Content-Disposition"] = name
        return reply

    def _month(self) -> str:
        return _month_of(_query()["month"] or self._today())

    def _wanted(self) -> Wanted:
        """Read the filter; without an organization it takes the owner of the thing referred to."""
        query = _query()
        owner, reference = query["organization"], query["reference"]
        if reference is not None and owner is None and (thing := as_id(reference)) is not None:
            owner = self._figures.owner_of(thing)
        own = {name: query[name] for name in ("kind", "since", "until", "before")}
        return Wanted(owner, reference=reference, **own)


class Period:
    """The days that a page looks back on, with their sums and plots."""

    def __init__(
        self,
        figures: Figures,
        organization_id: UUID | None,
        now_micros: int,
        today: date,
        choices: Mapping[int, str] = PERIODS,
    ) -> None:
        self.length, self.choices = _query()["days"] or next(iter(choices)), choices
        if self.length not in choices:
            raise _unreadable(["days"])
        self.since = today - timedelta(days=self.length - 1)
        self.rows = figures.days(organization_id, self.since)
        self._days = [self.since + timedelta(days=number) for number in range(self.length)]
        self._by_day = by_day(self.rows, today)
        self._balances = balances(self._by_day, now_micros, self.since, today)
        self.sums = Counter[str]()
        for each in self.rows:
            self.sums[each.kind] += each.net_micros
        self.kinds = [kind for kind in (*CHARGES, "refund") if kind in self.sums]

    @property
    def charged(self) -> int:
        return -sum(self.sums[kind] for kind in CHARGES)

    @property
    def balance_plot(self) -> plots.Plot:
        return plots.line(
            self._days,
            self._balances,
            words.short_money,
            lambda n: f"{words.day(self._days[n])}: {words.money(self._balances[n])}",
        )

    @property
    def volume_plot(self) -> plots.Plot:
        """Charges of each day or week by kind, above what was refunded."""
        starts = self._days[:: self.bar_days]
        values: list[dict[str, int]] = [dict.fromkeys(self.kinds, 0) for _ in starts]
        for day, each in self._by_day:
            index = (day - self.since).days // self.bar_days
            if each.kind not in BOOKED:
                values[index][each.kind] -= each.net_micros
        return plots.bars(
            starts, values, words.short_money, lambda n: _title(starts[n], self.bar_days, values[n])
        )

    @property
    def bar_days(self) -> int:
        """How many days a bar covers: 365 daily bars would be too thin to read."""
        return 1 if self.length <= DAILY_BARS_MAX else WEEK


def _csv_reply(name: str, view: SqlView, rows: Iterator[Found]) -> Response:
    """Return a download with the columns of a view.

    The first rows are read before the reply begins, so that an error can still be the reply.
    """
    first = [*islice(rows, media.ROWS_OF_A_BLOCK)]
    cells = ([_cell(each) for each in row] for row in chain(first, rows))
    return media.csv_reply([*view.columns], cells, f"{name}.csv")


def _cell(value: object) -> object:
    return format_time(value) if isinstance(value, datetime) else value


def _month_of(day: date) -> str:
    return f"{day:%Y-%m}"


def _title(start: date, days: int, values: Mapping[str, int]) -> str:
    title = words.day(start) if days == 1 else f"{days} days from {words.day(start)}"
    lines = [f"{words.kind(kind)}: {words.money(each)}" for kind, each in values.items() if each]
    return "\n".join([title, *(lines or ["nothing"])])


def _facts(metadata: str) -> Mapping[str, str]:
    """Return what an entry says about itself; lists of ids as one text."""
    facts: Mapping[str, Any] = msgspec.json.decode(metadata)
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in facts.items()
    }


def _without_organization(wanted: Wanted) -> str | None:
    if wanted.reference is None or wanted.organization_id is not None:
        return None
    return (
        "Nothing has this id. An operator's own reference is found within an organization: open "
        "its wallet, then its transactions."
    )


def query(**changes: Any) -> str:
    """Return the present query with some values replaced; None takes one out."""
    values = {**request.args.to_dict(), **changes}
    return urlencode({name: value for name, value in values.items() if value not in {None, ""}})


def _query() -> dict[str, Any]:
    given = {name: text.strip() for name, text in request.args.items()}
    try:
        query: dict[str, Any] = Query().load({name: text for name, text in given.items() if text})
    except ValidationError as error:
        raise _unreadable(error.messages_dict) from None
    return query


def _unreadable(names: Iterable[str]) -> BadRequest:
    return BadRequest(f"The value of {' and '.join(names)} cannot be read.")
