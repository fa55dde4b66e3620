"""The Ed25519 keys that sign checkpoints, as files beside the keys that sign tokens.

A key is one file `checkpoint-<when>.key`: a line with the time of its making, then PKCS8. The
newest signs. Older ones are kept, because others keep the notes that they signed for years.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from app.security.key_file import SigningKeysError, locked, write_file
from domain.cause import Clock

_MADE = re.compile(rb"created_at: (\S{32})\n(?=-----BEGIN )")


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """A key pair and the time at which it was made."""

    created_at: datetime
    private_key: Ed25519PrivateKey = field(repr=False)

    @property
    def public_key(self) -> bytes:
        return self.private_key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self.private_key.sign(message)


class CheckpointKeys:
    """The keys of one installation; each method raises SigningKeysError if they cannot be read."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock

    def list(self) -> Sequence[CheckpointKey]:
        """Return every key, oldest first; none in a directory that was never made."""
        try:
            keys = [_read(path) for path in self._directory.glob("checkpoint-*.key")]
        except OSError as error:
            raise SigningKeysError(self._directory, error.strerror) from error
        return sorted(keys, key=lambda key: key.created_at)

    def newest(self) -> CheckpointKey:
        """Return the key that signs; make it if there is none yet."""
        if not self.list():
            with locked(self._directory):
                if not self.list():
                    self._make()
        return self.list()[-1]

    def rotate(self) -> CheckpointKey:
        """Make a new key, which signs from now on."""
        with locked(self._directory):
            self._make()
        return self.list()[-1]

    def _make(self) -> None:
        created_at = self._clock()
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        text = f"created_at: {created_at.isoformat(timespec='microseconds')}\n"
        name = f"checkpoint-{created_at:%Y%m%dT%H%M%S%f}.key"
        write_file(self._directory / name, text.encode() + pem)


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether a key has signed a message."""
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
