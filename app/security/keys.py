"""The signing keys and the pepper that all processes of an installation share; no JWT."""

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Literal

from app.security.key_file import (
    FOREVER,
    RECHECK,
    Algorithm,
    Key,
    SigningKeysError,
    generate_key,
    key_path,
    locked,
    read_keys,
    save_key,
    write_file,
)
from app.security.secrets import SecretHasher
from domain.at_once import may_wait
from domain.cause import Clock

State = Literal["signing", "verifying", "retired"]

LOOK_S = 1.0  # The longest wait for another thread's look at the directory; it takes milliseconds.
FIRST = "first"  # The file with the kid of the first key of the directory.
PEPPER = "pepper"  # The name of its file.
WEBHOOK_KEY = "webhook-key"
PEPPER_BYTES = 32  # Of the pepper and of the webhook key.
BELIEVED_S = 60  # How long a comparison of keys holds; each one asks the database.

_PEPPER = re.compile(rb"[0-9a-f]{64}")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListedKey:
    """What an operator sees of a key."""

    kid: str
    algorithm: Algorithm
    created_at: datetime
    state: State


class KeyRing:
    """The keys of one installation; the newest signs. Thread-safe.

    `algorithm` is for keys made here; older keys of the other algorithm still verify.
    `retire_after_s` is the lifetime of a token plus the leeway of its verification. Every process
    that signs calls `ensure` at its start. Each method raises SigningKeysError while no keys can be
    read. Once read, keys stay in use while the directory is unreadable. Deleted keys are gone, but
    a directory without any key counts as unreadable. A directory that hangs blocks one thread.
    """

    def __init__(
        self, directory: Path, algorithm: Algorithm, clock: Clock, retire_after_s: int
    ) -> None:
        self._directory = directory
        self._algorithm = algorithm
        self._clock = clock
        self._retire_after_s = retire_after_s
        self._guard = Lock()
        self._keys: Mapping[str, Key] = {}  # Oldest first; replaced as a whole, never changed.
        self._read_ns: int | None = None  # None: never read, or the last attempt failed.
        self._checked_at = _LONG_AGO
        self._outage = _Outage()

    def ensure(self) -> None:
        """Create the directory and a first key of the algorithm, unless another process has."""
        with locked(self._directory):
            newest = _newest(read_keys(self._directory, self._keys))
            if newest is None or newest.algorithm != self._algorithm:
                self._make(newest)
            elif newest.lifetime_s < self._retire_after_s:
                # The lifetime was raised, so the key must also outlive the longer tokens.
                save_key(self._directory, replace(newest, lifetime_s=self._retire_after_s))
        self._look()

    def first_kid(self) -> str | None:
        """Return the key with which the directory began; None for one of an older release."""
        path = self._directory / FIRST
        try:
            return path.read_text("ascii")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SigningKeysError(path, f"cannot be read: {type(error).__name__}") from None

    def rotate(self) -> str:
        """Make a new signing key, delete retired keys, and return the new kid."""
        with locked(self._directory):
            keys = read_keys(self._directory, self._keys)
            made = self._make(_newest(keys))
            for key in keys.values():
                if self._clock() >= key.retires_at:
                    key_path(self._directory, key.kid).unlink(missing_ok=True)
        self._look()
        return made.kid

    def signing_key(self) -> Key:
        """Return the newest key; a rotation by another process is noticed within RECHECK."""
        newest = _newest(self._current())
        assert newest is not None, "a ring holds a key"
        return newest

    def verification_key(self, kid: str) -> Key | None:
        """Return the key of this id, or None if there is none or it has retired.

        An unknown kid costs one stat. The directory is read only when it has changed, so a new key
        serves at once and forged kids cause no reading.
        """
        key = self._current().get(kid) or self._current(at_once=True).get(kid)
        return key if key is not None and self._clock() < key.retires_at else None

    def jwks(self) -> dict[str, Sequence[dict[str, str]]]:
        """Return the public keys that still verify, as a JWK set (RFC 7517 §5)."""
        now = self._clock()
        return {"keys": [key.jwk() for key in self._current().values() if now < key.retires_at]}

    def list(self) -> Sequence[ListedKey]:
        """Return every key of the directory, oldest first."""
        now = self._clock()
        return [
            ListedKey(key.kid, key.algorithm, key.created_at, _state(key, now))
            for key in self._current(at_once=True).values()
        ]

    def _make(self, newest: Key | None) -> Key:
        now = self._clock()
        if newest is not None:
            # The newest key signs, so a new key must be the newest even if the clock was set back.
            now = max(now, newest.created_at + timedelta(microseconds=1))
        key = generate_key(self._algorithm, now, self._retire_after_s)
        if newest is None:
            # Written before the key, so that a crash cannot leave a first key without this mark.
            write_file(self._directory / FIRST, key.kid.encode())
        save_key(self._directory, key)
        return key

    def _current(self, *, at_once: bool = False) -> Mapping[str, Key]:
        now = self._clock()
        recent = timedelta(0) <= now - self._checked_at < RECHECK
        if self._keys and recent and (self._read_ns is None or not at_once):
            return self._keys
        may_wait()  # The directory may be on a mount that hangs.
        self._checked_at = now
        try:
            self._look(0 if self._outage.lasts else LOOK_S)
        except SigningKeysError as error:
            self._outage.began(error, "the keys read before stay in use" if self._keys else "")
            if not self._keys:
                raise
        else:
            self._outage.ended("the signing keys can be read again")
        return self._keys

    def _look(self, wait_s: float = -1) -> None:
        """Read the directory again if it has changed since it was read.

        Raises SigningKeysError when another thread has looked for longer than `wait_s`.
        """
        if not self._guard.acquire(timeout=wait_s):
            self._read_ns = None
            raise SigningKeysError(self._directory, "does not answer")
        try:
            # Read the time before the listing, so that the next look notices a change during it.
            changed_ns = self._directory.stat().st_mtime_ns
            if changed_ns != self._read_ns:
                self._keys = read_keys(self._directory, self._keys)
                self._read_ns = changed_ns
        except (OSError, SigningKeysError) as error:
            self._read_ns = None
            if isinstance(error, OSError):
                raise SigningKeysError(self._directory, error.strerror) from error
            raise
        finally:
            self._guard.release()
        if not self._keys:
            self._read_ns = None
            raise SigningKeysError(self._directory, "holds no signing key")


