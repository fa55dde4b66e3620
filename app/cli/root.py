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
from typing import IO, Any

import click

from app.watch.lines import printable

PROGRAM = "python -m app"
FAILED = 1
INTERRUPTED = 130  # The status that shells report for a process ended by SIGINT.

# The module of each command, and the first line of its help, which is said here so that the list
# of commands can be shown before anything heavy is imported.
SUBJECTS: Mapping[str, Mapping[str, str]] = {
    "serving": {
        "serve": "Serve HTTP and do all the work in this one process.",
        "openapi": "Print the OpenAPI document.",
        "finance": "Show wallets, transactions and sums in the browser, read-only.",
    },
    "processes": {
        "migrate": "Create or upgrade every table.",
        "web": "Serve HTTP.",
        "worker": "Run lookups, provisioning and billing from the queues.",
        "dispatcher": "Follow the log and fill the queues.",
        "projector": "Follow the log and keep the read models up.",
        "clock": "Sweep idle work, ask for monthly fees, purge what has lapsed.",
    },
    "accounts": {
        "org": "Organizations: who may call, and for how much.",
        "client": "API clients and their secrets.",
        "wallet": "Wallets: what organizations have paid in.",
        "operator": "Operators: people with keys of their own, and what each may do.",
    },
    "catalogue": {
        "plans": "The catalogue: data plans, and who may see them.",
        "prices": "What costs all organizations the same.",
        "providers": "Lookup providers and networks: what works there, and which of them get new "
        "work.",
        "sandbox": "The simulated network of a sandbox.",
    },
    "links": {
        "links": "Links: the eSIMs that partners have bought.",
        "jobs": "Bulk lookup jobs.",
        "webhooks": "Webhooks: where partners are told what happens, and what they were told.",
    },
    "audit": {
        "audit": "Checks of the log and of all that is built from it.",
        "months": "The months of the books.",
    },
    "settings": {"settings": "Print every setting with its value, default and meaning."},
    "operate": {
        "keys": "The keys that sign tokens and checkpoints, peppers, and keys of webhooks.",
        "projections": "The read models that are built from the log.",
        "privacy": "Personal data and its end.",
        "doctor": "Say in words what is not ready for production.",
        "backup": "Copy everything that cannot be rebuilt into DIR, while the service runs.",
        "installation": "Hold a copy of an installation, and release it.",
        "restore": "Put the backup in DIR into the empty place that the settings name, and check "
        "it.",
    },
}
COMMANDS = {name: line for each in SUBJECTS.values() for name, line in each.items()}
PROCESSES = {"web", "worker", "dispatcher", "projector", "clock"}


def one_line(text: str) -> str:
    """Escape line ends as well, so that nothing in a text looks like a line of ours."""
    return printable(text).replace("\n", "\\n")


class Defused:
    """A text stream that prints only what is printable; `inner` takes everything."""

    def __init__(self, inner: IO[str]) -> None:
        self.inner = inner

    def write(self, text: str | bytes) -> int:
        """Print text, or the bytes of an export that goes to a terminal instead of a file."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "backslashreplace")
        self.inner.write(printable(text))
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


class Deferred(click.Command):
    """A command whose module is imported when it is called."""

    def __init__(self, name: str, first_line: str) -> None:
        super().__init__(name, help=first_line, short_help=first_line)

    def load(self) -> click.Command:
        """Import the command itself."""
        module = next(each for each, lines in SUBJECTS.items() if self.name in lines)
        command: click.Command = import_module(f"app.cli.{module}").subject.commands[self.name]
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        return self.load().make_context(info_name, args, parent, **extra)


class Program(click.Group):
    """The program; whatever it prints is harmless to a terminal."""

    def main(self, *args: Any, **extra: Any) -> Any:
        with defused():
            return super().main(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:  # It may name a file, or what is in one.
            vars(error)["message"] = one_line(error.message)
            raise


@click.group(cls=Program, commands={name: Deferred(name, line) for name, line in COMMANDS.items()})
def cli() -> None:
    """Run and operate the service. Settings come from the environment; see `settings`."""


def main() -> int:
    """Run one command; return 0 if it is done, 1 if it was refused or failed, 2 for wrong usage."""
    with defused():
        return _main()


def _main() -> int:
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
        place = f"{error.filename}: " if error.filename else ""
        print(f"Error: {place}{error.strerror}", file=sys.stderr)  # noqa: T201  # The standard output may be what failed.
        _drop_output()
        return FAILED
    return status if isinstance(status, int) else 0


def _drop_output() -> None:
    """Drop unwritten output, so that it does not fail again when Python ends."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
