"""Keys of personal data, of each organization and month; deleting one erases what it sealed.

AES-GCM (NIST SP 800-38D) with 256-bit keys and random 96-bit nonces. The keys are in the database
of the log and as durable as the log, because a crash must not lose a key that an event needs.

A key has a number in its month (`2026-11.0001`). It seals nothing itself: each stream has a key of
its own, to which eight steps lead, one for each base64 digit of the last six bytes of its id. A
step is the SHA-256 of key and digit, so from a key follow all keys below it and none beside or
above it (a tree of Goldreich, Goldwasser and Micali). To forget one stream its month is opened
out: the month's key is replaced, in one transaction, by the keys beside the way to the stream.
Every other stream keeps its key, also one that another process is just sealing with the key in its
memory. New records of the month get the next key. Earlier releases sealed with the month's key
itself, which has no number (`2026-10`). It goes on to the end of its month, because their processes
may still run, and only the whole month can be forgotten.

Long values, such as the facts of many numbers, are compressed before they are sealed (zlib, RFC
1950). That saves seven eighths of their bytes in the log, its copies and on the way to readers.
"""

import os
import time
import zlib
from binascii import b2a_base64
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Executable,
    LargeBinary,
    MetaData,
    Select,
    String,
    Table,
    Uuid,
    bindparam,
    func,
    select,
)
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from domain.accounts.operator_acts import Part
from domain.blocking import may_block, renew_soon
from domain.errors import ServiceUnavailable
from domain.personal import NUMBERED, Sealed
from projections.engine.database import Database
from projections.engine.hot_reads import HotStatement
from projections.engine.read_model import execute_many

KEY_BYTES = 32
NONCE_BYTES = 12
# A key stays in memory this long, so an erasure takes effect everywhere within a second.
CACHE_S = 1.0
AHEAD_S = 0.3  # So long before its end a key is read anew.
CACHE_MAX = 4_096

# Of a million streams of a month, one shares these digits with a given one once in 10^8 cases.
STEPS = 8
GONE = bytes(KEY_BYTES)  # In the place of a key that was opened out or erased.
MONTH_CHARS = 7
MAKE_MAX = 8  # Each try means that another process has made or erased a key meanwhile.
STREAMS_MAX = 100  # In one transaction, for which other writers of SQLite have to wait.

Row = tuple[str, bytes | None]  # The name of a key, and the key.
# Of an organization and a month or key; whether its newest key was asked for.
CacheKey = tuple[UUID, str, bool]
_DIGITS = f"{ascii_uppercase}{ascii_lowercase}{digits}+/"
_DIGIT = {digit: digit.encode() for digit in _DIGITS}

# Marks compressed values. No text begins with it; other bytes that do are always compressed.
PACKED = b"\0"
PACKED_BYTES = 1_024  # Shorter values hardly get shorter.
PACKED_LEVEL = 1  # Higher levels take twice the time and save a tenth of the bytes.


