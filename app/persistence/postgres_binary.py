"""Values as PostgreSQL takes and gives them in binary: the driver's own way costs ten times more.

The format is that of `array_recv` and `int8recv` in the server; it has not changed since 7.4.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from uuid import UUID

BIGINT, BYTEA, TEXT, UUID_ = 20, 17, 25, 2950  # By their numbers in `pg_type`.

_length = Struct("!i").pack
_array = Struct("!iiIii").pack  # Dimensions, whether there are NULLs, type, length, first index.
bigint = Struct("!q").pack


def bigints(values: Iterable[int]) -> bytes:
    """Return `bigint[]`."""
    return _array_of(BIGINT, [bigint(each) for each in values])


def byteas(values: Iterable[bytes]) -> bytes:
    """Return `bytea[]`."""
    return _array_of(BYTEA, [*values])


def texts(values: Iterable[str]) -> bytes:
    """Return `text[]`."""
    return _array_of(TEXT, [each.encode() for each in values])


def uuids(values: Iterable[UUID | str]) -> bytes:
    """Return `uuid[]`."""
    return _array_of(
        UUID_, [(each if isinstance(each, UUID) else UUID(each)).bytes for each in values]
    )


def from_bigint(value: bytes | None) -> int:
    """Return the number of a `bigint` that is not NULL."""
    assert value is not None
    return int.from_bytes(value, signed=True)


def _array_of(kind: int, values: Sequence[bytes]) -> bytes:
    elements = [_length(len(each)) + each for each in values]
    return b"".join([_array(1, 0, kind, len(elements), 1), *elements])
