"""What a read model is: tables of its own that batches of events are written to."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from sqlalchemy import Column, Connection, Index, MetaData, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import SchemaItem

from domain.application import Recorded


class ReadModel(ABC):
    """Tables and how events fill them.

    Raise `version` when the tables or the handlers change: the model is then rebuilt from the
    log. `generation` names another set of the same tables, which a rebuild fills while the live
    set (generation "") serves.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    def __init__(self, generation: str = "") -> None:
        self.generation = generation
        self.metadata = MetaData()
        self.tables: Sequence[Table] = self.build()

    def of(self, generation: str) -> Self:
        """Return the same model over another set of tables."""
        return type(self)(generation)

    @abstractmethod
    def build(self) -> Sequence[Table]:
        """Define the tables of this generation."""

    @abstractmethod
    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write a batch of events, in log order, inside the caller's transaction."""

    def table(self, name: str, *items: SchemaItem) -> Table:
        """Define one table under the name that it has in this generation."""
        return Table(self.named(name), self.metadata, *items)

    def index(self, name: str, *columns: str | Column[Any], **options: Any) -> Index:
        """Define an index; it carries the generation, because a renamed table keeps its indexes."""
        return Index(self.named(name), *columns, **options)

    def named(self, name: str) -> str:
        """Return a name as it is in this generation."""
        return f"{name}__{self.generation}" if self.generation else name


def upsert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows; one whose primary key exists is replaced as a whole."""
    if not rows:
        return
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(table)
    keys = [column.name for column in table.primary_key]
    others = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=others), [*rows])


def execute_many(connection: Connection, statement: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run one statement over many rows; no rows, no round trip."""
    if rows:
        connection.execute(statement, [*rows])
