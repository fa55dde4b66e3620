"""A log line is one line of JSON whatever is logged, and holds nothing that must not be logged."""

import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.watch import logging as observability
from app.watch.logging import JsonFormatter, TextFormatter, configure_logging, mask, without_values

DETAIL = """psycopg.errors.UniqueViolation: duplicate key value violates "x"
DETAIL:  Key (name)=(canary
one) already exists.
CONTEXT:  unnamed portal parameter $1 = 'canary'
HINT:  Try another.
[SQL: INSERT INTO x]
[parameters: {'name': 'canary'}]
(Background on this error at: https://sqlalche.me/e/20/gkpj)"""


@pytest.fixture(autouse=True)
def no_canary_is_logged() -> None:
    """Nothing: here it is logged on purpose."""


class Unprintable:
    def __str__(self) -> str:
        message = "no text"
        raise RuntimeError(message)

    __repr__ = __str__


def record(message: object = "m", *args: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("name", logging.INFO, "", 0, message, args, None)
    vars(made).update(extra)
    return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line = JsonFormatter().format(made)
    assert "\n" not in line
    assert "\r" not in line

    def refuse(name: str) -> None:
        raise AssertionError(name)

    read: dict[str, Any] = json.loads(line, parse_constant=refuse)
    return read


def circle() -> list[object]:
    made: list[object] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("-inf"),
        pytest.param(10**5000, id="huge"),
        "\ud800\n\u2028\x00",
        Unprintable(),
        {Unprintable(): (1, {2})},
        {("a", 1): {"b": [None, True]}},
        circle(),
        b"\xff",
    ],
)
def test_any_field_is_valid_json_on_one_line(value: object) -> None:
    assert as_json(record(field=value))["message"] == "m"


@settings(max_examples=30)
@given(st.text(), st.recursive(st.none() | st.floats() | st.text() | st.integers(), st.lists))
def test_any_text_is_valid_json_on_one_line(text: str, value: object) -> None:
    assert as_json(record("%s", text, field=value))["level"] == "info"


@pytest.mark.parametrize(
    ("message", "arguments"), [("%d of %s", ("x",)), ("%s", (Unprintable(),)), (Unprintable(), ())]
)
def test_a_message_whose_arguments_do_not_fit_is_a_line(
    message: object, arguments: tuple[object, ...]
) -> None:
    assert as_json(record(message, *arguments))["logger"] == "name"


def test_no_field_takes_the_place_of_what_every_line_has() -> None:
    line = as_json(record(time="never", level="none", logger="nobody", order=1))
    assert list(line)[:4] == ["time", "level", "logger", "message"]
    assert (line["level"], line["logger"], line["order"]) == ("info", "name", 1)


@pytest.mark.parametrize(
    "secret",
    [
        "+447400123456",
        "%2B447400123456",
        "8988247000000000017",
        "LPA:1$rsp.example.com$AA-BB-CC",
        "eyJhbGciOi.eyJpc3Mi.c2ln-_",
        "Bearer abcdefgh12345",
        "Basic Y2w6c2VjcmV0",
        "cls_Zm9vYmFyYmF6",
        "user:canary@",
        "password=canary",
    ],
)
def test_what_must_not_be_logged_is_masked_wherever_it_stands(secret: str) -> None:
    text = f"amqp://{secret}host" if secret.startswith("user") else f"({secret})"
    made = record(f"said {text}", field=text, nested={"a": [text]})
    made.exc_info = (ValueError, ValueError(text), None)
    for formatter in (JsonFormatter(), TextFormatter()):
        line = formatter.format(made)
        assert secret not in line
        assert "ValueError" in line


@pytest.mark.parametrize(
    "ordinary",
    [
        "1c4b6ba5-57d4-426c-9ab3-0d018a73d8e3",
        "2026-11-21T15:03:06.108+00:00",
        "position 12345678901",
        "POST /v1/links",
        "http://127.0.0.1:8080/docs",
        "cl_6ffba87484951b751daa1e71",
    ],
)
def test_what_may_be_logged_stays(ordinary: str) -> None:
    assert mask(ordinary) == ordinary


def test_a_long_integer_may_be_an_iccid() -> None:
    assert as_json(record(field=898824700000000017))["field"] == "[iccid]"
    assert as_json(record(field=1_795_273_288_484_203))["field"] == 1_795_273_288_484_203


