"""The limit of lists: the same rows by primary key, decoded in the same way."""

from collections.abc import Sequence
from uuid import UUID

from app.bootstrap.container import Container
from projections.models import transactions as entries
from projections.models.links import LinkRow


def links(container: Container, ids: Sequence[UUID]) -> list[LinkRow]:
    """Read links, newest first, and their activations."""
    model = container.links
    statement = model._newest_first().where(model.rows.c.id.in_(ids))  # noqa: SLF001  # The very same decoding.
    with container.views.reading() as connection:
        return model._read(connection, statement)  # noqa: SLF001  # As above.


def transactions(container: Container, ids: Sequence[UUID]) -> list[entries.Transaction]:
    """Read transactions, newest first."""
    rows = container.transactions.rows
    statement = rows.select().where(rows.c.id.in_(ids)).order_by(rows.c.sequence.desc())
    with container.views.reading() as connection:
        return [entries._read(row) for row in connection.execute(statement)]  # noqa: SLF001  # As above.
