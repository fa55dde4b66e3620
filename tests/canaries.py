"""Fails every test during which something was logged that must be in no log line.

Whatever is logged at INFO or above counts, by whatever thread, whether a handler shows it or not:
its message, its fields and its exception, before the formatter masks anything.
"""

import logging
import re
from collections.abc import Iterator
from threading import Lock

import pytest

from app.watch.logging import QUIET, fields_of, message_of, without_values

CANARY = re.compile(
    r"""(?P<phone>(?:\+|%2[Bb])[1-9][0-9]{7,14}(?![0-9]))
    |(?P<iccid>(?<![0-9A-Za-z.])[0-9]{18,22}(?![0-9A-Za-z]))
    |(?P<lpa>LPA:1\$)
    |(?P<token>eyJ[\w-]+\.[\w-]+\.[\w-]+|\bBearer\s+[\w.-]{8,})
    |(?P<secret>\b(?:cls|opk)_[\w-]{20,})
    |(?P<password>://[^\s:@/'"]*:(?!\*{8}@)[^\s@'"/]+@)""",
    re.VERBOSE,
)
# A line of source in a traceback says what a test wrote, not what the service read.
SOURCE = re.compile(r'^\s+File "[^"]*", line \d+.*\n(?:    (?!\s*File ).*\n?)*', re.MULTILINE)

_FORMATTER = logging.Formatter()


def canaries_in(text: str) -> set[str]:
    """Return the kinds of what must not be logged and is there."""
    return {str(found.lastgroup) for found in CANARY.finditer(text)}


class Watch:
    """Checks every record of every logger."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: list[str] = []

    def see(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.INFO:
            return
        kinds = canaries_in(_everything(record))
        if kinds:
            with self._lock:
                self._found.append(f"{record.name} logs {', '.join(sorted(kinds))}: {record.msg!r}")

    def take(self) -> list[str]:
        """Return what was found since the last time."""
        with self._lock:
            found, self._found = self._found, []
        return found


WATCH = Watch()


@pytest.fixture(scope="session")
def watched_logging() -> Iterator[Watch]:
    """See the records of all loggers; handlers get those that they would have got anyway."""
    handle, is_enabled = logging.Logger.handle, logging.Logger.isEnabledFor

    def made(logger: logging.Logger, level: int) -> bool:
        lowest = logging.WARNING if logger.name.partition(".")[0] in QUIET else logging.INFO
        return level >= lowest or is_enabled(logger, level)

    def seen(logger: logging.Logger, record: logging.LogRecord) -> None:
        WATCH.see(record)
        if is_enabled(logger, record.levelno):
            handle(logger, record)

    patch = pytest.MonkeyPatch()
    patch.setattr(logging.Logger, "isEnabledFor", made)
    patch.setattr(logging.Logger, "handle", seen)
    yield WATCH
    patch.undo()


@pytest.fixture(autouse=True)
def no_canary_is_logged(watched_logging: Watch) -> Iterator[None]:
    """Fail the test during which a forbidden text was logged.

    Afterwards lines are as quiet as before: a process that ran inside of a test has turned them on.
    """
    watched_logging.take()
    yield
    logging.getLogger().setLevel(logging.WARNING)  # `level` alone would leave each logger's cache.
    found = watched_logging.take()
    assert not found, "\n".join(found)


def _everything(record: logging.LogRecord) -> str:
    parts = [message_of(record), *(f"{k}={v}" for k, v in fields_of(record).items())]
    if record.exc_info and record.exc_info[1] is not None:
        text = _FORMATTER.formatException(record.exc_info)
        parts.append(without_values(SOURCE.sub("", text + "\n")))
    # Two fields side by side are no token, such as the id of a request that is "Bearer".
    return "\0".join(parts)
