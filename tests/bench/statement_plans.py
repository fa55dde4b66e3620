"""Writes how PostgreSQL runs what each operation asks: `python -m tests.bench.statement_plans`.

Fills an installation as the row `growth` does, has every statement explained as it runs, with the
parameters that it came with, and prints one block for each in Markdown.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from tests.bench.engine import new_databases
from tests.bench.filling import fill
from tests.bench.grown import (
    EVENTS_EACH,
    OPERATIONS,
    Customer,
    make,
    new_customer,
    playing,
    run,
    size,
)

SETTINGS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_level": "notice",  # So it is told to whoever has asked.
}
LINES_MAX, WIDTH_MAX = 24, 150
PLAN = re.compile(
    r"duration: [\d.]+ ms  plan:\nQuery Text: (.*?)\n(?=\S[^\n]*\(cost=)(.*)", re.DOTALL
)
ESTIMATE = re.compile(r"\(cost=\S+ rows=\d+ width=\d+\) ")

Plans = dict[str, str]  # By statement, in the order they came.


def main() -> None:
    databases = new_databases()
    url = databases.new()
    fill(url, make(url), size() // EVENTS_EACH - 1)
    print(explained(url))


def explained(url: str) -> str:
    """Return a page about an installation that is filled."""
    name = url.rpartition("/")[2]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("ANALYZE")
        for setting, value in SETTINGS.items():
            text = SQL("ALTER DATABASE {} SET {} = {}")
            server.execute(text.format(Identifier(name), SQL(setting), SQL(f"'{value}'")))
        found = server.execute("SELECT count(*) FROM log_events").fetchone()
    told = Plans()
    with _listening(told), playing(url) as crew:
        it = new_customer(crew)
        plans = {name: _plans_of(it, name, told) for name in OPERATIONS}
    with psycopg.connect(url, autocommit=True) as server:
        for setting in SETTINGS:
            server.execute(SQL("ALTER DATABASE {} RESET {}").format(Identifier(name), SQL(setting)))
    return page(found[0] if found else 0, plans)


def page(events: int, plans: Mapping[str, Plans]) -> str:
    """Write a block for each statement where it comes first."""
    lines = [
        "# How each statement runs",
        "",
        f"Among {events:,} events, as `python -m tests.bench.statement_plans` prints it:",
        "each statement of the hot ways, where it comes first, as `EXPLAIN (ANALYZE, BUFFERS)`",
        "shows it while it runs. Estimates are left out, and long lines are cut.",
    ]
    seen = set[str]()
    for operation, found in plans.items():
        new = {text: plan for text, plan in found.items() if text not in seen}
        seen.update(new)
        lines += ["", f"## {operation[0].upper()}{operation[1:]}"]
        if not new:
            lines += ["", "Nothing that was not shown above."]
        for text, plan in new.items():
            lines += ["", "```sql", text, "```", "```", plan, "```"]
    return "\n".join(lines)


def _plans_of(it: Customer, name: str, told: Plans) -> Plans:
    operation = OPERATIONS[name]._replace(times=1)
    for _ in range(2):
        operation.before(it)
        told.clear()
        run(it, operation)
    return dict(told)


@contextmanager
def _listening(told: Plans) -> Iterator[None]:
    """Take down what is told on every connection that is opened meanwhile."""
    opened: Callable[..., Any] = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]  # Of a class method.
    before = psycopg.Connection.connect

    def heard(notice: psycopg.errors.Diagnostic) -> None:
        if found := PLAN.match(notice.message_primary or ""):
            text = " ".join(found[1].split())
            if "simulated_" not in text:
                told.setdefault(_cut(text, 600), _short(found[2]))

    def connect(cls: Any, conninfo: str = "", **options: Any) -> Any:
        connection = opened(cls, conninfo, **options)
        connection.add_notice_handler(heard)
        return connection

    connections: Any = psycopg.Connection
    connections.connect = classmethod(connect)
    try:
        yield
    finally:
        connections.connect = before


def _short(plan: str) -> str:
    lines = [ESTIMATE.sub("", each) for each in plan.splitlines()]
    kept = [_cut(each.rstrip(), WIDTH_MAX) for each in lines[:LINES_MAX]]
    return "\n".join([*kept, *(["…"] if len(lines) > LINES_MAX else [])])


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


if __name__ == "__main__":
    main()
