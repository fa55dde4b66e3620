"""Which checkpoint vouches for a month: the first one that covers its close.

Later ones cover it too, but the newest is another one each hour. The first stays the first, so a
statement that names it never changes. It is made about a minute after the close; until then nothing
vouches for the month.
"""

from typing import Any

from sqlalchemy import FromClause, Row, Select, select

from domain.errors import NotPossible
from projections.audit.checkpoint import NotACheckpoint, SignedCheckpoint


class ChangedCheckpoint(NotPossible):
    """Raised when the note of a kept checkpoint has been changed."""

    def __init__(self, number: int, position: int) -> None:
        self.position = position
        super().__init__(
            f"our checkpoint {number} (position {position}) is no longer the note that was kept; "
            "see: python -m app audit verify"
        )


def covering(rows: FromClause, position: int) -> Select[Any]:
    """Find the first kept checkpoint that vouches for the event at a position."""
    return select(rows).where(rows.c.position >= position).order_by(rows.c.number).limit(1)


def signed_in(row: Row[Any]) -> SignedCheckpoint:
    """Read the note of a row; raises ChangedCheckpoint if it is none, or of another position."""
    try:
        signed = SignedCheckpoint.read(row.note)
    except NotACheckpoint as error:
        raise ChangedCheckpoint(row.number, row.position) from error
    if signed.checkpoint.position != row.position:
        raise ChangedCheckpoint(row.number, row.position)
    return signed
