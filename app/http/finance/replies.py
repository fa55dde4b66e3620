"""The replies about statements and usage."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Struct, UnsetType

from domain.finance import statement
from domain.money import format_amount
from projections.engine.shape import PLAN_NAME, Amount, Currency, Shape, id_of, means
from projections.models import usage
from projections.models.transactions import KIND, KINDS

Month = Annotated[
    str, means("A calendar month (UTC).", example="2026-11", pattern="^[0-9]{4}-[0-9]{2}$")
]
Ordinal = Annotated[int | None, means("Null in a month without a transaction.")]


class StatementLine(Shape):
    """The transactions of one kind."""

    kind: Annotated[str, means("What they were.", **KIND)]
    count: Annotated[int, means("How many there were.")]
    debit: Annotated[Amount, means("What they took, in all.")]
    credit: Annotated[Amount, means("What they added, in all.", example="0.00")]


class StatementSummary(Shape):
    """A month of the wallet."""

    month: Month
    currency: Currency
    opening_balance: Annotated[
        Amount, means("The closing balance of the month before.", example="100.00")
    ]
    closing_balance: Annotated[
        Amount, means("The balance after its last transaction.", example="87.50")
    ]
    final: Annotated[bool, means("Whether the month is closed; then nothing changes it.")]


class Statement(StatementSummary, kw_only=True):
    """A month of the wallet, with its sums."""

    organization: Annotated[UUID, means("Your organization.")]
    lines: Annotated[Sequence[StatementLine], means("One for each kind that there was.")]
    first_sequence: Ordinal
    last_sequence: Ordinal
    first_position: Ordinal
    last_position: Ordinal
    checkpoint: Annotated[
        str | None,
        means(
            "The first signed checkpoint of the log that covers the close of the month, to be "
            "kept as evidence; null in an open month, and until it is made, a minute or so after "
            "the close. Once it is there nothing in the statement changes.",
            example="log.example\n4711\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— log.…",
        ),
    ]


def show_summary(entry: statement.Statement, *, is_final: bool) -> StatementSummary:
    return StatementSummary.of(
        entry,
        final=is_final,
        opening_balance=format_amount(entry.opening_micros),
        closing_balance=format_amount(entry.closing_micros),
    )


def show_statement(
    entry: statement.Statement, *, is_final: bool, checkpoint: str | None
) -> Statement:
    """Return a statement as partners and auditors see it; only a final one has a checkpoint."""
    lines = sorted(entry.lines.items(), key=lambda each: KINDS.index(each[0]))
    return Statement.of(
        show_summary(entry, is_final=is_final),
        entry,
        lines=[StatementLine.of(line, kind=kind) for kind, line in lines],
        first_sequence=entry.first("sequence"),
        last_sequence=entry.last("sequence"),
        first_position=entry.first("position"),
        last_position=entry.last("position"),
        checkpoint=checkpoint if is_final else None,
    )


class UsageSum(Struct):
    """Transactions of one direction."""

    count: Annotated[int, means("How many there were.")]
    amount: Annotated[Amount, means("What they come to.")]


class UsagePlan(Struct):
    """A plan."""

    id: Annotated[str, means("Its id.", example=id_of("plan"))]
    name: Annotated[str | None, means("Its name, as it was bought last.", example=PLAN_NAME)]


class UsageSums(Struct, kw_only=True):
    """What was charged and given back."""

    charges: Annotated[UsageSum, means("What was charged.")]
    refunds: Annotated[
        UsageSum, means("What was given back.", example={"count": 1, "amount": "0.50"})
    ]
    net: Annotated[
        Amount, means("Charges less refunds; negative if more was given back.", example="12.00")
    ]


class UsageGroup(UsageSums, kw_only=True):
    """The sums of one group; it has the fields that you group by."""

    day: Annotated[str | UnsetType, means("The day (UTC).", format="date")] = UNSET
    month: Month | UnsetType = UNSET
    kind: Annotated[str | UnsetType, means("What was charged for.", **KIND)] = UNSET
    plan: Annotated[UsagePlan | UnsetType | None, means("Null for what has no plan.")] = UNSET


class Usage(Struct, rename={"since": "from", "until": "to"}):
    """What was charged and given back, in groups."""

    since: Annotated[
        str | None,
        means("The first day, if one was asked for.", format="date", example="2026-11-01"),
    ]
    until: Annotated[
        str | None,
        means("The day after the last, if asked for.", format="date", example="2026-12-01"),
    ]
    group_by: Annotated[Sequence[str], means("What the groups are by.", example=["month", "plan"])]
    currency: Currency
    total: Annotated[UsageSums, means("The sums of all groups.")]
    groups: Annotated[Sequence[UsageGroup], means("In the order of what they are by.")]


def show_usage(rows: Sequence[usage.UsageRow], query: Mapping[str, Any], currency: str) -> Usage:
    since, until, group_by = query.get("since"), query.get("until"), query["group_by"]
    return Usage(
        since=since and since.isoformat(),
        until=until and until.isoformat(),
        group_by=group_by,
        currency=currency,
        total=UsageSums(**_sums(rows)),
        groups=[_group(row, group_by) for row in rows],
    )


def _group(row: usage.UsageRow, group_by: Sequence[str]) -> UsageGroup:
    plan = UsagePlan(row.plan_id, row.plan_name) if row.plan_id is not None else None
    return UsageGroup(
        **_sums([row]),
        day=row.day or UNSET,
        month=row.month or UNSET,
        kind=row.kind or UNSET,
        plan=plan if "plan" in group_by else UNSET,
    )


def _sums(rows: Sequence[usage.UsageRow]) -> dict[str, Any]:
    charged = sum(row.charged_micros for row in rows)
    refunded = sum(row.refunded_micros for row in rows)
    return {
        "charges": UsageSum(sum(row.charges for row in rows), format_amount(charged)),
        "refunds": UsageSum(sum(row.refunds for row in rows), format_amount(refunded)),
        "net": format_amount(charged - refunded),
    }
