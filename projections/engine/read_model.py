"""A read model has tables of its own, into which batches of events are written."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, Generic, Self, TypeVar
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Column, ColumnElement, Connection, Index, MetaData, Table, bindparam, select
from sqlalchemy.schema import SchemaItem

from domain.aggregates import topics_but
from domain.log.aggregate import Created, Event, Root
from domain.log.log import Log, Recorded
from domain.personal import Vault
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.inserting import upsert
from projections.engine.shape import Stored

# A batch must fit into a clock tick even when every event writes a row. A small one costs more for
# each event: it writes the pages of indexes that the next one writes again.
BATCH_EVENTS_MAX = 2_000

Uses = tuple[type[Event], ...]

NEVER = datetime.max.replace(tzinfo=UTC)  # The beginning of what has none in its row.
R = TypeVar("R", bound=Struct)

_position = attrgetter("position")


class Batch:
    """Events in the order of the log; each read model takes the kinds that it uses.

    `rows` has all that there is after one position and up to another, or the rows of the log where
    a consumer reads those as they are stored.
    """

    def __init__(self, rows: Sequence[Recorded], after: int, until: int) -> None:
        self.rows, self.after, self.until = rows, after, until

    @cached_property
    def _by_kind(self) -> Mapping[type, Sequence[Recorded]]:
        by_kind = defaultdict[type, list[Recorded]](list)
        for each in self.rows:
            by_kind[type(each.event)].append(each)
        return by_kind

    def of(self, uses: Uses) -> Sequence[Recorded]:
        """Return the events of these kinds, in log order."""
        parts = [part for kind, part in self._by_kind.items() if _is_used(kind, uses)]
        if len(parts) == len(self._by_kind):
            return self.rows
        return parts[0] if len(parts) == 1 else sorted(chain(*parts), key=_position)


@cache
def _is_used(kind: type, uses: Uses) -> bool:
    return issubclass(kind, uses)


class ReadModel(ABC):
    """Tables and how events fill them.

    Raise `version` when the tables or the handlers change: the model is then rebuilt from the
    log. `generation` names a second set of the same tables, which a rebuild fills while the first
    set (generation "") goes on serving.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    uses: ClassVar[Uses]  # The kinds of events that it is given; it gets no others.
    # The container sets both. The first opens what has to be searched; in the second the events of
    # a stream up to the one in hand may be read, which are the same at a rebuild.
    vault: Vault
    log: Log

    def __init__(self, generation: str = "") -> None:
        self.generation = generation
        self.metadata = MetaData()
        self.tables: Sequence[Table] = self.build()

    def of(self, generation: str) -> Self:
        """Return the same model over the tables of another generation."""
        fresh = type(self)(generation)
        lent = {"vault", "log"}
        fresh.__dict__.update({n: part for n, part in vars(self).items() if n in lent})
        return fresh

    @abstractmethod
    def build(self) -> Sequence[Table]:
        """Define the tables of this generation."""

    def follow(self, connection: Connection, batch: Batch) -> None:
        """Write what a batch of the log holds for this model."""
        used = batch.of(self.uses)
        if used:
            self.project(connection, used)

    @abstractmethod
    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Write these events, which are in log order, within the caller's transaction."""

    def table(self, name: str, *items: SchemaItem) -> Table:
        """Define a table under the name that it has in this generation."""
        return Table(self.named(name), self.metadata, *items)

    def index(
        self,
        name: str,
        *columns: str | Column[Any],
        where: ColumnElement[bool] | None = None,
        unique: bool = False,
    ) -> Index:
        """Define an index, perhaps only of the rows `where` something is true.

        Its name has the generation, as a renamed table keeps its indexes.
        """
        part: dict[str, Any] = {}
        if where is not None:
            part = {"sqlite_where": where, "postgresql_where": where}
        return Index(self.named(name), *columns, unique=unique, **part)

    def named(self, name: str) -> str:
        return f"{name}__{self.generation}" if self.generation else name


def unused_by(models: Iterable[ReadModel]) -> frozenset[str]:
    return topics_but(chain.from_iterable(model.uses for model in models))


def execute_many(connection: Connection, statement: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run one statement for many rows; for no rows nothing is sent."""
    if rows:
        connection.execute(statement, [*rows])


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
                found[key] = self.of_kind.started_by(event)
            elif key in found:
                event.apply(found[key])
        self.write(connection, [*found.values()])

    def write(self, connection: Connection, aggregates: Sequence[Root]) -> None:
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
