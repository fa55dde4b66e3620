"""The table that people read."""

from collections.abc import Iterable

from tests.bench.row import Aim, Row

HEADINGS = ("row", "ours", "limit", "unit", "ratio", "aim", "")


def render(rows: Iterable[Row]) -> str:
    """Lay the rows out in columns."""
    lines = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join(_join(line, widths) for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        _figure(row.ours),
        "" if row.limit is None else _figure(row.limit),
        row.unit,
        "" if row.limit is None else f"{row.ratio:.2f}",
        row.aim.text(row.unit),
        _verdict(row),
    )


def _verdict(row: Row) -> str:
    if row.aim == Aim():
        return ""
    return "met" if row.met else "missed"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _join(cells: tuple[str, ...], widths: list[int]) -> str:
    numbers = {1, 2, 4}
    padded = [
        cell.rjust(width) if column in numbers else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
