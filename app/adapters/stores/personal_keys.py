"""Keys of personal data, one per organization and month; deleting one erases what it sealed.

AES-GCM (NIST SP 800-38D) with 256-bit keys and random 96-bit nonces. The keys are in the database
of the log and as durable as the log, because a crash must not lose a key that an event needs.

Long values, such as the facts of many numbers, are compressed before they are sealed (zlib, RFC
1950). That saves seven eighths of their bytes in the log, its copies and on the way to readers.
"""

import os
import time
import zlib
from collections.abc import Callable
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Column, LargeBinary, MetaData, String, Table, Uuid, and_, bindparam, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from domain.errors import ServiceUnavailable
from domain.personal import Sealed
from projections.engine.database import KEPT_BY_A_READER, Database
from projections.engine.hot_reads import HotStatement
from projections.engine.in_parts import change_in_parts

KEY_BYTES = 32
NONCE_BYTES = 12
# A key stays in memory this long, so an erasure takes effect everywhere within a second.
HELD_S = 1.0
HELD_MAX = 4_096

# Marks compressed values. No text begins with it; other bytes that do are always compressed.
PACKED = b"\0"
PACKED_BYTES = 1_024  # Shorter values hardly get shorter.
PACKED_LEVEL = 1  # Higher levels take twice the time and save a tenth of the bytes.


class PersonalKeys:
    """The vault of the domain, in one table. A row without a key means that it was erased."""

    def __init__(
        self,
        database: Database,
        random_bytes: Callable[[int], bytes] = os.urandom,
        server: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.database = database
        # The server whose log is written; another server may have lost a key.
        self._server = server
        self._random_bytes = random_bytes
        self.metadata = MetaData()
        self._rows = Table(
            "personal_keys",
            self.metadata,
            Column("organization_id", Uuid, primary_key=True),
            Column("month", String, primary_key=True),
            Column("key", LargeBinary),
        )
        columns = self._rows.c
        self._key = HotStatement(
            select(columns.key).where(
                columns.organization_id == bindparam("organization"),
                columns.month == bindparam("month"),
            )
        )
        self._held: dict[tuple[UUID, str, str | None], tuple[float, AESGCM]] = {}

    def seal(self, organization_id: UUID, month: str, subject: UUID, clear: bytes) -> Sealed:
        """Seal bytes for one aggregate; the first value of a month creates the month's key."""
        cipher = self._cipher(organization_id, month)
        if cipher is None:
            self._make(organization_id, month)
            cipher = self._cipher(organization_id, month)
        if cipher is None:
            message = f"the personal data of {month} has been erased"
            raise ValueError(message)
        nonce = self._random_bytes(NONCE_BYTES)
        return Sealed(month, nonce + cipher.encrypt(nonce, _pack(clear), subject.bytes))

    def open(self, organization_id: UUID, subject: UUID, sealed: Sealed) -> bytes | None:
        """Return the clear bytes, or None when the key was erased.

        Raises ValueError for a value that was sealed for another subject or has been changed.
        """
        cipher = self._cipher(organization_id, sealed.month)
        if cipher is None:
            return None
        nonce, box = sealed.box[:NONCE_BYTES], sealed.box[NONCE_BYTES:]
        try:
            return _unpack(cipher.decrypt(nonce, box, subject.bytes))
        except InvalidTag as error:
            message = f"the sealed value of {subject} was not sealed for it"
            raise ValueError(message) from error

    def holds(self, organization_id: UUID, month: str) -> bool:
        """Tell whether the key exists, as of a second ago at most; if not, it was erased."""
        return self._cipher(organization_id, month) is not None

    def erase(self, before: str, organization_id: UUID | None = None) -> int:
        """Delete the keys of all months before `YYYY-MM`; return how many there were."""
        columns = self._rows.c
        wanted = and_(columns.month < before, columns.key.is_not(None))
        if organization_id is not None:
            wanted = and_(wanted, columns.organization_id == organization_id)
        gone = self._rows.update().values(key=None)
        erased = change_in_parts(self.database, gone, wanted, columns.organization_id)
        self._held.clear()
        if not self.database.wipe():
            raise ServiceUnavailable(KEPT_BY_A_READER)
        return erased

    def _cipher(self, organization_id: UUID, month: str) -> AESGCM | None:
        name = (organization_id, month, self._server())
        held = self._held.get(name)
        now = time.monotonic()
        if held is not None and now - held[0] < HELD_S:
            return held[1]
        key = self._read(organization_id, month)
        if key is None:
            self._held.pop(name, None)
            return None
        if len(self._held) >= HELD_MAX:
            self._held.clear()
        cipher = AESGCM(key)
        self._held[name] = (now, cipher)
        return cipher

    def _read(self, organization_id: UUID, month: str) -> bytes | None:
        try:
            found = self.database.rows(self._key, organization=organization_id, month=month)
        except SQLAlchemyError as error:
            raise ServiceUnavailable from error
        return found[0][0] if found else None

    def _make(self, organization_id: UUID, month: str) -> None:
        row = {
            "organization_id": organization_id,
            "month": month,
            "key": self._random_bytes(KEY_BYTES),
        }
        try:
            with self.database.writing() as connection:
                connection.execute(self._rows.insert().values(row))
        except IntegrityError:
            return  # Another thread or process was first, or the month was erased.
        except SQLAlchemyError as error:
            raise ServiceUnavailable from error


def _pack(clear: bytes) -> bytes:
    if len(clear) < PACKED_BYTES and not clear.startswith(PACKED):
        return clear
    return PACKED + zlib.compress(clear, PACKED_LEVEL)


def _unpack(sealed: bytes) -> bytes:
    return zlib.decompress(sealed[len(PACKED) :]) if sealed.startswith(PACKED) else sealed
