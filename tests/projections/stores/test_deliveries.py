"""Deliveries of webhooks are chosen by their indexes, also by a plan that was kept for long."""

import re

from sqlalchemy.dialects import postgresql

from tests.installation import Process, postgresql_only

INDEXES = {"webhook_deliveries_due", "webhook_deliveries_first"}


@postgresql_only("SQLite plans each statement with its values")
def test_a_kept_plan_finds_the_next_delivery_by_partial_indexes(process: Process) -> None:
    dialect = postgresql.psycopg.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy says no types.
    statement = str(process.webhook_deliveries._next.compile(dialect=dialect))  # noqa: SLF001  # As it is sent.
    names = [*dict.fromkeys(re.findall(r"%\((\w+)\)s", statement))]
    for number, name in enumerate(names, start=1):
        statement = statement.replace(f"%({name})s", f"${number}")
    nothing = ", ".join(["NULL"] * len(names))
    with process.views.writing() as connection:
        run = connection.exec_driver_sql
        run("SET LOCAL plan_cache_mode = force_generic_plan")
        run("SET LOCAL enable_seqscan = off")
        run(f"PREPARE chosen AS {statement}")
        plan = "\n".join(run(f"EXPLAIN EXECUTE chosen({nothing})").scalars())
        run("DEALLOCATE chosen")
    assert {*re.findall(r"webhook_deliveries_\w+", plan)} == INDEXES, plan
