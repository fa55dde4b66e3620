"""The table of all commands, how each of them ends, and that what is printed harms no terminal.

Names, reasons and topics come from files and from logs that somebody else may have written: what a
terminal would obey, reorder or hide is shown as an escape.
"""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import click

from app.watch.lines import printable

PROGRAM = "python -m app"
FAILED = 1
INTERRUPTED = 130  # The status that shells report for a process ended by SIGINT.

# What the help shows of each command, and its module: said here, so that the help can be shown
# before anything heavy is imported. It is the first line of the command's own help, too.
GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Run the service": {
        "serve": ("serving", "Serve HTTP and do all the work in this one process."),
        "migrate": ("processes", "Create or upgrade every table."),
        "web": ("processes", "Serve HTTP."),
        "worker": ("processes", "Run lookups, provisioning and billing from the queues."),
        "dispatcher": ("processes", "Follow the log and fill the queues."),
        "projector": ("processes", "Follow the log and keep the read models up."),
        "clock": ("processes", "Ask for fees, end months, purge what has lapsed."),
    },
    "Customers and their money": {
        "org": ("accounts", "Organizations: who may call, and for how much."),
        "client": ("accounts", "API clients and their secrets."),
        "wallet": ("accounts", "Wallets: what organizations have paid in."),
    },
    "What is sold, and the work on it": {
        "plans": ("catalogue", "The catalogue: data plans, and who may see them."),
        "prices": ("catalogue", "What costs all organizations the same."),
        "providers": ("catalogue", "Lookup providers and networks, and which get new work."),
        "links": ("links", "Links: the eSIMs that partners have bought."),
        "jobs": ("links", "Bulk lookup jobs."),
        "work": ("links", "What has not ended: jobs, links and changes of plans."),
        "webhooks": ("links", "Webhooks: where partners are told what happens."),
    },
    "Books and proofs": {
        "finance": ("serving", "Show wallets and sums in the browser, read-only."),
        "audit": ("audit", "Checks of the log, and what finance reads from it."),
        "months": ("audit", "The months of the books."),
    },
    "The installation": {
        "doctor": ("operate", "Say in words what is not ready for production."),
        "settings": ("processes", "Print every setting with its value, default and meaning."),
        "operator": ("accounts", "People with keys of their own, and what each may do."),
        "keys": ("operate", "Keys of tokens, checkpoints and webhooks, and peppers."),
        "privacy": ("operate", "Personal data and its end."),
        "projections": ("operate", "The read models that are built from the log."),
        "backup": ("operate", "Copy all that cannot be rebuilt, while the service runs."),
        "restore": ("operate", "Put a backup into an empty place, and check it."),
        "installation": ("operate", "Hold a copy of an installation, and release it."),
    },
}
COMMANDS = {name: line for each in GROUPS.values() for name, (_, line) in each.items()}
WIDTH = max(map(len, COMMANDS))
MODULES = {name: module for each in GROUPS.values() for name, (module, _) in each.items()}


def one_line(text: str) -> str:
    """Escape line ends as well, so that nothing in a text looks like a line of ours."""
    return printable(text).replace("\n", "\\n")


class Defused:
    """A text stream that prints only what is printable; `inner` takes everything."""

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner

    def write(self, text: str | bytes) -> int:
        """Print text, or the bytes of an export that goes to a terminal instead of a file."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "backslashreplace")
        shown, encoding = printable(text), self.inner.encoding
        self.inner.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Iterable[str | bytes]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@contextmanager
def defused() -> Iterator[None]:
    """Let everything that is printed meanwhile be printable."""
    out, err = sys.stdout, sys.stderr
    if isinstance(out, Defused):
        yield
        return
    sys.stdout, sys.stderr = Defused(out), Defused(err)
    try:
        yield
    finally:
        if isinstance(sys.stdout, Defused):  # Else click has put in what survives a closed pipe.
            sys.stdout, sys.stderr = out, err


class Program(click.Group):
    """The program: imports what it is asked for, and prints nothing that a terminal obeys."""

    def get_command(self, _: click.Context | None, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        subject = import_module(f"app.cli.{MODULES[cmd_name]}").subject
        command: click.Command = subject.commands[cmd_name]
        return command

    def main(self, *args: Any, **extra: Any) -> Any:
        with defused():
            return super().main(*args, **extra)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Show all commands on one page, in groups, each with one line."""
        for title, lines in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{it:<{WIDTH}}", line) for it, (_, line) in lines.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:  # It may name a file, or what is in one.
            vars(error)["message"] = one_line(error.message)
            raise


@click.group(cls=Program, commands={name: click.Command(name) for name in COMMANDS})
def cli() -> None:
    """Run and operate the service. Settings come from the environment; see `settings`.

    COMMAND --help says more, and which commands follow it, such as `wallet deposit`.
    """


@defused()
def main() -> int:
    """Run one command; return 0 if it is done, 1 if it was refused or failed, 2 for wrong usage."""
    # Commands print what they have to say. Log lines belong to `serve`, which turns them on.
    logging.basicConfig(handlers=[logging.NullHandler()])
    try:
        status = cli.main(prog_name=PROGRAM, standalone_mode=False)
        # An output that cannot be written is reported here, not when Python ends.
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except OSError as error:
        prefix = f"{error.filename}: " if error.filename else ""
        print(f"Error: {prefix}{error.strerror}", file=sys.stderr)  # noqa: T201  # The standard output may be what failed.
        with Path(os.devnull).open("w") as nowhere:  # Or it fails again when Python ends.
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return FAILED
    return status if isinstance(status, int) else 0