class Pepper:
    """The pepper of an installation without SECRET_PEPPER, read when it is first needed.

    It is created here only if none was ever `in_use`. A lost one is replaced only when a process
    starts, with a warning, because every client secret is refused under a new pepper.
    """

    name = PEPPER
    needed_by, consequence = "client secrets need it", "no client gets a token"

    def __init__(self, directory: Path, in_use: Callable[[], bool]) -> None:
        self._path = directory / self.name
        self._in_use = in_use
        self._read: bytes | None = None
        self._outage = _Outage()

    def __call__(self) -> bytes:
        if self._read is None:
            try:
                self._read = self._load()
            except SigningKeysError as error:
                self._outage.began(error, self.consequence)
                raise
            self._outage.ended(f"the {self.name} can be read again")
        return self._read

    def _load(self) -> bytes:
        if not self._path.exists() and self._in_use():
            raise SigningKeysError(self._path, f"is missing, and {self.needed_by}")
        return _load_or_make(self._path, os.urandom)


class WebhookKey(Pepper):
    """The key that secrets of webhooks are derived from; it is created only at a start.

    `noted` returns the fingerprint of the key with which `web` last started, or None. Partners have
    the secrets of that key, so a process that reads another key must not use it.
    """

    name = WEBHOOK_KEY
    needed_by, consequence = "secrets of webhooks need it", "no webhook is sent"

    def __init__(self, directory: Path, noted: Callable[[], str | None]) -> None:
        super().__init__(directory, lambda: True)
        self._noted = noted
        self._compared_s: float | None = None
        self._is_the_one = False
        self._foreign = _Outage()

    def ensure(self) -> None:
        """Create the key, unless another process has."""
        _load_or_make(self._path, os.urandom)

    def require(self) -> None:
        """Raise SigningKeysError unless the key exists and is that of the installation.

        An error of the database is raised until the keys have agreed once; later it is ignored.
        """
        self()
        now_s = monotonic()
        if self._compared_s is None or now_s - self._compared_s >= BELIEVED_S:
            self._compare()
            self._compared_s = now_s
        if not self._is_the_one:
            error = SigningKeysError(
                self._path, f"the {self.name} is not the one with which `web` began last"
            )
            self._foreign.began(error, self.consequence)
            raise error
        self._foreign.ended(f"the {self.name} is the one with which `web` began last")

    def can_sign(self) -> bool:
        """Tell whether the key can be used; if not, log the reason once."""
        try:
            self.require()
        except SigningKeysError:
            return False
        return True

    def _compare(self) -> None:
        try:
            noted = self._noted()
        except Exception:
            if not self._is_the_one:
                raise
            return
        agrees = noted in {None, self._fingerprint()}
        if not agrees:
            self._read = self._load()  # The file may have been replaced since it was read.
            agrees = noted == self._fingerprint()
        self._is_the_one = agrees

    def _fingerprint(self) -> str:
        return SecretHasher(self).fingerprint()


class _Outage:
    """Logs once that something is broken, and once that it works again."""

    def __init__(self) -> None:
        self.lasts = False

    def began(self, error: Exception, consequence: str) -> None:
        if not self.lasts:
            self.lasts = True
            logger.error("%s", "; ".join(filter(None, (str(error), consequence))))

    def ended(self, message: str) -> None:
        if self.lasts:
            self.lasts = False
            logger.warning(message)


def load_or_make_pepper(
    directory: Path, random_bytes: Callable[[int], bytes] = os.urandom
) -> bytes:
    """Return the pepper of an installation without SECRET_PEPPER; create it if there is none.

    The file holds text, so that SECRET_PEPPER can be set to its content.
    """
    return _load_or_make(directory / PEPPER, random_bytes)


def _load_or_make(path: Path, random_bytes: Callable[[int], bytes]) -> bytes:
    with locked(path.parent):
        if not path.exists():
            write_file(path, random_bytes(PEPPER_BYTES).hex().encode())
        secret = path.read_bytes().strip()
    if _PEPPER.fullmatch(secret) is None:
        raise SigningKeysError(path, f"is not a {path.name} of 64 hexadecimal digits")
    return secret


def _newest(keys: Mapping[str, Key]) -> Key | None:
    return next(reversed(tuple(keys.values())), None)


def _state(key: Key, now: datetime) -> State:
    if key.retires_at == FOREVER:
        return "signing"
    return "verifying" if now < key.retires_at else "retired"
