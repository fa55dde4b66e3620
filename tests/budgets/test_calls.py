"""How many functions of Python a lookup calls before its reply: what it costs at a low rate."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.seeds import Seed
from tests.tidy.source import ROOT

# The median of fifty numbers. A thread of SQLite looks at the files each 50 ms: 889 to 980 calls.
CEILINGS = {"postgresql": 533, "sqlite": 1_020}


# What is about no database shows on PostgreSQL, and there to the call.
@pytest.mark.each_database
@pytest.mark.parametrize(
    "migrated", [pytest.param("sqlite", marks=pytest.mark.soak), "postgresql"], indirect=True
)
def test_a_lookup_calls_no_more_than_is_written_down(migrated: Seed, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bench.calls", url := migrated.copy(tmp_path)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    migrated.drop(url)
    assert int(re.findall(r"^lookup: (\d+) ", told)[0]) <= CEILINGS[re.split(r"\W", url)[0]], told
