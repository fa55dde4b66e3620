"""The Ed25519 keys that sign checkpoints, as files beside the keys that sign tokens.

A key is one file `checkpoint-<when>.key`: a line with the time of its making, then PKCS8. The
newest signs. Older ones are kept, because others keep the notes that they signed for years. Of a
revoked one only the public half is kept.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from app.security.key_file import SigningKeysError, locked, pem_of, read_revoked, write_file
from app.security.key_store import KeyStore
from projections.audit.checkpoint import Checkpoint, SignedCheckpoint

_MADE = re.compile(rb"created_at: (\S{32})\n(?=-----BEGIN )")


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """A key pair and the time at which it was made."""

    algorithm: ClassVar[str] = "Ed25519"
    created_at: datetime
    private_key: Ed25519PrivateKey = field(repr=False)

    @property
    def public_key(self) -> bytes:
        return self.private_key.public_key().public_bytes_raw()


class CheckpointKeys(KeyStore[CheckpointKey]):
    """The keys of one installation, by the hexadecimal digits of their public halves."""

    kind = "checkpoints"

    def live(self) -> Sequence[CheckpointKey]:
        """Return every key, oldest first; none in a directory that was never made."""
        try:
            return [*self._read().values()]
        except OSError as error:
            raise SigningKeysError(self._directory, error.strerror) from error

    def newest(self) -> CheckpointKey:
        """Return the key that signs; make it if there is none yet."""
        if not self.live():
            with locked(self._directory):
                if not self.live():
                    self._make({})[1]()
        return self.live()[-1]

    def sign(self, checkpoint: Checkpoint) -> SignedCheckpoint:
        """Sign with the newest key; make it if there is none yet."""
        key = self.newest()
        return SignedCheckpoint.make(checkpoint, key.public_key, key.private_key.sign)

    def ended_at(self, is_by: Callable[[Sequence[bytes]], bool]) -> datetime | None:
        """Return when the key was revoked that has signed something."""
        found = read_revoked(self._directory, self.kind).items()
        ends = [each.revoked_at for key_id, each in found if is_by([bytes.fromhex(key_id)])]
        return ends[0] if ends else None

    def _read(self) -> Mapping[str, CheckpointKey]:
        revoked = read_revoked(self._directory, self.kind)
        found = sorted(map(_read, self._files()), key=lambda key: key.created_at)
        keys = {key.public_key.hex(): key for key in found}
        return {key_id: key for key_id, key in keys.items() if key_id not in revoked}

    def _files(self) -> Iterator[Path]:
        return self._directory.glob("checkpoint-*.key")

    def files_of(self, key_id: str) -> Sequence[Path]:
        return [path for path in self._files() if _read(path).public_key.hex() == key_id]

    def _make(self, keys: Mapping[str, CheckpointKey]) -> tuple[str, Callable[[], object]]:
        made = CheckpointKey(self._after(keys), Ed25519PrivateKey.generate())
        text = f"created_at: {made.created_at.isoformat(timespec='microseconds')}\n".encode()
        path = self._directory / f"checkpoint-{made.created_at:%Y%m%dT%H%M%S%f}.key"
        return made.public_key.hex(), partial(write_file, path, text + pem_of(made.private_key))


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _read(path: Path) -> CheckpointKey:
    content = path.read_bytes()
    made = _MADE.match(content)
    try:
        key = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None  # Raised below, so that no part of a key is attached to the error.
    if made is None or not isinstance(key, Ed25519PrivateKey):
        raise SigningKeysError(path, "is not a checkpoint key of this service")
    return CheckpointKey(datetime.fromisoformat(made[1].decode()), key)