def test_what_a_database_quotes_is_dropped() -> None:
    kept = without_values(DETAIL)
    assert "canary" not in kept
    assert "one) already" not in kept
    assert "UniqueViolation" in kept
    assert "HINT:  Try another." in kept
    assert "[SQL: INSERT INTO x]" in kept


def test_the_values_of_a_real_error_of_postgresql_are_not_logged(databases: Any) -> None:
    with psycopg.connect(databases.new()) as connection:
        connection.execute("CREATE TEMPORARY TABLE x (name text UNIQUE)")
        connection.execute("INSERT INTO x VALUES ('canary')")
        with pytest.raises(psycopg.errors.UniqueViolation) as raised:
            connection.execute("INSERT INTO x VALUES (%s)", ["canary"])
    assert "canary" in str(raised.value)
    made = record()
    made.exc_info = (raised.type, raised.value, raised.tb)
    logged = as_json(made)["exception"]
    assert "(canary)" not in logged
    assert "duplicate key value" in logged


class Written:
    """What a process writes that has turned its lines on."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w+")
        self.handler = logging.Handler()

    def getvalue(self) -> str:
        self.handler.flush()  # It waits for the thread that writes.
        self.file.seek(0)
        return self.file.read()


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Written]:
    """What is written; afterwards all is as before."""
    stream = Written(tmp_path / "lines")
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    quiet = {name: logging.getLogger(name).level for name in observability.QUIET}
    root.handlers = []
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", stream.file)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    for name in ("_srcfile", "logThreads", "logProcesses", "logMultiprocessing"):
        monkeypatch.setattr(logging, name, getattr(logging, name))
    monkeypatch.setattr(observability, "_of_request", lambda: None)  # Is set back afterwards.
    configure_logging("json", lambda: "request-7")
    (stream.handler,) = root.handlers
    yield stream
    logging.captureWarnings(capture=False)
    root.handlers = handlers
    root.setLevel(level)
    for name, before in quiet.items():
        logging.getLogger(name).setLevel(before)


def test_every_line_names_the_request_that_is_answered(written: Written) -> None:
    logging.getLogger("x").info("one")
    logging.getLogger("x").info("two", extra={"request_id": "own"})
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [line["request_id"] for line in lines] == ["request-7", "own"]


def test_lines_of_many_threads_stay_whole(written: Written) -> None:
    def say() -> None:
        for _ in range(100):
            logging.getLogger("x").info("m", extra={"text": "+ " * 500})

    threads = [threading.Thread(target=say) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = map(json.loads, written.getvalue().splitlines())
    assert [each["message"] for each in lines if each["logger"] == "x"] == ["m"] * 400


def test_a_line_waits_for_no_other_one_to_be_made(written: Written) -> None:
    made, go_on = threading.Event(), threading.Event()

    class Slow:
        def __str__(self) -> str:
            made.set()
            assert go_on.wait(10)
            return "slow"

    slow = threading.Thread(target=lambda: logging.getLogger("x").info("%s", Slow()))
    slow.start()
    assert made.wait(10)
    quick = threading.Thread(target=lambda: logging.getLogger("x").info("quick"))
    quick.start()
    quick.join(10)
    before = written.getvalue()
    go_on.set()
    slow.join()
    assert '"quick"' in before
    assert '"slow"' in written.getvalue()


def test_a_text_is_masked_each_time_it_comes() -> None:
    assert [mask("+447400123456"), mask("+447400123456")] == ["[phone]"] * 2
    assert mask("0123456789" * 2) == "[iccid]"
    uuid = "12345678-1234-1234-1234-123456789012"
    assert mask(uuid) == uuid
    assert mask(f"{uuid} +447400123456") == f"{uuid} [phone]"


def test_a_line_is_ascii_whatever_is_logged() -> None:
    for text in ("é", "\ud800", "\U0001f600"):
        line = JsonFormatter().format(record(text=text))
        assert line.isascii()
        assert json.loads(line)["text"] == text


def test_what_ends_a_thread_or_the_process_and_warnings_are_lines(written: Written) -> None:
    def fail() -> None:
        message = "to +447400123456"
        raise ValueError(message)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    try:
        fail()
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("careful", stacklevel=1)
        logging.captureWarnings(capture=False)
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [line["level"] for line in lines] == ["critical", "critical", "warning"]
    assert all("ValueError: to [phone]" in line["exception"] for line in lines[:2])
