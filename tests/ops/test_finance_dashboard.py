"""Every query of the finance dashboard runs on a real PostgreSQL, and reads our views alone."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from domain.cause import Cause
from domain.finance.statement import Month
from projections.finance.views import VIEWS
from tests.installation import Process, postgresql_only
from tests.projections.histories import DOWN
from tests.tidy.source import ROOT

DASHBOARD = json.loads(Path(ROOT / "ops" / "finance-dashboard.json").read_text("utf-8"))
PANELS = {panel["title"]: panel["targets"] for panel in DASHBOARD["panels"]}
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}


@pytest.fixture
def acme(process: Process) -> UUID:
    made = process.organization("10.00")
    process.look_up(made)
    process.finish_job(process.create_job(made, ["+14155550109", DOWN]))
    ahead = Cause(process.clock() + timedelta(days=40), "ahead")
    process.accounts.move("adjustment", made, -250_000, "c-1", ahead, reason="a correction")
    process.log.append(Month.close("2026-01", process.cause()))
    process.projector.catch_up()
    return made


def rows(process: Process, query: str, **values: str) -> list[tuple[Any, ...]]:
    """Run a query as Grafana would, with its macros and variables replaced."""
    now = process.clock()
    macros = {
        "$__timeFrom()": f"'{now:%Y-%m-01T00:00:00Z}'",
        "$__timeTo()": f"'{now:%Y-%m-%dT23:59:59Z}'",
    }
    for name, value in {**macros, **{f"${name}": value for name, value in values.items()}}.items():
        query = query.replace(name, value)
    assert "$" not in query, query
    with process.views.reading() as connection:
        found = connection.execution_options(no_parameters=True).exec_driver_sql(query)
        return [tuple(row) for row in found]


@postgresql_only("Grafana reads no files of SQLite")
def test_every_query_of_the_dashboard_finds_something(process: Process, acme: UUID) -> None:
    assert rows(process, VARIABLES["organization"]["query"]) == [("Acme", acme)]
    ((month,), *_) = rows(process, VARIABLES["month"]["query"])
    empty = {
        title
        for title, targets in PANELS.items()
        for target in targets
        if not rows(process, target["rawSql"], organization=str(acme), month=month)
    }
    assert empty == set()
    held = rows(process, PANELS["Held in all wallets"][0]["rawSql"])
    by_day = rows(process, PANELS["Held in all wallets at the end of each day"][0]["rawSql"])
    assert by_day[-1][1] == held[0][0]


def test_the_dashboard_reads_views_alone_and_can_be_imported_anywhere() -> None:
    queries = [target["rawSql"] for targets in PANELS.values() for target in targets]
    queries += [each["query"] for each in VARIABLES.values() if each["type"] == "query"]
    read = {name for query in queries for name in re.findall(r"(?:FROM|JOIN) (\w+)", query)}
    assert read <= {view.name for view in VIEWS["postgresql"]} | {"now"}
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {"${datasource}"}
    assert len(PANELS) == len({panel["id"] for panel in DASHBOARD["panels"]})
