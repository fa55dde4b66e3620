"""What your organization was charged, by month and by use."""

from contextlib import suppress
from datetime import date
from typing import Any, Final

from flask import Response
from marshmallow import ValidationError, fields
from msgspec import convert

from app.http.edge.input import Names, Query, Reads
from app.http.edge.media import CSV, HTML, csv_blocks, csv_reply, preferred
from app.http.edge.operation import Group, link_to
from app.http.edge.replies import Answer, example, wait_for
from app.http.edge.request import Given
from app.http.edge.schemas import OR_EMPTY, example_of
from app.http.finance import replies
from app.http.finance.page import COLUMNS, POLICY, statement_page, statement_rows
from app.security.authorization import Caller
from domain.errors import NotFound, ValidationFailed
from projections.engine.shape import NAME
from projections.models.usage import DIMENSIONS

NOT_GROUPS = f"Must be one or two of {', '.join(DIMENSIONS)}, with a comma between them."
GROUPS_MAX = 2
_ONE = f"({'|'.join(DIMENSIONS)})"


class Day(Reads, fields.Field[date]):
    """A day in UTC."""

    def __init__(self, says: str, **kwargs: Any) -> None:
        form: Any = {"anyOf": [{"type": "string", "format": "date"}, OR_EMPTY], NAME: "DayFilter"}
        super().__init__(says, examples=["2026-11-01"], **form, **kwargs)

    def read(self, value: Any) -> date:
        with suppress(ValueError):
            day = date.fromisoformat(value)
            if day.isoformat() == value:  # Python also reads 20261121 and 2026-W47-6.
                return day
        raise ValidationError("Must be a date, such as 2026-11-21.")


class UsageQuery(Query):
    """Which days, and how to group them; an empty filter counts as absent."""

    since = Day("From this day on (UTC), by `charged_at`.", data_key="from")
    until = Day("Up to the day before this one.", data_key="to")
    group_by = Names(
        "One or two of `day`, `month`, `kind` and `plan`, with a comma between them.",
        DIMENSIONS,
        NOT_GROUPS,
        GROUPS_MAX,
        load_default=("month",),
        type="string",
        pattern=f"^({_ONE}(,{_ONE})?)?$",
        default="month",
        examples=["month,kind"],
    )


ROWS_MAX = 10_000  # Of one reply: thirty years by day, or a year of thirty plans.
TOO_MANY = f"These are more than {ROWS_MAX:,} groups: ask for fewer days, or group otherwise."
_ROWS: Final = statement_rows(convert(example_of(replies.Statement), replies.Statement))
TABLE: Final = b"".join(csv_blocks(COLUMNS, _ROWS)).decode()

blueprint = Group("Statements", "wallet", description=__doc__)


@blueprint.operation(
    "GET /v1/statements",
    reply=example("Your months, newest first.", list[replies.StatementSummary], "StatementsReply"),
    leads_to=link_to("read_statement", month="/data/0/month"),
)
def list_statements(caller: Caller, given: Given[None]) -> list[replies.StatementSummary]:
    """List the months of your wallet, newest first.

    There is one for each month from your first transaction on, also where nothing happened.
    """
    parts = given.parts
    wait_for(parts, parts.statements.name)
    found, closed = parts.views.read(parts.statements.all_of, caller.organization_id)
    return [replies.show_summary(each, is_final=each.month <= closed) for each in reversed(found)]


@blueprint.operation(
    "GET /v1/statements/<month>",
    reply=example("The statement.", replies.Statement),
    also={CSV: TABLE, HTML: "<!doctype html>…"},
    errors="NOT_FOUND",
)
def read_statement(caller: Caller, given: Given[None]) -> Answer | Response:
    """Read the statement of a month.

    A month is closed some minutes after its end; from then on its statement never changes. A
    transaction that is dated in a month and comes after its close is in the next month. With
    `Accept: text/csv` it comes as a table, with `text/html` as a page to print.
    """
    parts, month = given.parts, given.path["month"]
    wait_for(parts, parts.statements.name)
    with parts.views.reading() as connection:
        statements, closed = parts.statements.all_of(connection, caller.organization_id)
        found = next((each for each in statements if each.month == month), None)
        if found is None:
            raise NotFound
        closed_at = parts.statements.closed_at(connection, month) if month <= closed else None
        organization = parts.organizations.get(connection, caller.organization_id)
    checkpoint = parts.statement_checkpoint(closed_at)
    shown = replies.show_statement(found, is_final=closed_at is not None, checkpoint=checkpoint)
    kind = preferred(CSV, HTML)
    if kind == CSV:
        return csv_reply(COLUMNS, statement_rows(shown), f"statement-{shown.month}.csv")
    if kind == HTML:
        name = organization.name if organization is not None else ""
        page = statement_page(shown, name, parts.settings.issuer)
        headers = {"Content-Security-Policy": POLICY, "Vary": "Accept"}
        return Response(page, headers=headers, content_type=f"{HTML}; charset=utf-8")
    return Answer(shown, headers={"Vary": "Accept"})


@blueprint.operation(
    "GET /v1/usage",
    query=UsageQuery,
    reply=example("The usage.", replies.Usage),
    invalid={"group_by": NOT_GROUPS},
)
def read_usage(caller: Caller, given: Given[None]) -> replies.Usage:
    """Sum up what was charged and given back, by day, month, kind or plan.

    A refund counts for the kind and plan of its charge, on the day on which it came. Deposits and
    adjustments are no usage.
    """
    parts, query = given.parts, given.query
    wait_for(parts, parts.usage.name)
    owner, span = caller.organization_id, (query.get("since"), query.get("until"))
    rows = parts.views.read(parts.usage.grouped, owner, query["group_by"], span, ROWS_MAX + 1)
    if len(rows) > ROWS_MAX:
        raise ValidationFailed({"group_by": [TOO_MANY]})
    return replies.show_usage(rows, query, parts.settings.currency)
