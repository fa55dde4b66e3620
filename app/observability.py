"""Log lines of this process: text for people, JSON for machines; never a number or a secret."""

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

# These say each request or each message at INFO; our own lines say it better.
QUIET = (
    "dramatiq",
    "eventsourcing",
    "granian",
    "pika",
    "psycopg",
    "sqlalchemy",
    "waitress",
    "werkzeug",
)

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object per line; whatever a call passes as `extra` becomes a field."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {k: v for k, v in vars(record).items() if k not in _ORDINARY}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """Time, level, message, then the fields as `name=value`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        extra = [f"{k}={v}" for k, v in vars(record).items() if k not in _ORDINARY]
        return " ".join([super().format(record), *extra])


class _RequestId(logging.Filter):
    """Adds the id of the request that this thread answers to lines that do not name one."""

    def __init__(self, current: Callable[[], str | None]) -> None:
        super().__init__()
        self._current = current

    def filter(self, record: logging.LogRecord) -> bool:
        request_id = self._current()
        if request_id is not None and not hasattr(record, "request_id"):
            record.request_id = request_id
        return True


def configure_logging(
    log_format: Literal["text", "json"], request_id: Callable[[], str | None] = lambda: None
) -> None:
    """Send the lines of this process to standard error, each with the request that it is about."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_RequestId(request_id))
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
