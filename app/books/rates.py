"""Rates of exchange by day, from a table as the ECB publishes it: units for one euro.

A day without a rate takes the last one before it, of at most `DAYS_BACK` days before.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from fractions import Fraction

from app.books.reconcile import ERRORS_MAX, dates_in, rows_in
from domain.catalogue.file_errors import FileRefused
from domain.errors import NotPossible

TABLE_BYTES_MAX = 4 * 1024 * 1024  # Twice that of the ECB, which begins in 1999.
DAYS_BACK = 10  # Beyond, the table has ended, or has given the currency up.
CURRENCY = re.compile("(?!EUR)[A-Z]{3}")
RATE = re.compile(r"(?=.*[1-9])[0-9]{1,9}(\.[0-9]{1,12})?", re.ASCII)


class Rates:
    """What other currencies are worth in `base`; remembers which rates were used."""

    def __init__(self, data: bytes, base: str) -> None:
        """Read all of a table; raises FileRefused with what is wrong, by line and column."""
        if len(data) > TABLE_BYTES_MAX:
            raise FileRefused([f"is larger than {TABLE_BYTES_MAX} bytes"])
        self.base, self._used = base, dict[tuple[date, str], str]()
        self._days: defaultdict[date, dict[str, str]] = defaultdict(dict)
        rows = rows_in(data.decode("utf-8-sig", "replace"), ",")
        body = [(line, [*map(str.strip, row)]) for line, row in rows if any(row)]
        line, head = body.pop(0) if body else (1, [""])
        wrong = [
            f"line {line}, column {column}: {name[:40]!r} is not Date, or another currency than EUR"
            for column, name in enumerate(head, 1)
            if (name != "Date" if column == 1 else name and not CURRENCY.fullmatch(name))
            or (name and head.index(name) != column - 1)
        ]
        days = dates_in(((line, row[0]) for line, row in body), ", column Date")
        for (line, row), day in zip(body, days, strict=True):
            if day in self._days:
                wrong.append(f"line {line}, column Date: {day} was there before")
            for column, cell in enumerate(row[1:], 2):
                name = head[column - 1] if column <= len(head) else ""
                if name and RATE.fullmatch(cell):
                    self._days[day][name] = cell
                elif cell not in {"", "N/A"}:
                    what = "is no rate above zero" if name else "has no currency above it"
                    wrong.append(f"line {line}, column {name or column}: {cell[:40]!r} {what}")
        if wrong:
            raise FileRefused(wrong[:ERRORS_MAX])

    def adding_up(self) -> Callable[[str, int, str, date], int]:
        """Return what converts the next amount under a name, in a currency and of a day.

        It adds it to an exact sum, and returns by how much that has changed, rounded. So all that
        it returns adds up to the sum, rounded once, half of one to the even number.
        """
        sums = defaultdict[str, Fraction](Fraction)

        def convert(name: str, amount: int, currency: str, day: date) -> int:
            before = sums[name]
            worth = self._for_a_euro(self.base, day) / self._for_a_euro(currency, day)
            sums[name] += amount * worth
            return round(sums[name]) - round(before)

        return convert

    def _for_a_euro(self, currency: str, day: date) -> Fraction:
        if currency == "EUR":
            return Fraction(1)
        for its in (day - timedelta(back) for back in range(DAYS_BACK + 1)):
            if rate := self._days.get(its, {}).get(currency):
                self._used[its, currency] = rate
                return Fraction(rate)
        days = f"{day}, nor for the {DAYS_BACK} days before it"
        raise NotPossible(f"the table of rates has none of {currency} for {days}")

    def used(self) -> Iterator[list[str]]:
        """Yield the rates that were used, as a table that gives the same."""
        names = sorted({name for _, name in self._used})
        yield ["Date", *names]
        for day in sorted({day for day, _ in self._used}, reverse=True):
            yield [str(day), *(self._used.get((day, name), "N/A") for name in names)]
