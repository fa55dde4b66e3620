"""A command, and how its answer gets printed; what commands do is imported when one is called."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from inspect import cleandoc
from typing import Any, Literal, NoReturn

import click

from app.cli.output import show
from app.cli.root import COMMANDS, FAILED
from domain.accounts.operators import Right

# What must be there: all tables up to date, or perhaps of another log, or nothing at all.
State = Literal["migrated", "any log", "anything"]
Given = Mapping[str, Any]  # The arguments of a command, by name.


class Operation(click.Command):
    """A command: its function gets a Session and returns what is to be printed.

    `right`: the one that it needs where there are operators, asked for before its function runs;
    None: it only reads, only does what the service does by itself anyway, or works on a new
    installation. `when`: with which arguments it needs the right; None: with any.
    `who`: says who may run it without the right, as events name them; None: the right is asked for.
    `on`: the state that the installation must have.
    """

    def __init__(
        self,
        *args: Any,
        right: Right | None,
        when: Callable[[Given], bool] | None = None,
        who: Callable[[Any, Given], str | None] | None = None,
        on: State = "migrated",
        prints: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.right, self.on, self.when, self.who = right, on, when, who
        if prints:
            text = "Print one JSON object and nothing else."
            self.params.append(click.Option(["--json", "as_json"], is_flag=True, help=text))

    def invoke(self, ctx: click.Context) -> None:
        """Run the function and print its answer."""
        as_json = ctx.params.pop("as_json", False)
        answer, ok = self._run(ctx, as_json=as_json)
        # A broken pipe must not be taken for a broken installation, so that one is closed.
        if answer is not None:
            show(answer, as_json=as_json)
        if not ok:
            ctx.exit(FAILED)

    def _run(self, ctx: click.Context, *, as_json: bool) -> tuple[Any, bool]:
        assert self.callback is not None
        from app.cli.session import Session  # noqa: PLC0415  # All of the service.

        with ExitStack() as opened:
            needed = self.right if self.when is None or self.when(ctx.params) else None
            session = Session(needed, self.on, opened, as_json=as_json)
            session.who = self.who and partial(self.who, session, ctx.params)
            session.admit()
            answer = ctx.invoke(self.callback, session, **ctx.params)
            session.record_redo()
            return answer, session.ok


class Subject(click.Group):
    """A group of commands; the list of all commands has the first line of its help."""

    command_class = Operation

    def add(self, name: str, more: str = "") -> "Subject":
        made = Subject(name, help="\n\n".join(filter(None, (COMMANDS.get(name), cleandoc(more)))))
        self.add_command(made)
        return made


def misuse(message: str) -> NoReturn:
    """End a command that was given what does not go together (exit status 2)."""
    raise click.UsageError(message)
