"""Every line of the Procfile names a command that the program has."""

import re

import pytest

from app.cli.root import COMMANDS
from tests.tidy.source import ROOT

LINES = (ROOT / "Procfile").read_text("utf-8").splitlines()
PROCESS = re.compile(r"(?P<name>[a-z]+): (.* )?exec python -m app (?P<command>[a-z]+)")


@pytest.mark.parametrize("line", LINES)
def test_the_command_of_a_process_exists(line: str) -> None:
    process = PROCESS.fullmatch(line)
    assert process, line
    assert process["command"] in COMMANDS
