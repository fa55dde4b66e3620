"""Log lines of this process: text for people, JSON for machines; never a number or a secret.

Each message that a worker has handled is one line and one count.
"""

import json
import logging
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from inspect import signature
from typing import Any, Literal

import msgspec
from dramatiq import Broker, Middleware
from eventsourcing.persistence import StoredEvent

from app.watch.lines import Lines
from app.watch.tracing import Tracing

# These log each request or message at INFO; our own lines say more.
QUIET = ["app.adapters.postgres.database", "eventsourcing", "werkzeug"]
QUIET += ["dramatiq", "pika", "psycopg", "sqlalchemy"]
DEPTH_MAX = 4  # Of lists and objects in a field.
INTEGER_END = 10**17  # Longer numbers may be an ICCID.

# What no line may hold. Our own code logs none of it, but the text of a library's error may.
SECRET = re.compile(
    r"""(?P<phone>(?:\+|%2[Bb])[1-9][0-9]{7,14}(?![0-9]))
    |(?P<iccid>(?<![0-9A-Za-z.])[0-9]{18,22}(?![0-9A-Za-z]))
    |(?P<lpa>LPA:1\$[^\s"'\\,]*)
    |(?P<token>eyJ[\w-]+\.[\w-]+\.[\w-]+|(?i:\b(?:Bearer|Basic)\s+[\w.~+/=-]{8,}))
    |(?P<secret>\b(?:cls|opk|hov)_[\w-]{8,})
    |(?P<password>(?<=://)[^\s:@/'"]*:[^\s@'"]+(?=@)|\bpassword=[^\s&'"]+)""",
    re.VERBOSE,
)

# A UUID holds no secret, and each request has a new one, so it is neither searched nor remembered.
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_CHARS = 36
# Texts up to this length are remembered, because they repeat: field names, routes, roles.
_SHORT_CHARS = 64

# PostgreSQL shows values in DETAIL and CONTEXT; SQLAlchemy lists parameters.
_VALUES = re.compile(r"^\s*(DETAIL|CONTEXT|\[parameters|LINE \d+):?")
_OTHERS = re.compile(
    r"^\s*(HINT:|\[SQL:|\(Background|Traceback|The above|During handling|File \"|$)"
)

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


_of_request: Callable[[], str | None] = str  # Set by `configure_logging`; before, no request.


# What this thread works on; None between messages.
_work: ContextVar[dict[str, Any] | None] = ContextVar("work", default=None)


def request_id_here() -> str | None:
    """Return the id of the request for which this thread works, if it is known."""
    return (_work.get() or {}).get("request_id") or _of_request() or None


@contextmanager
def working(**facts: Any) -> Iterator[None]:
    """Add these facts to each line of this work."""
    before = _work.set(facts)
    try:
        yield
    finally:
        _work.reset(before)


def cause_of(event: StoredEvent) -> dict[str, Any]:
    """Return request, organization and slice of an event; a message names any slice of the job."""
    state = msgspec.json.decode(event.state)
    names = ("request_id", "organization_id", "slice_index")
    facts = {name: state[name] for name in names if name in state}
    return facts | ({"job_id": str(event.originator_id)} if "slice_index" in facts else {})


def bind_cause(stored: Sequence[StoredEvent]) -> None:
    """Add the request of the first event to the facts of this thread's work, unless it is known."""
    facts = _work.get()
    if facts is not None and "request_id" not in facts and stored:
        facts.update(cause_of(stored[0]))


OnWork = Callable[[str, str, float], None]  # Actor, outcome, seconds.


class WorkLog(Middleware):
    """Logs and traces the work on each message; `tell` is called at its end."""

    def __init__(self, on_work: OnWork, tracing: Tracing) -> None:
        self._on_work, self._tracing = on_work, tracing

    def before_enqueue(self, broker: Broker, message: Any, delay: int | None) -> None:  # noqa: ARG002  # The signature is the library's.
        self._tracing.carry(message.options)

    def before_process_message(self, broker: Broker, message: Any) -> None:
        names = signature(broker.get_actor(message.actor_name).fn).parameters
        ids = dict(zip(names, message.args, strict=False))  # Messages carry only ids of ours.
        message.started_s, message.work = time.perf_counter(), ExitStack()
        message.work.enter_context(working(command=message.actor_name, **ids))
        message.work.enter_context(self._tracing.working(message))

    def after_process_message(
        self,
        broker: Broker,  # noqa: ARG002  # As above.
        message: Any,
        *,
        result: Any = None,  # noqa: ARG002  # As above.
        exception: BaseException | None = None,
    ) -> None:
        outcome, seconds = "done", time.perf_counter() - message.started_s
        facts: dict[str, Any] = {"duration_ms": round(seconds * 1000, 1)}
        if exception is not None:
            outcome, facts["error"] = "failed", type(exception).__name__
        logging.getLogger("app.work").info("worked", extra={"outcome": outcome, **facts})
        with suppress(BaseException), message.work:
            if exception is not None:  # The span tells of it too.
                raise exception
        self._on_work(message.actor_name, outcome, seconds)


