"""Every statement of the hot ways has an index: with scans forbidden, PostgreSQL still takes none.

At the size that a test can afford a scan is often the better plan. So the planner is told that it
costs a fortune: a table that is scanned all the same has no index for what it was asked.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.budgets.crew import Crew
from tests.budgets.partner import OPERATIONS, Partner, run_once
from tests.budgets.tally import Tally
from tests.installation import wait_until
from tests.seeds import PostgresSeed
from tests.servers.databases import Databases

# What is read whole on purpose, for it is small: a row per follower, per
# slice in hand, per server that the log has ever been on; the catalogue; at the start of
# a projector, a row per organization that wants to be told of a low balance.
READ_WHOLE = {
    "follower_positions",
    "counters",
    "log_events_servers",
    "plans",
    "low_balance_thresholds",
}
OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
SCANS = "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE seq_scan > 0"


class WithoutScans(PostgresSeed):
    """Copies in which a scan is the last resort; when one is dropped it tells what was scanned."""

    scanned: Mapping[str, int]

    def copy(self, directory: Path) -> str:
        url = super().copy(directory)
        with psycopg.connect(url, autocommit=True, application_name="bystander") as server:
            server.execute(f"ALTER DATABASE {urlsplit(url).path[1:]} SET enable_seqscan = off")
            server.execute("SELECT pg_stat_reset()")
        return url

    def drop(self, url: str) -> None:
        with psycopg.connect(url, autocommit=True, application_name="bystander") as server:
            # A session tells its numbers as it ends.
            wait_until(lambda: server.execute(OTHERS).fetchone() == (0,))
            self.scanned = dict(server.execute(SCANS).fetchall())
        super().drop(url)


def test_no_operation_scans_a_table_that_grows(
    databases: Databases, tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    seed = WithoutScans(databases)
    crew = Crew(tmp_path, seed, tally)
    partner = Partner(crew)
    for run in OPERATIONS.values():
        run_once(crew, partner, run)
    crew.close()
    assert {name for name in seed.scanned if not name.startswith("simulated_")} <= READ_WHOLE
