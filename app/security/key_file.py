"""Signing keys as files in one 0700 directory: creating, reading and writing them, under one lock.

A key is one file `<kid>.pem`, so that one rename creates or changes it. It holds two lines of
explanatory text (RFC 7468 §2: when it was made, how long its tokens live), then PKCS8. Of a revoked
key of any kind a file `<id>.revoked` stays, which outdoes a key file of that id.
"""

import fcntl
import os
import re
import stat
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Literal, get_args

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from domain.errors import ForOperator

Algorithm = Literal["RS256", "ES256"]
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
Kind = Literal["signing", "pepper", "webhooks", "checkpoints"]
KINDS: tuple[Kind, ...] = get_args(Kind)

RECHECK = timedelta(seconds=1)  # How long a process may overlook a change of the directory.
# A replaced key verifies this much longer: another process may sign with it for RECHECK, and the
# signing itself takes time.
SETTLE = 2 * RECHECK
FOREVER = datetime.max.replace(tzinfo=UTC)
RSA_BITS = 2048
P256_BYTES = 32

_TEXT = re.compile(rb"created_at: (\S{32})\nlifetime_s: ([0-9]{1,9})\n(?=-----BEGIN )")


class SigningKeysError(ForOperator):
    """Raised when the directory SIGNING_KEYS cannot be used; its text is one line."""

    def __init__(self, path: Path, reason: str | None) -> None:
        super().__init__(f"SIGNING_KEYS: {path}: {reason}")


class Revoked(msgspec.Struct, frozen=True):
    """What is kept of a revoked key beside its id; nothing of it is secret."""

    kind: Kind
    created_at: datetime | None
    revoked_at: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """A key pair; `kid` is half of its RFC 7638 thumbprint, so it never names another key.

    `lifetime_s` is the longest time for which a token that it signed may be accepted, and
    `retires_at` the end of the last such token (FOREVER while it signs).
    """

    kid: str
    algorithm: Algorithm
    created_at: datetime
    lifetime_s: int
    public_key: PublicKey
    private_key: PrivateKey = field(repr=False)
    retires_at: datetime = FOREVER

    def jwk(self) -> dict[str, str]:
        """Return the public key as a JWK (RFC 7517)."""
        return {**_members(self.public_key), "kid": self.kid, "use": "sig", "alg": self.algorithm}


def generate_key(algorithm: Algorithm, created_at: datetime, lifetime_s: int) -> Key:
    """Make a key pair of 2048 bits (RS256) or on P-256 (ES256)."""
    if algorithm == "ES256":
        return _key(ec.generate_private_key(ec.SECP256R1()), created_at, lifetime_s)
    private_key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    return _key(private_key, created_at, lifetime_s)


def save_key(directory: Path, key: Key) -> None:
    """Write or replace the file of a key; the caller holds the lock."""
    created_at = key.created_at.isoformat(timespec="microseconds")
    text = f"created_at: {created_at}\nlifetime_s: {key.lifetime_s}\n"
    write_file(key_path(directory, key.kid), text.encode() + pem_of(key.private_key))


