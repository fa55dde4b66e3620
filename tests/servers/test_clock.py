"""Tests run at another time of day, and CI does so each day at another one."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

from tests.servers.clock import chosen, moments

SHOWN = """
import sqlite3, time
before = time.monotonic()
time.sleep(0)
row = sqlite3.connect(":memory:").execute("SELECT datetime('now')").fetchone()
print(time.strftime("%FT%H", time.gmtime()), row[0], time.monotonic() - before < 60, flush=True)
"""


def test_programs_and_databases_are_at_the_other_time_and_nothing_waits_longer() -> None:
    command = [sys.executable, "-m", "tests.servers.clock", "2028-02-29T10:00:30"]
    done = subprocess.run(
        [*command, sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True
    )
    words = done.stdout.splitlines()[-1].split()
    assert (words[0], words[1], words[3]) == ("2028-02-29T10", "2028-02-29", "True")


def test_within_a_week_every_moment_has_had_its_turn_and_none_lies_behind() -> None:
    today = datetime(2026, 11, 26, 12, tzinfo=UTC)
    days = [today + timedelta(days=number) for number in range(6)]
    assert all(each >= day for day in days for each in moments(day))
    turns = {moments(day).index(chosen("by-date", day)) for day in days}
    assert turns == {*range(6)}
