"""The whole command line: every command's help, its manners towards programs, and how it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from app.cli.root import COMMANDS, GROUPS, PROGRAM, cli
from tests.app.cli.shell import ROOT, TIMEOUT_S, Shell
from tests.house.system import PROCESSES
from tests.installation import wait_until

HEAVY = [
    "app.bootstrap.container",
    "cryptography",
    "dramatiq",
    "eventsourcing",
    "flask",
    "sqlalchemy",
]
PAGE_LINES_MAX, PAGE_COLUMNS = 60, 80
ANSWERS_AFTER_3_S = "+15005550002"


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Walk all commands that do something, each with its words."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.commands:
        child = command.get_command(click.Context(command), name)
        assert child is not None, name
        yield from leaves(child, (*path, name))


ALL = [path for path, _ in leaves(cli)]


def test_the_table_tells_the_first_line_of_each_help() -> None:
    context = click.Context(cli)
    found = [cli.get_command(context, name) for name in COMMANDS]
    told = {each.name: (each.help or "").partition("\n")[0] for each in found if each is not None}
    assert told == COMMANDS


def test_all_commands_fit_on_a_page_in_five_groups(nowhere: Shell) -> None:
    lines = nowhere.run("--help").stdout.splitlines()
    assert len(lines) <= PAGE_LINES_MAX
    assert all(len(line) < PAGE_COLUMNS for line in lines)
    assert [line[:-1] for line in lines if line[:-1] in GROUPS] == [*GROUPS]
    assert len(GROUPS) == 5
    for name, text in COMMANDS.items():
        assert sum(line.split() == [name, *text.split()] for line in lines) == 1, name


def test_every_command_has_help_json_unless_a_process_and_no_other_option(nowhere: Shell) -> None:
    for path in ALL:
        helped = nowhere.run(*path, "--help")
        assert helped.stdout.startswith(f"Usage: {PROGRAM} {' '.join(path)} ")
        assert ("--json" in helped.stdout) == (path[0] not in PROCESSES), path
        assert helped.stderr == ""
        refused = nowhere.run(*path, "--no-such-option", status=2)
        assert refused.stdout == ""
        assert f"{PROGRAM} {' '.join(path)} --help" in refused.stderr
    assert [*nowhere.home.iterdir()] == []


def test_help_imports_nothing_heavy() -> None:
    statement = (
        "import sys; from app.cli.root import cli; cli.main(['--help'], standalone_mode=False);"
        f"sys.exit(len(set(sys.modules) & set({HEAVY})))"
    )
    command = [sys.executable, "-c", statement]
    assert subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0


def test_a_name_that_nearly_exists_is_suggested(nowhere: Shell) -> None:
    assert "'serve'" in nowhere.refusal("sevre", status=2)
    assert "'list'" in nowhere.refusal("org", "lst", status=2)


@pytest.mark.parametrize(
    "more", [{}, pytest.param({"PYTHONUNBUFFERED": "1"}, marks=pytest.mark.soak)]
)
def test_a_closed_pipe_is_no_news_and_a_full_disk_is_one_line(
    shell: Shell, more: dict[str, str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    here = shell.having(**more)
    for where, told in ((writing, ""), ("/dev/full", "Error: No space left on device\n")):
        with open(where, "w") as out, here.start("settings", stdout=out) as process:  # noqa: PTH123  # A pipe and a device, no files.
            _, errors = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, errors) == (1, told)


@pytest.fixture
def hearing() -> Iterator[None]:
    """Have new processes hear interrupts: what a shell runs in the background ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hearing")
def test_an_interrupt_is_quiet_and_loses_nothing(shell: Shell) -> None:
    sandbox = shell.having(SANDBOX="true")
    organization = sandbox.new_organization()
    container = sandbox.container()
    container.create_job(organization, [ANSWERS_AFTER_3_S], 0)
    head = container.log.head()
    with sandbox.start("work", "retry", "--json") as process:
        wait_until(lambda: container.log.head() > head)  # The work has begun.
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out, errors.strip()) == (130, "", "")
    sandbox.run("work", "retry")
    assert sandbox.json("audit", "verify")["ok"] is True
    container.close()
