"""The counter of files sees what runs for a request, on every thread, and nothing else."""

import re
import subprocess
import sys

import pytest

from tests.tidy.source import ROOT

TIMEOUT_S = 60
SIX = re.compile(r"^\| \d \| \[([\w/.]+)\]", re.MULTILINE)


@pytest.mark.soak
@pytest.mark.slow
def test_it_finds_what_a_request_passes_on_every_thread() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.tidy.paths", "--list"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    ).stdout
    lookup, _, link = re.split(r"^\S.*: \d+ files, .* lines\n", told, flags=re.MULTILINE)[1:]
    for each in ("gateway", "committer", "single", "consumer"):
        assert re.search(rf"/{each}\.py$", lookup, re.MULTILINE), lookup
    six = SIX.findall((ROOT / "docs/path-of-a-request.md").read_text("utf-8"))
    assert len(six) == 6, "what a newcomer reads"
    assert {*six} <= {*lookup.split()}
    assert "esim" not in lookup
    assert "esim" in link
