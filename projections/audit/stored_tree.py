"""The auditor's tree: the hash of each event of the log when the auditor first saw it.

It is kept as tiles of 256 leaves with their positions, and the root of each full tile, from which
roots and paths of every size follow. It can be made again from the log, but then it is only a
witness of what the log says at that time.
"""

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from struct import pack, unpack

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    LargeBinary,
    MetaData,
    Row,
    Table,
    select,
)

from projections.audit.tree import CompactRange, inclusion_path, root_of
from projections.engine.inserting import upsert

TILE = 256  # As in C2SP tlog-tiles: 8 KiB of hashes, so that a step rewrites little.
HASH_BYTES = 32

Leaf = tuple[int, bytes]  # The position of an event, and its leaf.


@dataclass(frozen=True, slots=True)
class Tile:
    """Up to 256 leaves in the order of the log; `root` is None until the tile is full."""

    number: int
    leaves: Sequence[Leaf]
    root: bytes | None = None

    @property
    def fault(self) -> str | None:
        """The error if the kept root of the tile is not that of its leaves, else None."""
        whole = len(self.leaves) == TILE
        if self.root == (root_of(leaf for _, leaf in self.leaves) if whole else None):
            return None
        return f"the kept root of tile {self.number} is not that of its leaves"


class StoredTree:
    """One row per tile; only the last one, which is not full, is ever written again."""

    def __init__(self) -> None:
        self.metadata = MetaData()
        self.rows = Table(
            "audit_tiles",
            self.metadata,
            Column("number", BigInteger, primary_key=True, autoincrement=False),
            Column("first_position", BigInteger, nullable=False, index=True),
            Column("positions", LargeBinary, nullable=False),
            Column("leaves", LargeBinary, nullable=False),
            Column("root", LargeBinary),
        )

    def end(self, connection: Connection) -> tuple[int, int]:
        """Return how many leaves there are, and the position of the last one (0 for none)."""
        last = self._newest(connection)
        if last is None:
            return 0, 0
        return last.number * TILE + len(last.leaves), last.leaves[-1][0]

    def append(self, connection: Connection, leaves: Sequence[Leaf]) -> None:
        last = self._newest(connection)
        if last is not None and len(last.leaves) == TILE:
            last = Tile(last.number + 1, ())
        number, present = (last.number, last.leaves) if last is not None else (0, ())
        new = [*present, *leaves]
        tiles = (new[start : start + TILE] for start in range(0, len(new), TILE))
        upsert(connection, self.rows, [_row(number + n, tile) for n, tile in enumerate(tiles)])

    def clear(self, connection: Connection) -> None:
        connection.execute(self.rows.delete())

    def tile(self, connection: Connection, number: int) -> Tile | None:
        found = connection.execute(select(self.rows).where(self.rows.c.number == number))
        row = found.one_or_none()
        return None if row is None else _tile(row)

    def range_of(self, connection: Connection, size: int) -> CompactRange:
        """Return the compact range of the tree of the first `size` leaves."""
        tree, (whole, rest) = CompactRange(), divmod(size, TILE)
        for root in self._roots(connection, whole):
            tree.append(root, TILE)
        if rest:
            for leaf in self._leaves(connection, whole)[:rest]:
                tree.append(leaf)
        if tree.size != size:
            raise LookupError(f"the tree has {tree.size} leaves, fewer than {size}")
        return tree

    def path(self, connection: Connection, index: int, size: int) -> Sequence[bytes]:
        """Return the path of a leaf to the root of the tree of the first `size` leaves."""
        roots = self._roots(connection, size // TILE)

        def between(begin: int, end: int) -> bytes:
            tree = CompactRange()
            for whole in range(begin // TILE, end // TILE if begin % TILE == 0 else 0):
                tree.append(roots[whole], TILE)
            if rest := end - begin - tree.size:
                start = (begin + tree.size) % TILE
                leaves = self._leaves(connection, (begin + tree.size) // TILE)
                for leaf in leaves[start : start + rest]:
                    tree.append(leaf)
            return tree.root()

        return inclusion_path(index, size, between)

    def size_at(self, connection: Connection, position: int) -> int:
        """Return how many leaves are of events up to a position."""
        tile = self._newest(connection, self.rows.c.first_position <= position)
        if tile is None:
            return 0
        return tile.number * TILE + bisect(tile.leaves, position, key=itemgetter(0))

    def index_of(self, connection: Connection, position: int) -> int | None:
        """Return the index of the leaf of the event at a position; None if there is none."""
        index = self.size_at(connection, position) - 1
        is_there = index >= 0 and self.position_of(connection, index) == position
        return index if is_there else None

    def position_of(self, connection: Connection, index: int) -> int:
        number, at = divmod(index, TILE)
        tile = self.tile(connection, number)
        if tile is None or at >= len(tile.leaves):
            raise LookupError(f"the tree has no leaf {index}")
        return tile.leaves[at][0]

    def _newest(self, connection: Connection, *wanted: ColumnElement[bool]) -> Tile | None:
        newest = select(self.rows).where(*wanted).order_by(self.rows.c.first_position.desc())
        row = connection.execute(newest.limit(1)).one_or_none()
        return None if row is None else _tile(row)

    def _roots(self, connection: Connection, count: int) -> Sequence[bytes]:
        columns = self.rows.c
        statement = select(columns.root).where(columns.number < count, columns.root.is_not(None))
        return connection.execute(statement.order_by(columns.number)).scalars().all()

    def _leaves(self, connection: Connection, number: int) -> Sequence[bytes]:
        tile = self.tile(connection, number)
        return [] if tile is None else [leaf for _, leaf in tile.leaves]


def _row(number: int, leaves: Sequence[Leaf]) -> dict[str, object]:
    positions, hashes = zip(*leaves, strict=True)
    return {
        "number": number,
        "first_position": positions[0],
        "positions": pack(f">{len(positions)}q", *positions),
        "leaves": b"".join(hashes),
        "root": root_of(hashes) if len(leaves) == TILE else None,
    }


def _tile(row: Row[tuple[int, int, bytes, bytes, bytes | None]]) -> Tile:
    data = bytes(row.leaves)
    hashes = [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]
    positions = unpack(f">{len(hashes)}q", row.positions)
    root = None if row.root is None else bytes(row.root)
    return Tile(row.number, [*zip(positions, hashes, strict=True)], root)
