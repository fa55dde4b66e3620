"""A calendar month (UTC) of the books, closed once and for ever, by `workers/months.py`.

An operator closes it where the clock must not.
"""

from typing import Self

from domain.cause import Cause
from domain.log.aggregate import ByOperator, Created, Root, sets


class Month(Root):
    """A month that is closed; an open one has no stream.

    Entries after its event in the log belong to a later month, whatever their timestamps say.
    """

    TOPIC = "month"

    class Closed(Created, ByOperator):
        """`month` as YYYY-MM."""

        TOPIC = "month.closed"
        SETS = sets("month")

        month: str

    month: str

    @classmethod
    def close(cls, month: str, cause: Cause) -> Self:
        """Close a month; a second close collides, because the id is derived."""
        return cls.begin(cls.Closed, cause, Month.id_of(month), month=month)
