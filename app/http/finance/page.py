"""A statement as a page to read and print, which loads nothing, and as a table."""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template

from flask import Response

from app.http.edge.media import HTML
from app.http.finance.replies import Statement, StatementLine
from domain.money import format_amount, parse_amount

HERE = Path(__file__).parent
STYLE = (HERE / "statement.css").read_text("utf-8")
PAGE = Template((HERE / "statement.html").read_text("utf-8"))
STYLE_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
COLUMNS = ("month", "currency", "item", "count", "debit", "credit", "balance")
KIND_NAMES = {
    "activation": "Activation",
    "topup": "Top-up",
    "refund": "Refund",
    "monthly_link_fee": "Monthly fee",
    "lookup": "Lookup",
    "bulk_lookup": "Bulk lookup",
    "deposit": "Deposit",
    "adjustment": "Adjustment",
}


def statement_rows(statement: Statement) -> Iterator[Sequence[object]]:
    """Yield the rows of the table: both balances, and a row for each kind between them."""
    month = (statement.month, statement.currency)
    yield (*month, "opening_balance", "", "", "", statement.opening_balance)
    for line in statement.lines:
        yield (*month, line.kind, line.count, line.debit, line.credit, "")
    yield (*month, "closing_balance", "", "", "", statement.closing_balance)


def total_rows(statement: Statement) -> Iterator[Sequence[object]]:
    """Yield the rows that end a table for people; programs that add up a column have none."""
    total, net = totals(statement)
    month = (statement.month, statement.currency)
    yield (*month, "total", total.count, total.debit, total.credit, "")
    yield (*month, "net", "", "", "", net)


def totals(statement: Statement) -> tuple[StatementLine, str]:
    """Return the sum of all lines, and credit less debit."""
    debit = sum(parse_amount(line.debit) for line in statement.lines)
    credit = sum(parse_amount(line.credit) for line in statement.lines)
    count = sum(line.count for line in statement.lines)
    total = StatementLine("Total", count, format_amount(debit), format_amount(credit))
    return total, format_amount(credit - debit)


def statement_page(statement: Statement, organization: str, issuer: str) -> str:
    """Return the page; it names the organization, and the issuer if there is one."""
    total, net = totals(statement)
    amounts = [statement.opening_balance, statement.closing_balance, net]
    amounts += [each for line in [*statement.lines, total] for each in (line.debit, line.credit)]
    decimals = max(len(amount.partition(".")[2]) for amount in amounts)
    checkpoint = statement.checkpoint
    return PAGE.substitute(
        style=STYLE,
        issuer=f'<p class="issuer">{escape(issuer)}</p>' if issuer else "",
        organization=escape(organization),
        organization_id=statement.organization,
        month=statement.month,
        currency=statement.currency,
        opening=_shown(statement.opening_balance, decimals),
        closing=_shown(statement.closing_balance, decimals),
        state="Final" if statement.final else "Not final: the month is not closed",
        lines="".join(_line(line, decimals) for line in statement.lines),
        total=_line(total, decimals),
        net=_shown(net, decimals),
        places=_places(statement),
        checkpoint=""
        if checkpoint is None
        else f"<h2>Signed checkpoint of the log</h2><pre>{escape(checkpoint)}</pre>",
    )


def _line(line: StatementLine, decimals: int) -> str:
    name = escape(KIND_NAMES.get(line.kind, line.kind))
    cells = (f"{line.count:,}", _shown(line.debit, decimals), _shown(line.credit, decimals))
    return f"<tr><th scope=row>{name}</th>{''.join(f'<td>{each}</td>' for each in cells)}</tr>\n"


def _places(statement: Statement) -> str:
    first, last = statement.first_sequence, statement.last_sequence
    if first is None:
        return "No transactions"
    positions = f"{statement.first_position:,} to {statement.last_position:,}"
    return f"Transactions {first:,} to {last:,}, log positions {positions}"


def _shown(amount: str, decimals: int) -> str:
    """Format an amount with thousands separators; equal `decimals` keep the points in line."""
    sign = "-" if amount.startswith("-") else ""
    whole, _, fraction = amount.removeprefix("-").partition(".")
    return f"{sign}{int(whole):,}.{fraction.ljust(decimals, '0')}"


def page_reply(page: str) -> Response:
    """Reply with a page that may load nothing."""
    headers = {"Content-Security-Policy": POLICY, "Vary": "Accept"}
    return Response(page, headers=headers, content_type=f"{HTML}; charset=utf-8")
