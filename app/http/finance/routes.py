"""Statements and usage of the calling organization."""

from typing import Any, Final

from flask import Response

from app.http.edge.input import Blueprint
from app.http.edge.media import CSV, HTML, JSON, also_sent_as, csv_reply, preferred
from app.http.edge.operation import operation
from app.http.edge.replies import success, wait_for
from app.http.edge.request import container
from app.http.finance.input import NOT_GROUPS, UsageQuery
from app.http.finance.page import COLUMNS, page_reply, statement_page, statement_rows
from app.http.finance.replies import (
    STATEMENT,
    STATEMENTS,
    USAGE,
    Statement,
    show_statement,
    show_summary,
    show_usage,
)
from app.security.authorization import Caller
from domain.errors import NotAcceptable, NotFound, ValidationFailed

ROWS_MAX = 10_000  # Of one reply: thirty years by day, or a year of thirty plans.
TOO_MANY = f"These are more than {ROWS_MAX:,} groups: ask for fewer days, or group otherwise."
TABLE: Final = (
    f"{','.join(COLUMNS)}\r\n2026-11,USD,opening_balance,,,,100.00\r\n"
    "2026-11,USD,bulk_lookup,2,12.50,0.00,\r\n2026-11,USD,closing_balance,,,,87.50\r\n"
)

blueprint = Blueprint(
    "Statements", __name__, description="What your organization was charged, by month and by use."
)


@blueprint.route("/v1/statements", methods=["GET"])
@operation(scope="wallet")
@blueprint.replies(200, STATEMENTS, leads_to=[("read_statement", "month", "/data/0/month")])
def list_statements(caller: Caller) -> Response:
    """List the months of your wallet, newest first.

    There is one for each month from your first transaction on, also where nothing happened.
    """
    parts = container()
    wait_for(parts, parts.statements.name)
    with parts.views.reading() as connection:
        found, closed = parts.statements.all_of(connection, caller.organization_id)
    return success([show_summary(each, is_final=each.month <= closed) for each in reversed(found)])


@blueprint.route("/v1/statements/<month>", methods=["GET"])
@operation(scope="wallet", refusals=[NotFound(), NotAcceptable(JSON, CSV, HTML)])
@also_sent_as({CSV: TABLE, HTML: "<!doctype html>…"})
@blueprint.replies(200, STATEMENT)
def read_statement(caller: Caller, month: str) -> Response:
    """Read the statement of a month.

    A month is closed some minutes after its end; from then on its statement never changes. A
    transaction that is dated in a month and comes after its close is in the next month. With
    `Accept: text/csv` it comes as a table, with `text/html` as a page to print.
    """
    parts = container()
    wait_for(parts, parts.statements.name)
    with parts.views.reading() as connection:
        statements, closed = parts.statements.all_of(connection, caller.organization_id)
        found = next((each for each in statements if each.month == month), None)
        if found is None:
            raise NotFound
        closed_at = parts.statements.closed_at(connection, month) if month <= closed else None
        organization = parts.organizations.get(connection, caller.organization_id)
    checkpoint = parts.statement_checkpoint(closed_at)
    shown = show_statement(found, is_final=closed_at is not None, checkpoint=checkpoint)
    return _reply(shown, organization.name if organization is not None else "")


def _reply(shown: Statement, organization: str) -> Response:
    kind = preferred(CSV, HTML)
    if kind == CSV:
        return csv_reply(COLUMNS, statement_rows(shown), f"statement-{shown.month}.csv")
    if kind == HTML:
        return page_reply(statement_page(shown, organization))
    return success(shown, headers={"Vary": "Accept"})


@blueprint.route("/v1/usage", methods=["GET"])
@operation(scope="wallet", refusals=[ValidationFailed({"group_by": [NOT_GROUPS]})])
@blueprint.arguments(UsageQuery, location="query")
@blueprint.replies(200, USAGE)
def read_usage(caller: Caller, query: dict[str, Any]) -> Response:
    """Sum up what was charged and given back, by day, month, kind or plan.

    A refund counts for the kind and plan of its charge, on the day on which it came. Deposits and
    adjustments are no usage.
    """
    parts = container()
    wait_for(parts, parts.usage.name)
    with parts.views.reading() as connection:
        rows = parts.usage.grouped(
            connection,
            caller.organization_id,
            query["group_by"],
            (query.get("since"), query.get("until")),
            ROWS_MAX + 1,
        )
    if len(rows) > ROWS_MAX:
        raise ValidationFailed({"group_by": [TOO_MANY]})
    return success(show_usage(rows, query, parts.settings.currency))
