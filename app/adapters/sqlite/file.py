"""A database file as this process has opened it, which must stay the file at its path.

SQLite would make a missing file anew, and goes on writing to one that was removed or replaced: what
it commits then is in no file that anybody will open.
"""

import fcntl
import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock
from urllib.parse import unquote

CHECK_S = 0.05
Identity = tuple[int, int] | None  # Device and number; None: there is no such file.


class DatabaseFile:
    """A file with its write-ahead log; the first connection decides which files these are."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.uri = f"{self.path.as_uri()}?mode=rw"  # For reading and writing, not for creating.
        self._names = (str(self.path), f"{self.path}-wal")
        self._opened: list[Identity] | None = None
        self._checks_at_s = 0.0
        # A look and what follows from it are one step: another thread may open the file meanwhile.
        self._lock = Lock()

    @classmethod
    def named(cls, name: str) -> "DatabaseFile":
        """Return the file of a path, or of a URI such as ours."""
        path, is_uri, _ = name.removeprefix("file://").partition("?mode=")
        return cls(Path(unquote(path) if is_uri else name))

    def opened(self) -> None:
        """Note a new connection that has read, so that its files are there, or raise as below."""
        with self._lock:
            self._opened = self._opened or self._identities()
            self._require()

    def require(self) -> None:
        """Raise if the files at the path are not those that are open."""
        with self._lock:
            self._require()

    def _require(self) -> None:
        found = self._identities()
        if self._opened is not None and self._opened != found:
            # SQLite itself removes a log whose last user has closed it; the next one is another.
            if self._opened[0] != found[0] or _has_open(self._opened[1]):
                raise self.gone()
            self._opened = found
        self._checks_at_s = time.monotonic() + CHECK_S

    def require_lately(self) -> None:
        """Require it as of the last `CHECK_S`, because a look would cost more than most reads."""
        if time.monotonic() > self._checks_at_s:
            self.require()

    def _identities(self) -> list[Identity]:
        return [_identity(name) for name in self._names]

    def gone(self) -> sqlite3.OperationalError:
        """Return the error for a file that was removed or replaced, or set back to older bytes."""
        error = sqlite3.OperationalError(f"{self.path} is gone, or is not the file that was opened")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN  # Nothing was written into that file.
        return error


def _identity(name: str) -> Identity:
    try:
        found = os.stat(name)  # noqa: PTH116  # Each statement does this, and a Path costs more.
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _has_open(wanted: Identity) -> bool:
    """Tell whether this process has a file open; True where the system does not tell."""
    if wanted is None:
        return False
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208  # As above.
    except OSError:
        return True
    for number in numbers:
        with suppress(OSError):  # The directory's own is closed by now.
            found = os.fstat(number)
            if (found.st_dev, found.st_ino) == wanted:
                return True
    return False


class FileLock:
    """A lock between the processes of a machine, on a file of its own; it ends with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return False
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