def pem_of(key: PrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def key_path(directory: Path, kid: str) -> Path:
    return directory / f"{kid}.pem"


def read_keys(directory: Path, known: Mapping[str, Key]) -> dict[str, Key]:
    """Return the keys of the directory, oldest first; a `known` key is not parsed again.

    Raises SigningKeysError for a file that is no key of this service, OSError for a directory that
    cannot be listed.
    """
    revoked = read_revoked(directory, "signing")
    files = [path for path in directory.iterdir() if path.suffix == ".pem"]
    found = (_read_key(path, known.get(path.stem)) for path in files if path.stem not in revoked)
    keys = sorted((key for key in found if key), key=lambda key: (key.created_at, key.kid))
    # A revoked key also ended its predecessor, which must not come back to life.
    starts = [key.created_at for key in keys]
    starts = sorted([*starts, *(each.created_at for each in revoked.values() if each.created_at)])
    return {
        key.kid: replace(key, retires_at=_end(key, [at for at in starts if at > key.created_at]))
        for key in keys
    }


def read_revoked(directory: Path, kind: Kind) -> dict[str, Revoked]:
    """Return what is kept of the revoked keys of a kind, by their ids."""
    found = {}
    for path in sorted(directory.glob("*.revoked")):
        try:
            found[path.stem] = msgspec.json.decode(path.read_bytes(), type=Revoked)
        except msgspec.MsgspecError:
            raise SigningKeysError(path, "is not what is kept of a revoked key") from None
    return {key_id: each for key_id, each in found.items() if each.kind == kind}


def is_read_only(directory: Path) -> bool:
    """Tell whether nobody writes there; raises SigningKeysError where others have access."""
    if os.statvfs(directory).f_flag & os.ST_RDONLY:
        return True  # Whoever runs a container sets the modes of its mounts.
    if stat.S_IMODE(directory.stat().st_mode) & 0o077:
        raise SigningKeysError(directory, "others have access; set its mode to 0700")
    return False


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory as its only writer among all processes; create it if it is missing.

    At the end the directory gets a modification time that it never had. Otherwise two changes
    within one tick of the file system's clock would look like one, and a reader would miss the
    second.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_read_only(directory):
            yield
            return
        # A separate file: NFS locks only files open for writing, and a directory cannot be.
        with alone(directory / ".lock"):
            before_ns = directory.stat().st_mtime_ns
            try:
                yield
            finally:
                latest_ns = max(before_ns, directory.stat().st_mtime_ns)
                os.utime(directory, ns=(latest_ns + 1, latest_ns + 1))
                sync(directory)
    except OSError as error:
        raise SigningKeysError(directory, error.strerror) from error


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold a lock between processes, on a file of its own that is made if it is missing."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_file(path: Path, content: bytes, mode: int = 0o600, name: str = ".draft") -> None:
    """Write a file of this mode, complete or not at all; nobody else writes that draft now."""
    draft = path.with_name(name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(draft, flags, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _end(key: Key, later: Sequence[datetime]) -> datetime:
    """Return when a key retires, of which these are the times of its successors."""
    return later[0] + timedelta(seconds=key.lifetime_s) + SETTLE if later else FOREVER


def _read_key(path: Path, known: Key | None) -> Key | None:
    try:
        content = path.read_bytes()
        text = _TEXT.match(content)
        if text:
            created_at, lifetime_s = datetime.fromisoformat(text[1].decode()), int(text[2])
            if known:
                return replace(known, created_at=created_at, lifetime_s=lifetime_s)
            key = _key(serialization.load_pem_private_key(content, None), created_at, lifetime_s)
            if key.kid == path.stem:
                return key
    except FileNotFoundError:  # A rotation has deleted it since the listing.
        return None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Raised below, outside the handler, so that no part of a key is attached to the error.
        pass
    raise SigningKeysError(path, "is not a signing key of this service")


def _key(private_key: object, created_at: datetime, lifetime_s: int) -> Key:
    if not isinstance(private_key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise TypeError
    public_key = private_key.public_key()
    members = dumps(_members(public_key), sort_keys=True, separators=(",", ":"))
    return Key(
        kid=sha256(members.encode()).hexdigest()[:32],
        algorithm="RS256" if isinstance(public_key, rsa.RSAPublicKey) else "ES256",
        created_at=created_at,
        lifetime_s=lifetime_s,
        public_key=public_key,
        private_key=private_key,
    )


def _members(public_key: PublicKey) -> dict[str, str]:
    """Return the required members of a JWK (RFC 7518 §6), which its thumbprint covers."""
    if isinstance(public_key, rsa.RSAPublicKey):
        modulus, exponent = public_key.public_numbers().n, public_key.public_numbers().e
        return {
            "kty": "RSA",
            "n": _base64(modulus, (modulus.bit_length() + 7) // 8),
            "e": _base64(exponent, (exponent.bit_length() + 7) // 8),
        }
    point = public_key.public_numbers()
    x, y = _base64(point.x, P256_BYTES), _base64(point.y, P256_BYTES)
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def _base64(number: int, size: int) -> str:
    return urlsafe_b64encode(number.to_bytes(size, "big")).rstrip(b"=").decode()
