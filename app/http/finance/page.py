"""A statement as a page to read and print, which loads nothing, and as a table."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from app.http.edge.media import TEMPLATES, policy
from app.http.finance.replies import Statement, StatementLine
from domain.money import format_amount, parse_amount
from projections.models.transactions import KINDS

STYLE = (Path(__file__).parent / "statement.css").read_text("utf-8")
# Without a margin of the page browsers have no place for their own lines, such as the address.
A4 = """
@page { size: A4; margin: 0 }
@media print { html, body { font-size: 12px } main { padding: 20mm 18mm 0 } }
"""
POLICY = policy(STYLE)
COLUMNS = ("month", "currency", "item", "count", "debit", "credit", "balance")
KIND_NAMES = {each: each.replace("_", " ").capitalize() for each in KINDS}
KIND_NAMES |= {"topup": "Top-up", "monthly_link_fee": "Monthly fee"}


def statement_rows(statement: Statement) -> Iterator[Sequence[object]]:
    """Yield the rows of the table: both balances, and a row for each kind between them."""
    month = (statement.month, statement.currency)
    yield (*month, "opening_balance", "", "", "", statement.opening_balance)
    for line in statement.lines:
        yield (*month, line.kind, line.count, line.debit, line.credit, "")
    yield (*month, "closing_balance", "", "", "", statement.closing_balance)


def rows_with_totals(statement: Statement) -> Iterator[Sequence[object]]:
    """Yield the rows of a table for people; programs that add up a column need no totals."""
    yield from statement_rows(statement)
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


def statement_page(statement: Statement, organization: str, issuer: str, numbered: str = "") -> str:
    """Return the page; it names the organization, and the issuer if there is one.

    `numbered` is the number and period of one that is sent on paper, on which nothing else stands.
    """
    total, net = totals(statement)
    lines = [*statement.lines, total]
    amounts = [statement.opening_balance, statement.closing_balance, net]
    amounts += [each for line in lines for each in (line.debit, line.credit)]
    decimals = max(len(amount.partition(".")[2]) for amount in amounts)
    return TEMPLATES.get_template("statement.html").render(
        style=STYLE + A4 if numbered else STYLE,
        numbered=numbered,
        issuer=issuer,
        organization=organization,
        statement=statement,
        lines=lines,
        net=net,
        names=KIND_NAMES,
        shown=partial(_shown, decimals=decimals),
    )


def _shown(amount: str, decimals: int) -> str:
    """Format an amount with thousands separators; equal `decimals` keep the points in line."""
    sign = "-" if amount.startswith("-") else ""
    whole, _, fraction = amount.removeprefix("-").partition(".")
    return f"{sign}{int(whole):,}.{fraction.ljust(decimals, '0')}"
