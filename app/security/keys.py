"""The signing keys, peppers and keys of webhooks that all processes share; no JWT."""

import hmac
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import ClassVar

from app.security.key_file import (
    Algorithm,
    Key,
    SigningKeysError,
    generate_key,
    key_path,
    locked,
    read_keys,
    read_revoked,
    save_key,
    write_file,
)
from app.security.key_store import KeyStore, Outage, State
from domain.cause import Clock

FIRST = "first"  # The file with the kid of the first key of the directory.
PEPPER = "pepper"  # The name of its file.
WEBHOOK_KEY = "webhook-key"
PEPPER_BYTES = 32  # Of the pepper and of the webhook key.
BELIEVED_S = 60  # How long a comparison of keys holds; each one asks the database.

_PEPPER = re.compile(rb"[0-9a-f]{64}")
_IN_NAME = "%Y%m%dT%H%M%S%f"  # When a secret was made, in the name of its file.


class KeyRing(KeyStore[Key]):
    """The keys of one installation; the newest signs.

    `algorithm` is for keys made here; older keys of the other algorithm still verify.
    `retire_after_s` is the lifetime of a token plus the leeway of its verification. Every process
    that signs calls `ensure` at its start.
    """

    kind = "signing"

    def __init__(
        self, directory: Path, algorithm: Algorithm, clock: Clock, retire_after_s: int
    ) -> None:
        super().__init__(directory, clock)
        self._algorithm = algorithm
        self._retire_after_s = retire_after_s

    def _read(self) -> Mapping[str, Key]:
        return read_keys(self._directory, self._keys)

    def ensure(self) -> None:
        """Create the directory and a first key of the algorithm, unless another process has."""
        with locked(self._directory):
            keys = self._read()
            newest = [*keys.values()][-1] if keys else None
            if newest is None or newest.algorithm != self._algorithm:
                self._save_new(self._generate(keys), keys)
            elif newest.lifetime_s < self._retire_after_s:
                # The lifetime was raised, so the key must also outlive the longer tokens.
                save_key(self._directory, replace(newest, lifetime_s=self._retire_after_s))
        self._refresh()

    def first_kid(self) -> str | None:
        """Return the key with which the directory began; None for one of an older release."""
        path = self._directory / FIRST
        try:
            return path.read_text("ascii")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SigningKeysError(path, f"cannot be read: {type(error).__name__}") from None

    def files_of(self, key_id: str) -> Sequence[Path]:
        return [*self._directory.glob(f"{key_id}.pem")]

    def verification_key(self, kid: str, now: datetime | None = None) -> Key | None:
        """Return the key of this id, or None if there is none or it has retired.

        An unknown kid costs one stat. The directory is read only when it has changed, so a new key
        serves at once and forged kids cause no reading.
        """
        now = now or self._clock()
        key = self.current(now).get(kid) or self.current(now, fresh=True).get(kid)
        return key if key is not None and now < key.retires_at else None

    def jwks(self) -> dict[str, Sequence[dict[str, str]]]:
        """Return the public keys that still verify, as a JWK set (RFC 7517 §5)."""
        now = self._clock()
        return {"keys": [key.jwk() for key in self.current().values() if now < key.retires_at]}

    def _state(self, key: Key, *, is_newest: bool) -> State:
        retired = self._clock() >= key.retires_at
        return "retired" if retired else super()._state(key, is_newest=is_newest)

    def _make(self, keys: Mapping[str, Key]) -> tuple[str, Callable[[], object]]:
        made = self._generate(keys)

        def write() -> None:
            self._save_new(made, keys)
            for key in keys.values():
                if self._clock() >= key.retires_at:
                    key_path(self._directory, key.kid).unlink(missing_ok=True)

        return made.kid, write

    def _generate(self, keys: Mapping[str, Key]) -> Key:
        return generate_key(self._algorithm, self._after(keys), self._retire_after_s)

    def _save_new(self, key: Key, keys: Mapping[str, Key]) -> None:
        if not keys:
            # Written before the key, so that a crash cannot leave a first key without this mark.
            write_file(self._directory / FIRST, key.kid.encode())
        save_key(self._directory, key)


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """A pepper or a key of webhooks; `id` names it without revealing it.

    What names no secret was made with the first one.
    """

    id: str
    value: bytes = field(repr=False)
    created_at: datetime | None
    is_first: bool
    algorithm: ClassVar[str] = "HMAC-SHA256"


