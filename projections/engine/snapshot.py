"""A read model whose rows are aggregates as they are now: it says only which of their fields."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Connection, Table, bindparam, select
from sqlalchemy.schema import SchemaItem

from domain.log.aggregate import Created, Event, Root
from domain.log.log import Recorded
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import upsert
from projections.engine.read_model import ReadModel
from projections.engine.shape import Stored

NEVER = datetime.max.replace(tzinfo=UTC)  # The beginning of what has none in its row.
R = TypeVar("R", bound=Struct)


class Snapshot(ReadModel, Generic[R]):
    """A row per aggregate, folded from the row and its events by the aggregate's own `apply`.

    So a row has all fields that `apply` reads. `created_at` is the moment of the first event.
    """

    of_kind: ClassVar[type[Root]]
    row: type[R]
    key: ClassVar[str] = "id"  # Names a row; a fact of each event, or the id of the stream.

    def build(self) -> Sequence[Table]:
        self.stored = Stored(self.row)
        self.rows = self.table(self.name, *self.stored.columns(self.key), *self.besides())
        self.by = self.rows.c[self.key]
        self._one = select(self.rows).where(self.by == bindparam("wanted"))
        self._some = HotStatement(select(self.rows).where(OneOf(self.by, "wanted")))
        return [self.rows]

    def besides(self) -> Sequence[SchemaItem]:
        """Define the columns and indexes that the table has besides the fields."""
        return []

    def derived(self, _row: R) -> Mapping[str, Any]:
        """Return the values of the columns besides the fields."""
        return {}

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Fold the events, after one read of the rows that are older than the batch."""
        used = (each.event for each in batch if isinstance(each.event, self.uses))
        events = [(self._key_of(event), event) for event in used]
        new = {key for key, event in events if isinstance(event, Created)}
        found = self._older(connection, {key for key, _ in events} - new)
        for key, event in events:
            if isinstance(event, Created):
                found[key] = self.of_kind.begun_by(event)
            elif key in found:
                event.apply(found[key])
        self.write(connection, [*found.values()])

    def write(self, connection: Connection, aggregates: Sequence[Root]) -> None:
        """Write the rows of aggregates."""
        rows = map(self._row_of, aggregates)
        values = [{**self.stored.row(each), **self.derived(each)} for each in rows]
        upsert(connection, self.rows, values)

    def get(self, connection: Connection, key: UUID | str) -> R | None:
        row = connection.execute(self._one, {"wanted": key}).one_or_none()
        return self.stored.read(row) if row else None

    def all(self, connection: Connection) -> list[R]:
        """Read all rows, oldest first."""
        ordered = select(self.rows).order_by(self.rows.c.created_at, self.by)
        return [*map(self.stored.read, connection.execute(ordered))]

    def _key_of(self, event: Event) -> Any:
        return event.originator_id if self.key == "id" else getattr(event, self.key)

    def _older(self, connection: Connection, keys: set[Any]) -> dict[Any, Root]:
        rows = map(self.stored.read, run(connection, self._some, wanted=[*keys]) if keys else ())
        return {getattr(row, self.key): self._restored(row) for row in rows}

    def _restored(self, row: Any) -> Root:
        made = object.__new__(self.of_kind)
        made.__base_init__(getattr(row, "id", None), 0, getattr(row, "created_at", NEVER))
        for name in {*row.__struct_fields__} - {"id", "created_at"}:
            setattr(made, name, getattr(row, name))
        return made

    def _row_of(self, aggregate: Root) -> R:
        names = {"created_at": "created_on"}
        fields = self.row.__struct_fields__
        return self.row(*(getattr(aggregate, names.get(each, each)) for each in fields))
