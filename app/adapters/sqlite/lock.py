"""Locks between the processes of one machine: the holder is active, the others stand by."""

import fcntl
import os
from pathlib import Path


class FileLock:
    """A lock on a file of its own; it ends with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def hold(self) -> bool:
        """Take the lock if it is free; return whether we hold it."""
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
        """Release the lock, so that another process can take over at once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
