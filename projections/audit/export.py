"""The export of the log: one line of JSON for each event, and how it is read back.

A line is `{"position", "stream", "version", "topic", "state", "leaf"}`: `state` is the stored bytes
as text, `leaf` the hash of the event in the tree, in hex. So the root of every checkpoint can be
computed from the lines. Each line has only one valid form: reading and writing it again gives the
same bytes.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, BinaryIO
from uuid import UUID

import msgspec
from eventsourcing.domain import EventSourcingError
from eventsourcing.utils import TopicError

from domain.errors import ForOperator
from domain.log.aggregate import Created
from domain.log.log import Log, Poisoned, Stored
from domain.log.mapper import decode
from projections.audit.tree import CompactRange, leaf_hash
from projections.engine.reader import read_rows
from projections.engine.rebuild import Progress, ignore_progress

NO_LINE = "is no line of an export"
LINE_BYTES_MAX = 64 << 20  # Far above any event; a file without lines ends here.

Whole = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]


class Exported(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event of an export."""

    position: Whole
    stream: UUID
    version: Whole
    topic: str
    state: str
    leaf: str


class Subtrees(msgspec.Struct, frozen=True):
    """The tree before a part of an export: its size and its full subtrees."""

    size: int
    hashes: list[str]


class NoExport(ForOperator):
    """Raised with one line that says why a file cannot be imported."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Exported).decode


class Export:
    """The lines of the events after a position, and the tree as it grows with each of them."""

    def __init__(self, log: Log, until: int, progress: Progress = ignore_progress) -> None:
        self.tree = CompactRange()
        self.position = 0  # Of the last event that was read.
        self.events = 0  # How many lines there have been.
        self._log, self._until, self._progress = log, until, progress

    def skip_to(self, first: int) -> Subtrees:
        """Read the events before a position for their leaves only; return the tree over them."""
        for row in self._rows(first - 1):
            self._add_row(row, leaf_hash(*row))
        return Subtrees(self.tree.size, [each.hex() for each in self.tree.hashes])

    def lines(self) -> Iterator[bytes]:
        """Yield a line for each event from here on."""
        for row in self._rows(self._until):
            leaf = leaf_hash(*row)
            try:
                state = row.state.decode()
            except UnicodeDecodeError:
                raise Poisoned(row.position, "its stored bytes are no text") from None
            line = Exported(*row[:-1], state, leaf.hex())
            yield _encode(line) + b"\n"
            self._add_row(row, leaf)
            self.events += 1

    def _rows(self, until: int) -> Iterator[Stored]:
        return read_rows(self._log, self.position, until, self._progress)

    def _add_row(self, row: Stored, leaf: bytes) -> None:
        self.tree.append(leaf)
        self.position = row.position


def read_export(file: BinaryIO) -> Iterator[Stored]:
    """Read an export line by line; raises NoExport at the first line that was changed."""
    last, number = 0, 0
    while text := file.readline(LINE_BYTES_MAX):
        number += 1
        try:
            line = _decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise _refusal(number, NO_LINE) from None
        if _encode(line) + b"\n" != text:  # Spaces, repeated keys, or a cut line.
            raise _refusal(number, NO_LINE)
        row = Stored(line.position, line.stream, line.version, line.topic, line.state.encode())
        if row.position <= last:
            raise _refusal(number, f"position {row.position} does not rise")
        if leaf_hash(*row).hex() != line.leaf:
            raise _refusal(number, f"the leaf of position {row.position} is not that of its event")
        last = row.position
        yield row


def _refusal(number: int, reason: str) -> NoExport:
    return NoExport(f"line {number}: {reason}")


def event_of(row: Stored) -> object:
    """Decode an event of an export; raises NoExport if this release does not know it."""
    fault = f"this release cannot read the event {row.topic!r}"
    with suppress(EventSourcingError, TopicError, TypeError):
        event = decode(row.stream_id, row.version, row.topic, row.state)
        if not isinstance(event, Created) or event.originator_topic == row.topic.partition(".")[0]:
            return event
        fault = f"stream {row.stream_id} begins as {event.originator_topic!r} with {row.topic}"
    raise NoExport(f"position {row.position}: {fault}")