def mask(text: str) -> str:
    """Replace each part of a text that no line may hold by its kind, in brackets."""
    if len(text) > _SHORT_CHARS:
        return _mask(text)
    return text if len(text) == _UUID_CHARS and _UUID.fullmatch(text) else _mask_short(text)


def _mask(text: str) -> str:
    return SECRET.sub(lambda found: f"[{found.lastgroup}]", text)


_mask_short = lru_cache(1024)(_mask)
_mask_name = lru_cache(1024)(lambda name: mask(_text(name)))  # Of a field; our own are few.


def without_values(text: str) -> str:
    """Drop the lines of a traceback in which a database shows values."""
    lines, dropping = [], False
    for line in text.splitlines():
        dropping = bool(_VALUES.match(line)) or (dropping and not _OTHERS.match(line))
        lines += [] if dropping else [line]
    return "\n".join(lines)


def message_of(record: logging.LogRecord) -> str:
    """Return the message, or its format alone if it cannot take its arguments."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  # A `__str__` may raise anything.
        return _text(record.msg)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields that the logging call passed as `extra`."""
    return {k: v for k, v in vars(record).items() if k not in _ORDINARY}


class _Formatter(logging.Formatter):
    def formatException(self, ei: Any) -> str:  # noqa: N802  # The name is the library's.
        try:
            return mask(without_values(super().formatException(ei)))
        except Exception:  # noqa: BLE001  # As in `message_of`.
            return "" if ei[0] is None else ei[0].__name__


class JsonFormatter(_Formatter):
    """One JSON object per line; everything in `extra` becomes a field."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": at, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = mask(message_of(record))
        fields = {_mask_name(name): _clean(it) for name, it in fields_of(record).items()}
        line = line | fields | line  # No field replaces one of these four.
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = mask(record.stack_info)
        try:
            return msgspec.json.encode(line).decode("ascii")
        except UnicodeError:  # It is not in ASCII, which every terminal accepts.
            return json.dumps(line)


class TextFormatter(_Formatter):
    """Time, level and message, then the fields as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        at = self.formatTime(record, "%H:%M:%S")
        fields = [f"{name}={_clean(value)}" for name, value in fields_of(record).items()]
        text = " ".join([f"{at} {record.levelname:<7} {mask(message_of(record))}", *fields])
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def _clean(value: Any, depth: int = 0) -> Any:
    """Return a value that JSON can hold and that contains nothing forbidden."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, float | int | None):
        fits = math.isfinite(value) if isinstance(value, float) else abs(value or 0) < INTEGER_END
        return value if fits else mask(_text(value))
    if isinstance(value, Mapping) and depth < DEPTH_MAX:
        return {mask(_text(k)): _clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple) and depth < DEPTH_MAX:
        return [_clean(each, depth + 1) for each in value]
    return mask(_text(value))


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # As in `message_of`.
        return type(value).__name__


class _Handler(logging.StreamHandler[Any]):
    def handle(self, record: logging.LogRecord) -> bool:
        """Queue the line without a lock; a fatal one is waited for."""
        if not self.filter(record):
            return False
        try:
            line = self.format(record) + self.terminator
            if isinstance(self.stream, Lines):
                self.stream.write(line, must=record.levelno >= logging.CRITICAL)
            else:
                self.stream.write(line)
        except Exception:  # noqa: BLE001  # As the library does.
            self.handleError(record)
        return True


def add_work(record: logging.LogRecord) -> bool:
    """Add to a line the request, actor, job or link that it is about, unless it has them."""
    known, facts = vars(record), _work.get() or {}
    if "request_id" not in known and (request_id := request_id_here()):
        known["request_id"] = request_id
    for name, value in facts.items():
        known.setdefault(name, value)
    return True


def configure_logging(
    log_format: Literal["text", "json"], request_id: Callable[[], str | None] = str
) -> None:
    """Send the lines of this process to standard error, each with the request that it is about.

    Warnings become lines too, and so do errors that end a thread or the process. From now on nobody
    waits for who reads what this process prints.
    """
    global _of_request  # noqa: PLW0603  # Logging is global to a process.
    _of_request = request_id
    # Caller, thread and process are not looked up, because no line shows them.
    logging._srcfile = None  # noqa: SLF001  # The library's own way, in its HOWTO.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    for name in ("stdout", "stderr"):
        with suppress(AttributeError, OSError):  # It is closed, or no file.
            setattr(sys, name, Lines(getattr(sys, name)))
    handler = _Handler(sys.stderr)
    handler.addFilter(add_work)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_end
    threading.excepthook = lambda it: _log_end(*it[:3], "a thread fails")


def _log_end(kind: Any, error: Any, at: Any, what: str = "the process fails") -> None:
    """Log the error that ends the process or a thread, unless somebody has asked it to end."""
    if not issubclass(kind, KeyboardInterrupt | SystemExit):
        logging.getLogger("app").critical(what, exc_info=(kind, error, at))
