"""The month of an entry is the latest of three: its own, the one before it, the open one."""

import pytest

from domain.finance.statement import statement_month
from tests.workers.fees import moment


@pytest.mark.parametrize(
    ("charged_at", "previous", "closed", "month"),
    [
        ("2026-03-31 23:59", "", "", "2026-03"),
        ("2026-04-01 00:00", "2026-03", "2026-02", "2026-04"),
        ("2026-03-31 23:59", "2026-03", "2026-03", "2026-04"),  # A fee that comes late.
        ("2026-02-28 12:00", "2026-03", "2026-01", "2026-03"),  # A clock that was set back.
        ("2026-01-31 12:00", "", "2026-11", "2026-12"),
        ("2026-01-31 12:00", "", "2026-12", "2027-01"),
        ("2026-07-01 00:00", "2026-03", "2026-03", "2026-07"),  # A clock that is ahead.
        ("2026-04-02 00:00", "2026-07", "2026-03", "2026-07"),  # Whoever comes after it.
    ],
)
def test_the_month_of_an_entry(charged_at: str, previous: str, closed: str, month: str) -> None:
    assert statement_month(moment(charged_at), previous, closed) == month
