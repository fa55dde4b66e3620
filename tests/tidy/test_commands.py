"""Every command says who may run it, and what the documents tell of commands is so."""

import re

from app.cli.operation import Operation
from app.cli.root import cli
from domain.accounts.operators import RIGHTS
from tests.app.cli.test_root import leaves
from tests.tidy.source import ROOT

CONTROLS = (ROOT / "docs/finance.md").read_text("utf-8").partition("\n## Controls\n")[2]
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
SPAN = re.compile(r"`([a-z]+(?: [a-z-]+)*)")


def test_every_command_needs_a_right_that_an_operator_can_have_or_none() -> None:
    for path, command in leaves(cli):
        assert isinstance(command, Operation), path
        assert command.right in {None, *RIGHTS}


def test_each_control_names_the_command_that_shows_it() -> None:
    names = tuple(" ".join(path) for path, _ in leaves(cli))
    rows = ROW.findall(CONTROLS)[2:]  # Without the head and the line below it.
    assert rows
    for control, _, evidence, *_ in rows:
        spans = SPAN.findall(evidence)
        assert any(span.startswith(names) for span in spans), control
