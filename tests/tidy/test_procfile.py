"""Every line of the Procfile names a command that the program has."""

import re
import subprocess
import sys

import pytest

from tests.tidy.source import ROOT

LINES = (ROOT / "Procfile").read_text("utf-8").splitlines()
PROCESS = re.compile(
    r"(?P<name>[a-z]+): ([A-Z_]+=\S+( \+ \S+)? )?exec python -m app (?P<command>[a-z]+)"
)


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_the_command_of_a_process_exists(line: str) -> None:
    process = PROCESS.fullmatch(line)
    assert process, line
    command = [sys.executable, "-m", "app", process["command"], "--help"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Usage:" in result.stdout
