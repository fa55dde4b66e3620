"""Rows of a view as a CSV that is sent while it is read."""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice

from flask import Response

from app.http.edge import media
from app.http.edge.replies import format_time
from projections.engine.sql_views import SqlView
from projections.finance.figures import Found


def csv_reply(name: str, view: SqlView, rows: Iterator[Found]) -> Response:
    """Return a download with the columns of a view.

    The first rows are read before the reply begins, so that an error is still told as one.
    """
    first = [*islice(rows, media.ROWS_OF_A_BLOCK)]
    cells = ([_cell(each) for each in row] for row in chain(first, rows))
    return media.csv_reply([*view.columns], cells, f"{name}.csv")


def _cell(value: object) -> object:
    return format_time(value) if isinstance(value, datetime) else value
