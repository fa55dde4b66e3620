"""A checkpoint: a signed statement of what the log was up to a position, for others to keep.

Its form is that of C2SP `tlog-checkpoint` in a `signed-note`: origin, size of the tree, root, two
lines of our own (position and time), an empty line, and a line with the signature. This file writes
and reads it; callers decide whose key signs.
"""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple, Self

ED25519 = b"\x01"  # The type of its signatures in a note.
KEY_ID_BYTES, KEY_BYTES = 4, 32
HASH_BYTES = 32
NOTE_BYTES_MAX = 64 * 1024

_TEXT = re.compile(
    r"(?P<origin>[^\s+]+)\n(?P<size>0|[1-9][0-9]{0,18})\n(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"position (?P<position>0|[1-9][0-9]{0,18})\n"
    r"time (?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\n",
    re.ASCII,
)
_SIGNATURE = re.compile(r"\u2014 (?P<name>[^\s+]+) (?P<signed>[A-Za-z0-9+/]+={0,2})")


class NotACheckpoint(ValueError):
    """Raised for a text that is no checkpoint of this service; its message says why."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The tree of the first `size` events, the last of which stands at `position`."""

    origin: str
    size: int
    root: bytes
    position: int
    at: datetime

    def text(self) -> str:
        """Return the text to sign; the time is cut to milliseconds."""
        at = self.at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")
        root = b64encode(self.root).decode()
        return f"{self.origin}\n{self.size}\n{root}\nposition {self.position}\ntime {at}Z\n"


class Signature(NamedTuple):
    """One line below a note: the name and id of a key, and its signature."""

    name: str
    key_id: bytes
    signature: bytes


Verify = Callable[[bytes, bytes, bytes], bool]  # Public key, message, signature.


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint with its signatures, and the note that contains both."""

    checkpoint: Checkpoint
    signatures: Sequence[Signature]
    note: str

    @classmethod
    def make(
        cls, checkpoint: Checkpoint, public_key: bytes, sign: Callable[[bytes], bytes]
    ) -> Self:
        """Sign a checkpoint under the name of its origin."""
        name, text = checkpoint.origin, checkpoint.text()
        signed = Signature(name, key_id_of(name, public_key), sign(text.encode()))
        line = f"\u2014 {name} {b64encode(signed.key_id + signed.signature).decode()}\n"
        return cls(checkpoint, [signed], f"{text}\n{line}")

    @classmethod
    def read(cls, note: str) -> Self:
        """Read a note; nothing is verified. Raises NotACheckpoint."""
        text, _, lines = note.rpartition("\n\n")
        checkpoint = _read_text(f"{text}\n")
        if checkpoint is None or not lines or len(note) > NOTE_BYTES_MAX:
            raise NotACheckpoint("it is not a checkpoint of this service")
        signatures = [_read_signature(line) for line in lines.splitlines()]
        return cls(checkpoint, signatures, note)

    @property
    def key_id(self) -> str:
        """The id of the first key that signed, in hex."""
        return self.signatures[0].key_id.hex()

    def is_by(self, public_keys: Sequence[bytes]) -> bool:
        """Tell whether one of these keys is named in a signature; nothing is verified."""
        return any(
            key_id_of(name, public_key) == key_id
            for name, key_id, _ in self.signatures
            for public_key in public_keys
        )

    def fault(self, public_keys: Sequence[bytes], verify: Verify) -> str | None:
        """Say why no key among these has signed it; None if one has."""
        text = self.checkpoint.text().encode()
        for name, key_id, signature in self.signatures:
            for public_key in public_keys:
                if key_id_of(name, public_key) == key_id:
                    right = verify(public_key, text, signature)
                    return None if right else f"its signature by key {key_id.hex()} is wrong"
        return f"key {self.key_id}, which signed it, is not known here"


def key_id_of(name: str, public_key: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + ED25519 + public_key).digest()[:KEY_ID_BYTES]


def verifier_key(name: str, public_key: bytes) -> str:
    """Return a public key in the form for tools of signed notes: name+id+key."""
    key = b64encode(ED25519 + public_key).decode()
    return f"{name}+{key_id_of(name, public_key).hex()}+{key}"


def read_verifier_key(text: str) -> bytes:
    """Read a public key from the form of `verifier_key`; raises ValueError."""
    name, _, rest = text.strip().partition("+")
    key_id, _, key = rest.partition("+")
    with suppress(ValueError):
        kind, public_key = (decoded := b64decode(key, validate=True))[:1], decoded[1:]
        is_whole = kind == ED25519 and len(public_key) == KEY_BYTES
        if is_whole and key_id_of(name, public_key).hex() == key_id:
            return public_key
    raise ValueError("not the public key of an Ed25519 key, such as `keys list` prints")


def _read_text(text: str) -> Checkpoint | None:
    """Read the signed text; None if it is not written as `Checkpoint.text` writes it.

    Base64 has several forms of a root, and only one of them was signed.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    size, position, root = int(found["size"]), int(found["position"]), b64decode(found["root"])
    try:
        at = datetime.fromisoformat(found["at"])
    except ValueError:
        return None
    read = Checkpoint(found["origin"], size, root, position, at)
    return read if read.text() == text else None


def _read_signature(line: str) -> Signature:
    found = _SIGNATURE.fullmatch(line)
    try:
        signed = b64decode(found["signed"], validate=True) if found is not None else b""
    except binascii.Error:
        signed = b""
    if found is None or len(signed) <= KEY_ID_BYTES:
        raise NotACheckpoint("the line of its signature cannot be read")
    return Signature(found["name"], signed[:KEY_ID_BYTES], signed[KEY_ID_BYTES:])
