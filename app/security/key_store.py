"""The keys of one kind in the directory SIGNING_KEYS: watched, renewed and revoked."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from typing import ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec

from app.security.key_file import (
    RECHECK,
    Kind,
    Revoked,
    SigningKeysError,
    locked,
    read_revoked,
    write_file,
)
from domain.blocking import may_block, renew_soon
from domain.cause import Clock

State = Literal["signing", "verifying", "retired", "newest", "older", "revoked"]

READ_S = 1.0  # The longest wait for another thread's look at the directory; it takes milliseconds.
AHEAD = RECHECK * 0.3  # So long before its end a look is made anew.
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

logger = logging.getLogger(__name__)


class AnyKey(Protocol):
    """What every kind of key has."""

    @property
    def algorithm(self) -> str: ...
    @property
    def created_at(self) -> datetime | None: ...


E = TypeVar("E", bound=AnyKey)


@dataclass(frozen=True, slots=True)
class ListedKey:
    """What an operator sees of a key."""

    kind: Kind
    kid: str
    algorithm: str | None
    created_at: datetime | None
    state: State


class KeyStore(Generic[E]):
    """The keys of one kind, by id, oldest first. Thread-safe.

    Each method raises SigningKeysError while no keys can be read. Once read, keys stay in use while
    the directory is unreadable. A directory that hangs blocks one thread.
    """

    kind: ClassVar[Kind]
    states: ClassVar[tuple[State, State]] = ("signing", "verifying")  # Of the newest, of others.

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._guard = Lock()
        self._keys: Mapping[str, E] = {}  # Replaced as a whole, never changed.
        self._revoked: Mapping[str, Revoked] = {}
        self._read_ns: int | None = None  # None: never read, or the last attempt failed.
        self._checked_at = _LONG_AGO
        self._outage = Outage()

    @abstractmethod
    def _read(self) -> Mapping[str, E]:
        """Read the keys that are not revoked."""

    @abstractmethod
    def _make(self, keys: Mapping[str, E]) -> tuple[str, Callable[[], object]]:
        """Return the id of a new key, the newest beside these, and what writes it."""

    @abstractmethod
    def files_of(self, key_id: str) -> Sequence[Path]: ...

    def _missing(self) -> SigningKeysError:
        return SigningKeysError(self._directory, f"holds no {self.kind.removesuffix('s')} key")

    def list(self) -> Sequence[ListedKey]:
        keys = self._read()
        found = [
            ListedKey(self.kind, key_id, None, each.created_at, "revoked")
            for key_id, each in read_revoked(self._directory, self.kind).items()
        ]
        for key_id, key in keys.items():
            state = self._state(key, is_newest=key_id == [*keys][-1])
            found.append(ListedKey(self.kind, key_id, key.algorithm, key.created_at, state))
        return found

    def rotate(self, record: Callable[[str], object] = str) -> str:
        """Make a new key, which is used once `record` has its id, and return that."""
        with locked(self._directory):
            made, write = self._make(self._read())
            record(made)
            write()
        self._refresh()
        return made

    def revoke(self, key_id: str) -> None:
        """End a key for all processes; there must be a newer one."""
        with locked(self._directory):
            if ended := self._read().get(key_id):  # Else it was killed before its file went.
                revoked = Revoked(self.kind, ended.created_at, self._clock())
                write_file(self._directory / f"{key_id}.revoked", msgspec.json.encode(revoked))
            for path in self.files_of(key_id):
                path.unlink()
        self._refresh()

    def newest(self) -> E:
        """Return the newest key; a rotation by another process is noticed within RECHECK."""
        return [*self.current().values()][-1]

    def revoked(self) -> Mapping[str, Revoked]:
        self.current()
        return self._revoked

    def _state(self, key: E, *, is_newest: bool) -> State:  # noqa: ARG002  # One kind asks the key.
        return self.states[0 if is_newest else 1]

    def _after(self, keys: Mapping[str, E]) -> datetime:
        """Return the time of a new key: later than that of any other, so it is the newest."""
        starts = [each.created_at for each in keys.values() if each.created_at is not None]
        return max([self._clock(), *(each + timedelta(microseconds=1) for each in starts)])

    def _log_outage(self, error: SigningKeysError) -> None:
        self._outage.started(error, "the keys read before stay in use" if self._keys else "")

    def current(self, now: datetime | None = None, *, fresh: bool = False) -> Mapping[str, E]:
        """Return the keys that are not revoked; `fresh`: read a change now."""
        now = now or self._clock()
        age = now - self._checked_at
        recent = timedelta(0) <= age < RECHECK
        if self._keys and recent and (self._read_ns is None or not fresh):
            if age > RECHECK - AHEAD:
                renew_soon(self, partial(self._check, now))
            return self._keys
        check = partial(self._check, now)
        may_block(self, check)  # The directory may be on a mount that hangs.
        return check()

    def _check(self, now: datetime) -> Mapping[str, E]:
        self._checked_at = now
        try:
            self._refresh(0 if self._outage.lasts else READ_S)
        except SigningKeysError as error:
            self._log_outage(error)
            if not self._keys:
                raise
        else:
            self._outage.ended(f"the {self.kind} keys can be read again")
        return self._keys

    def _refresh(self, wait_s: float = -1) -> None:
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
                self._revoked = read_revoked(self._directory, self.kind)
                self._keys = self._read()
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
            raise self._missing()


class Outage:
    """Logs once that something is broken, and once that it works again."""

    def __init__(self) -> None:
        self.lasts = False

    def started(self, error: Exception, consequence: str) -> None:
        if not self.lasts:
            self.lasts = True
            logger.error("%s", "; ".join(filter(None, (str(error), consequence))))

    def ended(self, message: str) -> None:
        if self.lasts:
            self.lasts = False
            logger.warning(message)
