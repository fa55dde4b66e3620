"""Every command is in the table of rights, so nobody forgets to say who may run a new one."""

import re

from app.cli.rights import NEEDED
from app.cli.root import cli
from domain.accounts.operators import RIGHTS
from tests.app.cli.test_root import leaves
from tests.tidy.source import ROOT

CONTROLS = (ROOT / "docs/finance.md").read_text("utf-8").partition("\n## Controls\n")[2]
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
SPAN = re.compile(r"`([a-z]+(?: [a-z-]+)*)")


def test_every_command_has_its_line_in_the_table_of_rights() -> None:
    assert {" ".join(path) for path in leaves(cli)} == set(NEEDED)


def test_every_right_is_one_that_an_operator_can_have() -> None:
    assert set(NEEDED.values()) <= {None, *RIGHTS}


def test_each_control_names_the_command_that_shows_it() -> None:
    rows = ROW.findall(CONTROLS)[2:]  # Without the head and the line below it.
    assert rows
    for control, _, evidence, *_ in rows:
        spans = SPAN.findall(evidence)
        assert any(span.startswith(tuple(NEEDED)) for span in spans), control
