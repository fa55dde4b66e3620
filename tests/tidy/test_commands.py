"""Every command says who may run it, and what the documents tell of commands is so."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from app.cli.operation import Operation
from app.cli.root import cli
from domain.accounts.operators import RIGHTS
from tests.app.cli.test_root import leaves
from tests.tidy.source import PACKAGES, ROOT

CONTROLS = (ROOT / "docs/finance.md").read_text("utf-8").partition("\n## Controls\n")[2]
RIGHTS_OF = re.compile(r"^\| `([a-z]+)` \| (.*) \|$", re.MULTILINE)
OPERATORS = (ROOT / "docs/operations.md").read_text("utf-8").partition("| Right | Commands |")[2]
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
SPAN = re.compile(r"`([a-z-]+(?: [a-z-]+)*)")
NAMED = re.compile(r"(?:`|python -m app )([a-z]+(?:[ \n]+[a-z-]+)+)")
NAMES = tuple(" ".join(path) for path, _ in leaves(cli))


def pages() -> Iterator[Path]:
    """Yield what tells operators of commands; the change log tells of those that have gone."""
    yield from (path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md")
    yield from (ROOT / "docs").rglob("*.md")
    yield from (each for each in (ROOT / "ops").rglob("*") if each.is_file())
    for room in PACKAGES:
        yield from (ROOT / room).rglob("*.py")


def unknown(words: list[str]) -> str | None:
    """Return what of these words is no command, if they begin as one does."""
    group: click.Command | None = cli if words[0] in cli.commands else None
    for word in words:
        if not isinstance(group, click.Group):
            break
        if (group := group.get_command(click.Context(group), word)) is None:
            return " ".join(words)
    return None


def test_every_command_needs_a_right_that_an_operator_can_have_or_none() -> None:
    for path, command in leaves(cli):
        assert isinstance(command, Operation), path
        assert command.right in {None, *RIGHTS}
        assert command.right or not (command.when or command.who), path


def test_each_control_names_the_command_that_shows_it() -> None:
    rows = ROW.findall(CONTROLS)[2:]  # Without the head and the line below it.
    assert rows
    for control, _, evidence, *_ in rows:
        spans = SPAN.findall(evidence)
        assert any(span.startswith(NAMES) for span in spans), control


def test_whatever_names_a_command_names_one_that_there_is() -> None:
    wrong = [
        (str(path.relative_to(ROOT)), found)
        for path in pages()
        for named in NAMED.findall(path.read_text("utf-8"))
        if (found := unknown(named.split())) is not None
    ]
    assert wrong == []


def test_the_page_of_operators_has_the_commands_of_each_right() -> None:
    for right, text in RIGHTS_OF.findall(OPERATORS.partition("\n\n")[0]):
        told, before = set[str](), ""
        for span in SPAN.findall(text):
            name = span if span.startswith(NAMES) else f"{before.rpartition(' ')[0]} {span}"
            told.add(before := next(each for each in NAMES if f"{name} ".startswith(f"{each} ")))
        asks = {" ".join(path) for path, command in leaves(cli) if vars(command)["right"] == right}
        assert told - {"audit prove"} == asks, right
