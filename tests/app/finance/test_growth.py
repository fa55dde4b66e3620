"""A page takes no longer because there are a million entries."""

import os
import time
from datetime import date, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Connection

from tests.app.finance import conftest
from tests.app.finance.conftest import browsing
from tests.installation import Process, postgresql_only

PROCESSOR_MS_MAX = 100.0  # For a page, with the server's session; to count the million: 200.
ROUNDS = 10
TODAY = date(2026, 12, 31)
ENTRIES = 1_000_000  # Of a thousand organizations in turn, within a year.
ENTRY, LOOKUP = 100_000_000, 200_000_000  # The ids of both are above the position by so much.

FILL = f"""
CREATE FUNCTION pg_temp.id(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
    AS $$ SELECT lpad(to_hex(n), 32, '0')::uuid $$;
CREATE TEMP TABLE made AS SELECT n AS position, (n - 1) % 1000 + 1 AS owner,
    (n - 1) / 1000 + 1 AS sequence, timestamptz '2026-01-01' + n * interval '31 seconds' AS at,
    CASE n / 1000 % 10 WHEN 3 THEN 'refund' WHEN 5 THEN 'deposit' ELSE 'lookup' END AS kind
    FROM generate_series(1, {ENTRIES}) AS n;
ALTER TABLE made ADD debit bigint, ADD credit bigint, ADD hour bigint;
UPDATE made SET hour = extract(epoch FROM at)::bigint / 3600,
    debit = CASE kind WHEN 'lookup' THEN 5000 ELSE 0 END,
    credit = CASE kind WHEN 'lookup' THEN 0 ELSE 5000 END;
INSERT INTO organizations (id, name, status, monthly_link_fee_micros, lookup_enabled, created_at,
        thresholds_set)
    SELECT pg_temp.id(n), 'Organization ' || n, 'active', 0, true, 0, '["0001-01-01", 0]'
    FROM generate_series(1, 1000) AS n;
INSERT INTO wallets SELECT pg_temp.id(n), 'USD', 5000000, {ENTRIES} / 1000
    FROM generate_series(1, 1000) AS n;
INSERT INTO transactions (id, organization_id, sequence, position, kind, direction, amount_micros,
        balance_micros, currency, charged_at, description, reference_type, reference_id, metadata)
    SELECT pg_temp.id({ENTRY} + position), pg_temp.id(owner), sequence, position, kind,
        CASE kind WHEN 'lookup' THEN 'debit' ELSE 'credit' END, 5000, 5000000, 'USD',
        extract(epoch FROM at)::bigint * 1000000, 'An entry', 'lookup',
        pg_temp.id({LOOKUP} + position)::text, '{{}}' FROM made;
INSERT INTO transaction_hours (organization_id, kind, hour, count, first, last, debit_micros,
        credit_micros)
    SELECT pg_temp.id(owner), kind, hour, count(*), min(sequence), max(sequence), sum(debit),
        sum(credit) FROM made GROUP BY owner, kind, hour
    UNION ALL SELECT pg_temp.id(0), kind, hour, count(*), min(position), max(position), sum(debit),
        sum(credit) FROM made GROUP BY kind, hour;
INSERT INTO statement_lines (organization_id, month, kind, currency, opening_micros, closing_micros,
        first_sequence, last_sequence, first_position, last_position, count, debit_micros,
        credit_micros)
    SELECT pg_temp.id(owner), to_char(at, 'YYYY-MM'), kind, 'USD', 5000000, 5000000, min(sequence),
        max(sequence), min(position), max(position), count(*), sum(debit), sum(credit)
    FROM made GROUP BY owner, to_char(at, 'YYYY-MM'), kind;
INSERT INTO log_events (originator_id, originator_version, topic, state)
    SELECT pg_temp.id({LOOKUP} + position), 1, 'wallet.charged', convert_to(json_build_object(
        'timestamp', '2026-01-01T00:00:00Z', 'request_id', 'r' || position,
        'organization_id', pg_temp.id(owner))::text, 'UTF8') FROM made ORDER BY position;
ANALYZE;
"""  # noqa: S608  # Numbers of our own.


@pytest.mark.soak
@postgresql_only("its planner has to find the indexes")
def test_a_page_costs_little_among_a_million_entries(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conftest, "TODAY", TODAY)
    with process.views.writing() as connection:
        fill(connection)
    days = f"since={TODAY - timedelta(days=200)}&until={TODAY - timedelta(days=194)}"
    own = UUID(int=1)
    paths = ["/", "/?days=365", "/wallets", "/wallets?name=99", f"/wallets/{own}", "/transactions"]
    paths += [f"/transactions?{each}" for each in (days, "kind=refund", f"kind=topup&{days}")]
    paths += [f"/transactions?reference={UUID(int=LOOKUP + 500_000)}"]
    paths += ["/transactions?before=500000"]
    mine = f"/transactions?organization={own}"
    paths += [mine, f"{mine}&{days}", f"{mine}&kind=refund"]
    paths += [f"/transactions/{UUID(int=ENTRY + 500_000)}", "/checks"]
    paths += ["/statements?month=2026-06", f"/statements/{own}?month=2026-06"]
    with browsing(process) as browser:
        spent = {path: spent_ms(process, browser, path) for path in paths}
    told = "\n".join(f"{each:6.1f} ms {path}" for path, each in spent.items())
    assert max(spent.values()) <= PROCESSOR_MS_MAX, told


def fill(connection: Connection) -> None:
    """Write what projecting a million entries would have written, in a minute."""
    for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
        connection.exec_driver_sql(f"SET LOCAL {limit} = 0")
    driver = connection.connection.driver_connection
    driver.answer_s = None
    connection.execution_options(no_parameters=True).exec_driver_sql(FILL)


def spent_ms(process: Process, browser: FlaskClient, path: str) -> float:
    """Return the processor time of a page, here and in the sessions that it reads through."""
    assert browser.get(path).status_code == 200, path
    before = time.process_time() * 1000 + sessions_ms(process)
    for _ in range(ROUNDS):
        browser.get(path)
    return (time.process_time() * 1000 + sessions_ms(process) - before) / ROUNDS


def sessions_ms(process: Process) -> float:
    named = "SELECT pid FROM pg_stat_activity WHERE position('finance' IN application_name) > 0"
    with process.views.reading() as connection:
        pids = [row[0] for row in connection.exec_driver_sql(named)]
    stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    ticks = sum(int(each[11]) + int(each[12]) for each in stats)
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")
