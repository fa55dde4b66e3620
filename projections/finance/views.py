"""The SQL views `finance_*`, which `python -m app finance` and an organization's own tools read.

Amounts are exact decimals. Each has a twin of micro-units at the end of its view, a whole number,
because SQLite has no exact decimals to add up. All times are UTC.
"""

# ruff: noqa: S608  # Every part of a statement here is a constant of ours.

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Boolean, Date, DateTime, Dialect, String, Uuid
from sqlalchemy.types import TypeDecorator, TypeEngine

from domain.accounts.operators import Operator
from domain.catalogue.plan import SIMULATED
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import NumberLookup
from projections.engine.sql_views import SqlView, ViewColumn
from projections.models.transactions import EVERYBODY


class Moment(TypeDecorator[datetime]):
    """A moment: a `timestamptz` of PostgreSQL; on SQLite ISO 8601 as text."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return DateTime(timezone=True) if dialect.name == "postgresql" else String()

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return f"{value:%Y-%m-%dT%H:%M:%S}"

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002  # Of the library.
        if value is None:
            return None
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return moment.astimezone(UTC)


class Money(TypeDecorator[Decimal]):
    """An exact amount: a `numeric` of PostgreSQL; on SQLite digits as text."""

    impl = String
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:  # noqa: ARG002  # Of the library.
        return None if value is None else Decimal(value)


ID, WORD, COUNT, MONEY = Uuid(), String(), BigInteger(), Money()
DAY, MOMENT, SWITCH = Date(), Moment(), Boolean()


class Spelling(NamedTuple):
    """How one kind of database writes expressions that both have."""

    nobody: str  # The id that owns the sums over all wallets.
    shown: Mapping[TypeEngine[Any], Callable[[str], str]]  # An expression as a column of a type.
    log: str  # The events: position, stream, version, topic, and `state` as JSON.
    parsed_log: str  # The same, for queries that read many facts of many events.
    audits: str  # The notes of audits: at, and `state` as JSON.
    checkpoints: str
    fact: Callable[..., str]  # Of an event, by its path within the state; as a type, if named.
    each: Callable[[str], str]  # The members of a list of the state, as `a.value`.
    length: Callable[[str], str]  # The number of members of such a list.


_WHERE = (
    "notification_id AS position, originator_id AS stream, originator_version AS version, topic"
)
_FILE = (
    "SELECT rowid AS position, originator_id AS stream, originator_version AS version, topic, "
    "CAST(state AS TEXT) AS state FROM log.stored_events"
)

SPELLINGS: Mapping[str, Spelling] = {
    "postgresql": Spelling(
        nobody=f"'{EVERYBODY}'",
        shown={
            COUNT: lambda total: f"({total})::bigint",
            MONEY: lambda micros: f"({micros} * 0.000001)",
            MOMENT: lambda micros: f"(timestamptz 'epoch' + {micros} * interval '1 microsecond')",
            DAY: lambda days: f"(date '1970-01-01' + ({days})::integer)",
        },
        log=f"SELECT {_WHERE}, convert_from(state, 'UTF8')::json AS state FROM log_events",
        # OFFSET 0 keeps the planner from parsing an event once for each of its facts.
        parsed_log=(
            f"SELECT {_WHERE}, s.state FROM log_events AS l CROSS JOIN LATERAL "
            "(SELECT convert_from(l.state, 'UTF8')::jsonb AS state OFFSET 0) AS s"
        ),
        audits="SELECT at, value::json AS state FROM installation_notes WHERE subject = 'audit'",
        checkpoints="checkpoints",
        fact=lambda path, kind="", of="e.state": (
            f"({of} #>> '{{{path.replace('.', ',')}}}'){kind and f'::{kind}'}"
        ),
        each=lambda path: f"jsonb_array_elements(e.state->'{path}') AS a(value)",
        length=lambda path: f"jsonb_array_length(e.state->'{path}')",
    ),
    # The log is a file of its own, which only a session can name: see `ON_FILES`.
    "sqlite": Spelling(
        nobody=f"'{EVERYBODY.hex}'",
        shown={
            MONEY: lambda micros: (
                f"(CASE WHEN {micros} < 0 THEN '-' WHEN {micros} >= 0 THEN '' END || "
                f"printf('%d.%06d', abs({micros}) / 1000000, abs({micros}) % 1000000))"
            ),
            MOMENT: lambda micros: (
                f"(strftime('%Y-%m-%dT%H:%M:%S', {micros} / 1000000, 'unixepoch') || "
                f"printf('.%06dZ', {micros} % 1000000))"
            ),
            DAY: lambda days: f"date(({days}) * 86400, 'unixepoch')",
        },
        log=_FILE,
        parsed_log=_FILE,
        audits="SELECT at, value AS state FROM log.installation_notes WHERE subject = 'audit'",
        checkpoints="log.checkpoints",
        fact=lambda path, kind="", of="e.state": (
            f"replace(json_extract({of}, '$.{path}'), '-', '')"
            if kind == "uuid"
            else f"json_extract({of}, '$.{path}')"
        ),
        each=lambda path: f"json_each(e.state, '$.{path}') AS a",
        length=lambda path: f"json_array_length(e.state, '$.{path}')",
    ),
}

Said = str | Callable[[Spelling], str]  # For both kinds of database, or for each its own.


def _said(said: Said, spelling: Spelling) -> str:
    return said if isinstance(said, str) else said(spelling)


def _view(
    name: str, meaning: str, source: Said, **columns: tuple[TypeEngine[Any], Said, str]
) -> SqlView:
    """Make a view of `source`, which follows FROM; a column is a type, an expression, a meaning.

    A money's expression is of micro-units, a moment's of microseconds, a day's of days since 1970.
    """
    twins = {
        f"{each}_micros": (COUNT, said, f"{each} in micro-units.")
        for each, (kind, said, _) in columns.items()
        if kind is MONEY
    }
    every = {**columns, **twins}
    bodies = {}
    for database, spelling in SPELLINGS.items():
        chosen = ", ".join(
            f"{_shown(spelling, kind, said)} AS {each}" for each, (kind, said, _) in every.items()
        )
        bodies[database] = f"SELECT {chosen} FROM {_said(source, spelling)}"
    made = {each: ViewColumn(kind, words) for each, (kind, _, words) in every.items()}
    return SqlView(name, meaning, made, bodies)


def _shown(spelling: Spelling, kind: TypeEngine[Any], said: Said) -> str:
    """Write an expression as its type; an expression spelled for one database has it already."""
    if isinstance(said, str):
        return spelling.shown.get(kind, str)(said)
    return said(spelling)


WALLETS = _view(
    "finance_wallets",
    "One row per wallet, as it is now.",
    "wallets AS w LEFT JOIN organizations AS o ON o.id = w.organization_id",
    organization_id=(ID, "w.organization_id", "The organization."),
    organization=(WORD, "o.name", "Its name."),
    status=(WORD, "o.status", "active, suspended or inactive."),
    currency=(WORD, "w.currency", "The currency of the installation."),
    balance=(MONEY, "w.balance_micros", "What the wallet holds."),
    transactions=(COUNT, "w.sequence", "How many entries the wallet has."),
)

_CHANGE = "(CASE t.direction WHEN 'debit' THEN -t.amount_micros ELSE t.amount_micros END)"

TRANSACTIONS = _view(
    "finance_transactions",
    "One row per entry of a wallet. Filter large installations by organization_id and sequence, "
    "or by kind and position: these have indexes.",
    "transactions AS t LEFT JOIN organizations AS o ON o.id = t.organization_id",
    position=(COUNT, "t.position", "The place of its event in the log: rising, with gaps."),
    id=(ID, "t.id", "The transaction."),
    organization_id=(ID, "t.organization_id", "The organization."),
    organization=(WORD, "o.name", "Its name."),
    sequence=(COUNT, "t.sequence", "1, 2, 3 … in each wallet, without a gap."),
    kind=(WORD, "t.kind", "What it was, such as lookup, refund or deposit."),
    direction=(WORD, "t.direction", "debit takes from the balance, credit adds to it."),
    amount=(MONEY, "t.amount_micros", "Never negative."),
    change=(MONEY, _CHANGE, "The amount with its sign: below zero for a debit."),
    balance_after=(MONEY, "t.balance_micros", "What the wallet held then."),
    currency=(WORD, "t.currency", "The currency of the installation."),
    charged_at=(MOMENT, "t.charged_at", "When it was entered."),
    description=(WORD, "t.description", "What it was, for people."),
    reference_type=(WORD, "t.reference_type", "What the money was for, such as link or job."),
    reference_id=(WORD, "t.reference_id", "Its id, or the operator's own reference."),
    metadata=(WORD, "t.metadata", "More about it, by kind: JSON."),
    refund_of=(ID, "t.refund_of", "The charge that a refund gives back."),
    reason=(WORD, "t.reason", "Why a refund was given, such as provisioning_failed."),
    charged_at_micros=(COUNT, "t.charged_at", "The time in microseconds since 1970."),
)

_NET = "(sum(h.credit_micros) - sum(h.debit_micros))"
_SUMS: Mapping[str, tuple[TypeEngine[Any], Said, str]] = {
    "day": (DAY, "h.hour / 24", "The day (UTC)."),
    "kind": (WORD, "h.kind", "What it was, such as lookup, refund or deposit."),
    "transactions": (COUNT, "sum(h.count)", "How many entries there were."),
    "debit": (MONEY, "sum(h.debit_micros)", "The sum of what was taken."),
    "credit": (MONEY, "sum(h.credit_micros)", "The sum of what was added."),
    "net": (MONEY, _NET, "credit less debit: by so much balances have grown."),
}

DAILY = _view(
    "finance_daily",
    "Sums of entries by organization, day and kind. Always name an organization_id.",
    lambda s: (
        "transaction_hours AS h LEFT JOIN organizations AS o ON o.id = h.organization_id "
        f"WHERE h.organization_id <> {s.nobody} "
        "GROUP BY h.organization_id, o.name, h.hour / 24, h.kind"
    ),
    organization_id=(ID, "h.organization_id", "The organization."),
    organization=(WORD, "o.name", "Its name."),
    **_SUMS,
    first_sequence=(COUNT, "min(h.first)", "No entry of that day has an earlier sequence."),
    last_sequence=(COUNT, "max(h.last)", "None has a later one."),
)

TOTALS = _view(
    "finance_totals",
    "Sums of the entries of all wallets by day and kind; net, added up from the first day on, is "
    "what all wallets hold.",
    lambda s: (
        f"transaction_hours AS h WHERE h.organization_id = {s.nobody} GROUP BY h.hour / 24, h.kind"
    ),
    **_SUMS,
    first_position=(COUNT, "min(h.first)", "No entry of that day has an earlier position."),
    last_position=(COUNT, "max(h.last)", "None has a later one."),
)

STATEMENTS = _view(
    "finance_statements",
    "One row per wallet and month in which it has an entry; a month without one keeps the balance.",
    "(SELECT organization_id, month, currency, sum(count) AS transactions, "
    "sum(debit_micros) AS debit, sum(credit_micros) AS credit, "
    "min(first_sequence) AS first_sequence, max(last_sequence) AS last_sequence, "
    "min(first_position) AS first_position, max(last_position) AS last_position "
    "FROM statement_lines GROUP BY organization_id, month, currency) AS m "
    "JOIN statement_lines AS f ON f.organization_id = m.organization_id "
    "AND f.month = m.month AND f.first_sequence = m.first_sequence "
    "JOIN statement_lines AS l ON l.organization_id = m.organization_id "
    "AND l.month = m.month AND l.last_sequence = m.last_sequence "
    "LEFT JOIN closed_months AS c ON c.month = m.month "
    "LEFT JOIN organizations AS o ON o.id = m.organization_id",
    organization_id=(ID, "m.organization_id", "The organization."),
    organization=(WORD, "o.name", "Its name."),
    month=(WORD, "m.month", "The month as YYYY-MM, by the rule of cut-off."),
    currency=(WORD, "m.currency", "The currency of the installation."),
    opening_balance=(MONEY, "f.opening_micros", "What the wallet held before the first entry."),
    debit=(MONEY, "m.debit", "The sum of what was taken."),
    credit=(MONEY, "m.credit", "The sum of what was added."),
    closing_balance=(MONEY, "l.closing_micros", "What it held after the last entry."),
    transactions=(COUNT, "m.transactions", "How many entries there were."),
    first_sequence=(COUNT, "m.first_sequence", "The sequence of the first entry."),
    last_sequence=(COUNT, "m.last_sequence", "That of the last one."),
    first_position=(COUNT, "m.first_position", "The position of the first entry."),
    last_position=(COUNT, "m.last_position", "That of the last one."),
    closed_position=(COUNT, "c.position", "Where the month was closed; empty: it may grow."),
)

STATEMENT_LINES = _view(
    "finance_statement_lines",
    "The statements by kind of entry.",
    "statement_lines AS l LEFT JOIN organizations AS o ON o.id = l.organization_id",
    organization_id=(ID, "l.organization_id", "The organization."),
    organization=(WORD, "o.name", "Its name."),
    month=(WORD, "l.month", "The month as YYYY-MM, by the rule of cut-off."),
    kind=(WORD, "l.kind", "What it was, such as lookup, refund or deposit."),
    transactions=(COUNT, "l.count", "How many entries there were."),
    debit=(MONEY, "l.debit_micros", "The sum of what was taken."),
    credit=(MONEY, "l.credit_micros", "The sum of what was added."),
)


def _reason(s: Spelling) -> str:
    return f"coalesce({s.fact('reason')}, {s.fact('code')})"


def _operator(s: Spelling) -> str:
    return f"(CASE WHEN e.topic = '{Operator.Registered.TOPIC}' THEN {s.fact('name')} END)"


def _known_as(s: Spelling) -> str:
    return f"coalesce({s.fact('endpoint_id')}, {s.fact('addon_id')})"


EVENTS = _view(
    "finance_events",
    "Every event of the log, without what it holds but for these facts. Filter by position, or by "
    "stream.",
    lambda s: f"({s.log}) AS e",
    position=(COUNT, "e.position", "The place in the log: rising, with gaps."),
    stream=(ID, "e.stream", "The thing that the event is about."),
    version=(COUNT, "e.version", "The number of the event in its stream."),
    topic=(WORD, "e.topic", "What has happened."),
    at=(MOMENT, lambda s: s.fact("timestamp", "timestamptz"), "When."),
    organization_id=(ID, lambda s: s.fact("organization_id", "uuid"), "The organization."),
    request_id=(WORD, lambda s: s.fact("request_id"), "The request that caused it."),
    actor=(WORD, lambda s: s.fact("actor"), "The operator who caused it; else empty."),
    provider_reference=(WORD, _known_as, "The id of an endpoint or add-on at the network."),
    reason=(WORD, _reason, "Why something failed or was corrected."),
    operator=(WORD, _operator, "The name of an operator, in the event that registers one."),
)

AUDITS = _view(
    "finance_audits",
    "What the audit of the night has found.",
    lambda s: f"({s.audits}) AS e",
    at=(MOMENT, "e.at", "When it ended."),
    events=(COUNT, lambda s: s.fact("events", "bigint"), "How many events it has read."),
    failures=(WORD, lambda s: s.fact("failures"), "JSON list of position and reason; [] is good."),
)


def _work(s: Spelling) -> str:
    """Select what providers have done, as `audit margin` counts it: each branch is one kind."""
    at = s.fact("timestamp", "timestamptz")
    owner = f"{at} AS at, {s.fact('organization_id', 'uuid')} AS organization_id"

    def costs(of: str) -> str:
        amount, known = s.fact("cost.amount_micros", "bigint", of), s.fact("cost.currency", of=of)
        estimated = f"coalesce({s.fact('cost.estimated', 'boolean', of)}, true)"
        return (
            f"{amount} AS cost, {known} AS currency, "
            f"CASE WHEN {amount} IS NOT NULL THEN {estimated} END AS estimated, "
            f"{s.fact('cost.reference', of=of)} AS reference"
        )

    network = f"coalesce({s.fact('plan.network')}, '{SIMULATED}')"
    return (
        f"SELECT e.position, {owner}, 'lookup' AS work, {s.fact('provider')} AS provider, "
        f"1 AS count, {costs('e.state')} FROM ({s.parsed_log}) AS e "
        f"WHERE e.topic = '{NumberLookup.Answered.TOPIC}' AND {s.fact('source')} = 'live' "
        f"UNION ALL SELECT e.position, {owner}, "
        f"CASE e.topic WHEN '{Link.PlanAdded.TOPIC}' THEN 'topup' "
        f"WHEN '{Link.Activated.TOPIC}' THEN 'activation' ELSE 'left_over' END, "
        f"{network}, 1, {costs('e.state')} FROM ({s.parsed_log}) AS e "
        f"WHERE e.topic IN ('{Link.Activated.TOPIC}', '{Link.PlanAdded.TOPIC}', "
        f"'{LostOrder.LeftOver.TOPIC}', '{Link.PlanLeftOver.TOPIC}', "
        f"'{Link.EndpointLeftOver.TOPIC}') AND {s.fact('bought_at')} IS NULL "
        f"AND coalesce({s.fact('attempt', 'bigint')}, 1) = 1 "
        f"UNION ALL SELECT e.position, {owner}, 'bulk_lookup', {s.fact('provider', of='a.value')}, "
        f"{s.fact('count', 'bigint', 'a.value')}, {costs('a.value')} "
        f"FROM ({s.parsed_log}) AS e, {s.each('asked')} "
        f"WHERE e.topic = '{BulkJob.ItemsCompleted.TOPIC}' "
        f"UNION ALL SELECT e.position, {owner}, 'bulk_lookup', NULL, {s.length('indexes')}, "
        f"NULL, NULL, NULL, NULL FROM ({s.parsed_log}) AS e "
        f"WHERE e.topic = '{BulkJob.ItemsCompleted.TOPIC}' AND {s.length('asked')} IS NULL"
    )


COSTS = _view(
    "finance_costs",
    "What providers have done and take for it, from the log itself: filter by position.",
    lambda s: f"({_work(s)}) AS w",
    position=(COUNT, "w.position", "The place of the event in the log."),
    at=(MOMENT, lambda _: "w.at", "When it was done."),
    organization_id=(ID, "w.organization_id", "The organization for which it was done."),
    work=(WORD, "w.work", "lookup, bulk_lookup, activation, topup or left_over."),
    provider=(WORD, "w.provider", "Who has done it; empty for jobs of earlier releases."),
    count=(COUNT, "w.count", "How many: the items of a job."),
    cost=(MONEY, "w.cost", "What the provider takes for all of them; empty: not known."),
    currency=(WORD, "w.currency", "The currency of the provider."),
    estimated=(SWITCH, "w.estimated", "Whether a plan or a setting tells it, not the provider."),
    reference=(WORD, "w.reference", "The provider's own id of it."),
)

CHECKPOINTS = _view(
    "finance_checkpoints",
    "What was signed of the log, and when it reached the place that keeps it.",
    lambda s: f"{s.checkpoints} AS c",
    number=(COUNT, "c.number", "1, 2, 3 … in the order in which they were made."),
    position=(COUNT, "c.position", "The position of the last event that it vouches for."),
    made_at=(MOMENT, "c.made_at", "When it was signed."),
    delivered_at=(MOMENT, "c.delivered_at", "When CHECKPOINT_SINK has accepted it."),
    note=(WORD, "c.note", "The signed note."),
)

OVER_READ_MODELS = (WALLETS, TRANSACTIONS, DAILY, TOTALS, STATEMENTS, STATEMENT_LINES)
BESIDE_THE_LOG = (EVENTS, AUDITS, COSTS, CHECKPOINTS)

# On SQLite the log is another file, so views over it exist only in our own sessions.
VIEWS = {"postgresql": (*OVER_READ_MODELS, *BESIDE_THE_LOG), "sqlite": OVER_READ_MODELS}
ON_FILES = tuple(
    f"CREATE TEMP VIEW {view.name} AS {view.bodies['sqlite']}" for view in BESIDE_THE_LOG
)
