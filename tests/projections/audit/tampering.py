"""One who may write to the database, and those who look at the log afterwards.

The log holds every stored form that ever was, each in a stream of its own, so every field of every
kind of event can be changed. Its auditor has seen all of it, and an outsider has kept a checkpoint
of every few events.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID, uuid5

from domain.log.log import Stored
from projections.audit.auditor import LogCheck
from projections.audit.checkpoint import Checkpoint
from projections.audit.report import Report
from projections.audit.tree import CompactRange, leaf_hash
from projections.audit.witnesses import Claim, Claims, KeptLeaves
from tests.golden.files import EVENTS_FOLDER
from tests.installation import Process
from tests.projections.histories import run_on_log, write_row

NAMESPACE = UUID("6a1d7f6e-7d0b-4b5e-9a57-5a4f2f0c8d11")
KEPT_EVERY = 7  # Events between two checkpoints of the outsider.
COLUMNS = ("stream", "version", "topic")
Path = tuple[str | int, ...]


class Change(NamedTuple):
    """A field of an event: a column of its row, or a path within its JSON."""

    kind: str
    path: Path

    def __str__(self) -> str:
        return f"{self.kind}: {'.'.join(map(str, self.path))}"


def changes() -> Iterator[Change]:
    """Yield every field of every kind of stored event."""
    for file in sorted(EVENTS_FOLDER.iterdir()):
        for column in COLUMNS:
            yield Change(file.name, (column,))
        for path in _paths(json.loads(file.read_bytes())):
            yield Change(file.name, ("state", *path))


def _paths(value: Any) -> Iterator[Path]:
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        yield (name,)
        if isinstance(part, dict | list):
            yield from ((name, *rest) for rest in _paths(part))


def changed(value: Any) -> Any:
    """Return another value that looks as likely; money moves by the least that there is."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value[:-1]}{'1' if value[-1:] == '0' else '0'}"
        case None:
            return 0
        case dict() | list():
            return type(value)() if value else [0]
        case _:
            raise TypeError(type(value).__name__)


def tampered(row: Stored, path: Path) -> Stored:
    """Return a row with one field changed."""
    match path:
        case ("stream",):
            return row._replace(stream_id=uuid5(NAMESPACE, "another"))
        case ("version",):
            return row._replace(version=row.version + 1_000)
        case ("topic",):
            return row._replace(topic=f"{row.topic}s")
        case (_, *within, last):
            state = json.loads(row.state)
            inner = state
            for name in within:
                inner = inner[name]
            inner[last] = changed(inner[last])
            text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
            return row._replace(state=text.encode())
    raise ValueError(path)


@dataclass
class Lab:
    """An installation with the log of all kinds, seen by its auditor and by an outsider."""

    process: Process
    rows: Mapping[str, Stored] = field(init=False)
    outside: Sequence[Claim] = field(init=False)

    def __post_init__(self) -> None:
        log, files = self.process.log, sorted(EVENTS_FOLDER.iterdir())
        for file in files:
            topic = file.name.rsplit(".", 2)[0]
            write_row(self.process, uuid5(NAMESPACE, file.name).hex, 1, topic, file.read_bytes())
        stored = log.stored(0, len(files))
        self.rows = dict(zip((file.name for file in files), stored, strict=True))
        self.process.tree_keeper.catch_up()
        self.outside = self._signed(stored)

    def _signed(self, rows: Sequence[Stored]) -> Sequence[Claim]:
        tree, claims = CompactRange(), []
        for row in rows:
            tree.append(leaf_hash(*row))
            if tree.size % KEPT_EVERY == 0 or tree.size == len(rows):
                at = self.process.clock()
                made = Checkpoint("api.example", tree.size, tree.root(), row.position, at)
                claims.append(Claim(f"{tree.size}.txt", made))
        return claims

    def write(self, row: Stored) -> None:
        """Overwrite the row at its position."""
        run_on_log(
            self.process,
            "UPDATE {table} SET originator_id = ?, originator_version = ?, topic = ?, state = ?"
            " WHERE {position} = ? RETURNING {position}",
            (row.stream_id.hex, row.version, row.topic, row.state, row.position),
        )

    def remove(self, position: int) -> None:
        run_on_log(
            self.process,
            "DELETE FROM {table} WHERE {position} = ? RETURNING {position}",
            (position,),
        )

    def insert(self, row: Stored) -> None:
        run_on_log(
            self.process,
            "INSERT INTO {table} ({position}, originator_id, originator_version, topic, state)"
            " VALUES (?, ?, ?, ?, ?) RETURNING {position}",
            (row.position, row.stream_id.hex, row.version, row.topic, row.state),
        )

    def move(self, position: int, to: int) -> None:
        run_on_log(
            self.process,
            "UPDATE {table} SET {position} = ? WHERE {position} = ? RETURNING {position}",
            (to, position),
        )

    def report(self) -> Report:
        """Audit with what is kept inside and outside."""
        leaves = KeptLeaves(self.process.views, self.process.kept_tree)
        check = LogCheck(self.process.log, [leaves, Claims(self.outside)])
        while check.step():
            pass
        return check.report

    def found_by_leaves(self) -> set[int]:
        """Return the positions that the kept leaves name."""
        words = ("not what it was", "is gone", "put in", "that stood at")
        failures = self.report().failures
        return {each.position for each in failures if any(word in each.reason for word in words)}

    def found_by_checkpoint(self) -> range:
        """Rebuild all that is inside; return the positions that the outsider's notes leave open."""
        self.process.tree_keeper.restart()
        verdicts, held = self.report().checkpoints, 0
        for verdict in verdicts:
            if not verdict.holds:
                return range(held + 1, verdict.position + 1)
            held = verdict.position
        return range(0)