class PersonalKeys:
    """The vault of the domain. A row without a key means that it was opened out or erased.

    `personal_key_branches` has what is left of a key that was opened out: for each point on the way
    to a forgotten stream (the digits up to there) the 64 keys below it, without those gone.
    """

    def __init__(
        self, database: Database, random_bytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        self.database = database
        self._random_bytes = random_bytes
        self.metadata, self.branch_metadata = MetaData(), MetaData()
        self._rows = Table(
            "personal_keys",
            self.metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("month", String, primary_key=True),
            Column("key", LargeBinary),
        )
        self._branches = Table(
            "personal_key_branches",
            self.branch_metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("month", String, primary_key=True),
            Column("way", String, primary_key=True),
            Column("below", LargeBinary, nullable=False),
        )
        columns = self._rows.c
        rows = select(columns.month, columns.key)
        rows = rows.where(columns.organization_id == bindparam("organization"))
        self._one = HotStatement(rows.where(columns.month == bindparam("name")))
        of_month = rows.where(columns.month.like(bindparam("name").concat("%")))
        self._newest = HotStatement(of_month.order_by(columns.month.desc()).limit(1))
        self._cache: dict[CacheKey, tuple[float, Row]] = {}

    def seal(
        self,
        organization_id: UUID,
        month: str,
        subject: UUID,
        clear: bytes,
        *,
        exactly: bool = False,
    ) -> Sealed:
        """Seal bytes for one aggregate; the first value of a month creates the month's key."""
        if exactly:
            name, key = self._row(self._one, organization_id, month)
        else:
            name, key = self._current(organization_id, month)
        cipher = self._cipher(organization_id, name, key, subject)
        if cipher is None:
            raise ValueError(f"the personal data of {month} has been erased")
        nonce = self._random_bytes(NONCE_BYTES)
        return Sealed(name, nonce + cipher.encrypt(nonce, _pack(clear), subject.bytes))

    def open(self, organization_id: UUID, subject: UUID, sealed: Sealed) -> bytes | None:
        """Return the clear bytes, or None when the key was erased.

        Raises ValueError for a value that was sealed for another subject or has been changed.
        """
        name, key = self._row(self._one, organization_id, sealed.month)
        cipher = self._cipher(organization_id, name, key, subject)
        if cipher is None:
            return None
        nonce, box = sealed.box[:NONCE_BYTES], sealed.box[NONCE_BYTES:]
        try:
            return _unpack(cipher.decrypt(nonce, box, subject.bytes))
        except InvalidTag as error:
            raise ValueError(f"the sealed value of {subject} was not sealed for it") from error

    def has(self, organization_id: UUID, name: str, subject: UUID | None = None) -> bool:
        """Tell whether a key, or that of one stream, exists; as of a second ago at most."""
        _, key = self._row(self._one, organization_id, name)
        if subject is not None:
            return self._cipher(organization_id, name, key, subject) is not None
        if key is not None:
            return True
        left = select(1).where(*_named(self._branches, organization_id, name)).limit(1)
        return bool(self._read(left))

    def keys_before(
        self, before: str, organization_id: UUID | None = None
    ) -> Mapping[UUID, list[str]]:
        """Return the keys of all months before `YYYY-MM` by organization, each in order."""
        rows, branches = self._rows.c, self._branches.c
        whole = select(rows.organization_id, rows.month).where(rows.key.is_not(None))
        opened_out = select(branches.organization_id, branches.month)
        found = defaultdict[UUID, list[str]](list)
        for owner, name in self._read(whole.union(opened_out)):
            if name[:MONTH_CHARS] < before and organization_id in {None, owner}:
                found[owner].append(name)
        return {owner: sorted(names) for owner, names in found.items()}

    def rotate(self, newest: Iterable[tuple[UUID, str]]) -> None:
        """Go on with the next key after these; wait until no process seals with them any more."""
        for organization_id, name in newest:
            self._make(organization_id, _next(name))
        self._cache.clear()
        time.sleep(2 * CACHE_S)

    def erase(self, organization_id: UUID, parts: Iterable[Part]) -> int:
        """Delete keys, whole or those of single streams; return how many there were."""
        erased = 0
        for part in parts:
            if part.streams is None:
                erased += self._erase_whole(organization_id, part.key)
                continue
            for start in range(0, len(part.streams), STREAMS_MAX):
                some = part.streams[start : start + STREAMS_MAX]
                erased += self._forget(organization_id, part.key, some)
        self._cache.clear()
        return erased

    def _erase_whole(self, organization_id: UUID, name: str) -> int:
        with self._alone(organization_id, name) as (connection, root):
            mine = _named(self._rows, organization_id, name)
            connection.execute(self._rows.update().where(*mine).values(key=None))
            left = self._branches.delete().where(*_named(self._branches, organization_id, name))
            return int(connection.execute(left).rowcount > 0 or root is not None)

    def _forget(self, organization_id: UUID, name: str, streams: Sequence[UUID]) -> int:
        """Open a key out as far as needed, so that these streams and no others lose theirs."""
        assert NUMBERED in name, "a key that seals by itself cannot be opened out"
        rows, branches, erased = self._rows, self._branches, 0
        facts = {"organization_id": organization_id, "month": name}
        with self._alone(organization_id, name) as (connection, root):
            for stream in streams:
                way = _way(stream)
                last = connection.execute(self._branch(organization_id, name, way)).first()
                key = root if last is None else _child(last.below, way[len(last.way)])
                if key is None:
                    continue
                erased += 1
                done = 0 if last is None else len(last.way) + 1
                if last is None:
                    mine = _named(rows, organization_id, name)
                    connection.execute(rows.update().where(*mine).values(key=None))
                else:
                    here = (*_named(branches, organization_id, name), branches.c.way == last.way)
                    without = _without(last.below, way[done - 1])
                    connection.execute(branches.update().where(*here).values(below=without))
                left = [facts | branch for branch in _opened_out(key, way, done)]
                execute_many(connection, branches.insert(), left)
        return erased

    @contextmanager
    def _alone(self, organization_id: UUID, name: str) -> Iterator[tuple[Connection, bytes | None]]:
        """Lend a transaction that alone changes what is left of a key, and the whole key."""
        row = select(self._rows.c.key).where(*_named(self._rows, organization_id, name))
        with self.database.writing(durable=True) as connection:
            yield connection, connection.execute(row.with_for_update()).scalar_one_or_none()

    def _branch(self, organization_id: UUID, name: str, way: str) -> Select[tuple[str, bytes]]:
        """Select the last point on a way to which the key was opened out."""
        columns, points = self._branches.c, [way[:steps] for steps in range(STEPS)]
        mine = (*_named(self._branches, organization_id, name), columns.way.in_(points))
        found = select(columns.way, columns.below).where(*mine)
        return found.order_by(func.length(columns.way).desc()).limit(1)

    def _cipher(
        self, organization_id: UUID, name: str, key: bytes | None, subject: UUID
    ) -> AESGCM | None:
        """Return the cipher of a stream; `key` is that of this name, if it is whole."""
        way = _way(subject) if NUMBERED in name else ""
        if key is None and way:
            for point, below in self._read(self._branch(organization_id, name, way)):
                key, way = _child(below, way[len(point)]), way[len(point) + 1 :]
        if key is None:
            return None
        for digit in way:
            key = sha256(key + _DIGIT[digit]).digest()
        return AESGCM(key)

    def _current(self, organization_id: UUID, month: str) -> Row:
        """Return the key that seals new values of a month; make it if need be."""
        for _ in range(MAKE_MAX):
            name, key = self._row(self._newest, organization_id, month)
            if key is not None:
                return name, key
            self._cache.clear()
            self._make(organization_id, _next(name))
        raise ServiceUnavailable

    def _row(self, statement: HotStatement, organization_id: UUID, name: str) -> Row:
        """Return the name and the key of a row; those of a key that exists are held."""
        key = (organization_id, name, statement is self._newest)
        read = partial(self._read_row, key)
        if (cached := self._cache.get(key)) is not None:
            left_s = cached[0] + CACHE_S - time.monotonic()
            if left_s > 0:
                if left_s < AHEAD_S:
                    renew_soon(key, read)
                return cached[1]
        may_block(key, read)
        return read()

    def _read_row(self, key: CacheKey) -> Row:
        organization_id, name, is_newest = key
        statement = self._newest if is_newest else self._one
        read_s = time.monotonic()
        found = self._read(statement, organization=organization_id, name=name)
        row: Row = (found[0][0], found[0][1]) if found else (name, None)
        if len(self._cache) >= CACHE_MAX:
            self._cache.clear()
        if row[1] is None:
            self._cache.pop(key, None)
        else:
            self._cache[key] = (read_s, row)
        return row

    def _read(self, statement: HotStatement | Executable, **values: Any) -> Sequence[Any]:
        try:
            if isinstance(statement, HotStatement):
                return self.database.rows(statement, **values)
            return self.database.all(statement)
        except SQLAlchemyError as error:
            raise ServiceUnavailable from error

    def _make(self, organization_id: UUID, name: str) -> None:
        key = self._random_bytes(KEY_BYTES)
        row = {"organization_id": organization_id, "month": name, "key": key}
        try:
            self.database.change(self._rows.insert().values(row))
        except IntegrityError:
            return  # Another thread or process was first.
        except SQLAlchemyError as error:
            raise ServiceUnavailable from error


def _named(table: Table, organization_id: UUID, name: str) -> tuple[ColumnElement[bool], ...]:
    return table.c.organization_id == organization_id, table.c.month == name


def _next(name: str) -> str:
    """Return the name of the next key of the same month; earlier releases gave no number."""
    month, _, number = name.partition(NUMBERED)
    return f"{month}{NUMBERED}{int(number or 0) + 1:04d}"


def _way(stream: UUID) -> str:
    """Return the digits that lead to the key of a stream."""
    return b2a_base64(stream.bytes[-6:], newline=False).decode()


def _child(below: bytes, digit: str) -> bytes | None:
    """Return one of the keys of a branch; None if it is gone."""
    at = _DIGITS.index(digit) * KEY_BYTES
    key = below[at : at + KEY_BYTES]
    return None if key == GONE else key


def _without(below: bytes, digit: str) -> bytes:
    at = _DIGITS.index(digit) * KEY_BYTES
    return below[:at] + GONE + below[at + KEY_BYTES :]


def _opened_out(key: bytes, way: str, done: int) -> Iterator[dict[str, Any]]:
    """Yield a branch for each step of a way that remains: the keys beside it."""
    for steps in range(done, STEPS):
        below = b"".join(sha256(key + digit).digest() for digit in _DIGIT.values())
        yield {"way": way[:steps], "below": _without(below, way[steps])}
        key = sha256(key + _DIGIT[way[steps]]).digest()


def _pack(clear: bytes) -> bytes:
    if len(clear) < PACKED_BYTES and not clear.startswith(PACKED):
        return clear
    return PACKED + zlib.compress(clear, PACKED_LEVEL)


def _unpack(sealed: bytes) -> bytes:
    return zlib.decompress(sealed[len(PACKED) :]) if sealed.startswith(PACKED) else sealed
