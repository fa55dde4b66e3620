"""`audit margin` and `audit trial-balance`: what the installation has earned, and its accounts."""

from datetime import datetime
from typing import Any

import click

from app.cli.arguments import Month, Point
from app.cli.installation import installation
from app.cli.output import as_json_option, show, show_list, watched
from domain.money import format_amount
from domain.months import month_of
from projections.audit.margin import By, Earned, Margin, margin_of
from projections.audit.trial_balance import (
    AccountBalance,
    AccountMonth,
    MonthBalance,
    TrialBalance,
    month_balance,
)
from projections.audit.trial_balance import trial_balance as add_up

Facts = dict[str, Any]


@click.command()
@click.option(
    "--by",
    type=click.Choice(["day", "month", "org", "plan", "provider"]),
    default="month",
    show_default=True,
    help="What each row is about.",
)
@as_json_option
def margin(*, by: By, as_json: bool) -> None:
    """Tell what was earned: revenue, refunds, costs of providers, and what is left.

    Left is the margin in the currency of the wallets, of which other costs and those that are not
    known have yet to be taken. `unknown` counts the latter.
    """
    with installation() as container, watched("Adding up") as progress:
        found = margin_of(container.log, by, progress)
        currency = found.currency or container.settings.currency
    keys = sorted((key for key, row in found.rows.items() if row != Earned()), key=_last_if_none)
    rows = [_row(found, key, currency) for key in keys]
    total = _earned(found.total, currency)
    if as_json:
        show({"by": by, "currency": currency, "data": rows, "total": total}, as_json=True)
    else:
        show_list(
            [*rows, {**dict.fromkeys(rows[0]), by: "total", **total}] if rows else [], as_json=False
        )


def _last_if_none(key: str | None) -> tuple[bool, str]:
    return key is None, key or ""


def _row(found: Margin, key: str | None, currency: str) -> Facts:
    name = {"name": found.names.get(key or "")} if found.by in {"org", "plan"} else {}
    return {found.by: key, **name, **_earned(found.rows[key], currency)}


def _earned(row: Earned, currency: str) -> Facts:
    others = sorted({its for its, _ in row.costs_micros} - {currency})
    return {
        "revenue": format_amount(row.revenue_micros),
        "refunds": format_amount(row.refunds_micros),
        "cost": format_amount(row.cost_micros(currency)),
        "estimated": format_amount(row.costs_micros[currency, True]),
        "other_costs": [
            {"amount": format_amount(row.cost_micros(its)), "currency": its} for its in others
        ],
        "unknown": row.unknown,
        "margin": format_amount(row.margin_micros(currency)),
    }


@click.command(name="trial-balance")
@click.option("--at", type=Point(), help="After this position, or at this time.")
@click.option("--month", type=Month(), help="Of a month, by the cut-off of the statements.")
@as_json_option
@click.pass_context
def trial_balance(
    context: click.Context, *, at: datetime | int | None, month: datetime | None, as_json: bool
) -> None:
    """Show every account with what it holds; exits with 1 when a currency does not sum to zero.

    Wallets are owed to the organizations, and are the sum of the balances that their newest entries
    state. All other accounts are sums of amounts.

    With --month each account has its opening, its movement in the month and its closing, above zero
    for a debit. They are those of the statements of this month.
    """
    if at is not None and month is not None:
        message = "give --at or --month"
        raise click.UsageError(message)
    with installation() as container, watched("Adding up") as progress:
        if month is None:
            found = add_up(container.log, at, progress)
            lines, facts = [_line(each) for each in found.lines], _facts(found, found.position)
        else:
            its = month_balance(container.log, month_of(month), progress)
            lines = [_month_line(each) for each in its.lines]
            facts = {"month": month_of(month), "final": its.is_final}
            facts |= _facts(its, its.closing.position)
    if as_json:
        show({**facts, "data": lines}, as_json=True)
    else:
        show_list(lines, as_json=False)
        show(facts, as_json=False)
    if not facts["ok"]:
        context.exit(1)


def _facts(found: TrialBalance | MonthBalance, position: int) -> Facts:
    differences = [
        {"amount": format_amount(micros), "currency": currency}
        for currency, micros in found.differences.items()
        if micros
    ]
    facts = {"ok": not differences, "position": position}
    return {**facts, "unknown_costs": found.unknown, "differences": differences}


def _line(line: AccountBalance) -> Facts:
    debit, credit = max(line.micros, 0), max(-line.micros, 0)
    amounts = {"debit": format_amount(debit), "credit": format_amount(credit)}
    return {"account": line.account, "currency": line.currency, **amounts}


def _month_line(line: AccountMonth) -> Facts:
    return {
        "account": line.account,
        "currency": line.currency,
        "opening": format_amount(line.opening_micros),
        "movement": format_amount(line.movement_micros),
        "closing": format_amount(line.closing_micros),
    }