class SharedSecrets(KeyStore[SharedSecret]):
    """Secrets of one kind side by side: the newest for what is new, the others for what is old.

    The first is in a file without a time in its name.
    """

    states = ("newest", "older")
    name: ClassVar[str]
    needed_by: ClassVar[str]
    consequence: ClassVar[str]

    def get(self, secret_id: str | None) -> SharedSecret | None:
        """Return a secret, None if it is revoked or gone; None stands for the first one."""
        if secret_id is None:
            return next((each for each in self.current().values() if each.is_first), None)
        return self.current().get(secret_id) or self.current(fresh=True).get(secret_id)

    def value(self, secret_id: str | None) -> bytes | None:
        found = self.get(secret_id)
        return None if found is None else found.value

    def ensure(self) -> None:
        with locked(self._directory):
            if not self._read():
                write_file(self._directory / self.name, os.urandom(PEPPER_BYTES).hex().encode())

    def _make(self, keys: Mapping[str, SharedSecret]) -> tuple[str, Callable[[], object]]:
        name = f"{self.name}-{self._after(keys).astimezone(UTC):{_IN_NAME}}"
        value = os.urandom(PEPPER_BYTES).hex().encode()
        return fingerprint(value), partial(write_file, self._directory / name, value)

    def _files(self) -> Sequence[Path]:
        return sorted(self._directory.glob(f"{self.name}*"))

    def files_of(self, key_id: str) -> Sequence[Path]:
        return [path for path in self._files() if self._load(path).id == key_id]

    def _read(self) -> Mapping[str, SharedSecret]:
        revoked = read_revoked(self._directory, self.kind)
        # Those that were read before stay in use if all files are gone.
        found = [*map(self._load, self._files())] or self._keys.values()
        return {each.id: each for each in found if each.id not in revoked}

    def _load(self, path: Path) -> SharedSecret:
        is_first, made = path.name == self.name, path.name.removeprefix(f"{self.name}-")
        try:
            value = path.read_bytes().strip()
            at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except OSError as error:
            raise SigningKeysError(path, error.strerror) from error
        if not is_first:
            at = datetime.strptime(made, _IN_NAME).replace(tzinfo=UTC)
        if _PEPPER.fullmatch(value) is None:
            raise SigningKeysError(path, f"is not a {self.name} of 64 hexadecimal digits")
        return SharedSecret(fingerprint(value), value, at, is_first)

    def _missing(self) -> SigningKeysError:
        return SigningKeysError(
            self._directory / self.name, f"is missing, and {self.needed_by} need it"
        )

    def _log_outage(self, error: SigningKeysError) -> None:
        """Say nothing while there are secrets: the ring of signing keys says it."""
        if not self._keys:
            self._outage.started(error, self.consequence)


class Pepper(SharedSecrets):
    """The peppers of client secrets and operator keys; SECRET_PEPPER is the first if it is set.

    One is created here only if none was ever `in_use`. A lost one is replaced only when a process
    starts, with a warning, because every client secret is refused under a new pepper.
    """

    kind, name = "pepper", PEPPER
    needed_by, consequence = "client secrets", "no client gets a token"

    def __init__(
        self, directory: Path, clock: Clock, in_use: Callable[[], object], setting: bytes = b""
    ) -> None:
        super().__init__(directory, clock)
        self._in_use = in_use
        self._setting = setting

    def _read(self) -> Mapping[str, SharedSecret]:
        found = super()._read()
        if not self._setting:
            return found
        first = SharedSecret(fingerprint(self._setting), self._setting, None, is_first=True)
        if first.id in read_revoked(self._directory, self.kind):
            return found
        later = {key_id: each for key_id, each in found.items() if not each.is_first}
        return {first.id: first} | later

    def _refresh(self, wait_s: float = -1) -> None:
        if self._setting and not self._directory.exists():
            self._keys = self._read()
            return
        if not self._keys and not self._read() and not self._in_use():
            self.ensure()
        super()._refresh(wait_s)


class WebhookKey(SharedSecrets):
    """The keys that secrets of webhooks are derived from; the first is created only at a start.

    `recorded` returns the id of the key with which `web` last started, or None. Partners have
    secrets of that key, so a process whose directory never held it must not sign.
    """

    kind, name = "webhooks", WEBHOOK_KEY
    needed_by, consequence = "secrets of webhooks", "no webhook is sent"

    def __init__(self, directory: Path, clock: Clock, recorded: Callable[[], str | None]) -> None:
        super().__init__(directory, clock)
        self._recorded = recorded
        self._compared_s: float | None = None
        self._is_the_one = False
        self._foreign = Outage()

    def require(self) -> None:
        """Raise SigningKeysError unless the key exists and is that of the installation.

        An error of the database is raised until the keys have agreed once; later it is ignored.
        """
        self.current()
        now_s = monotonic()
        if self._compared_s is None or now_s - self._compared_s >= BELIEVED_S:
            self._compare()
            self._compared_s = now_s
        if not self._is_the_one:
            error = SigningKeysError(
                self._directory / self.name,
                f"the {self.name} is not the one with which `web` began last",
            )
            self._foreign.started(error, self.consequence)
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
            recorded = self._recorded()
        except Exception:
            if not self._is_the_one:
                raise
            return
        agrees = recorded is None or recorded in self._keys or recorded in self._revoked
        if not agrees:
            self._read_ns = None  # A file may have been replaced in its place.
            self._refresh()
            agrees = recorded in self._keys or recorded in self._revoked
        self._is_the_one = agrees


def fingerprint(secret: bytes) -> str:
    """Return a value that identifies a secret without revealing it."""
    return hmac.digest(secret, b"fingerprint", "sha256").hex()[:32]
