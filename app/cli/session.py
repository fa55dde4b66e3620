"""One run of a command: who runs it, the installation it works on, and why it could not.

As soon as there is one operator, a command with a right needs the key of an operator who has it.
It is asked for before the command runs, so no command can forget to.
"""

import os
import pwd
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from threading import Event
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID, uuid4

import click
from eventsourcing.persistence import PersistenceError
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from app.bootstrap.container import Container
from app.cli.operation import State
from app.cli.output import Named, warn, watched
from app.processes import redo
from app.processes.migrate import lost_events, missing_tables
from app.security.secrets import operator_of
from app.settings import Settings
from app.watch.trouble import NOT_MIGRATED, trouble_of
from domain.accounts.operator_acts import Act, OperatorAct
from domain.accounts.operators import Operator, Right
from domain.accounts.organization import Organization
from domain.cause import Cause
from domain.errors import Conflict, ForOperator, Refused, ServiceUnavailable, refuse
from domain.log.log import UNREADABLE
from domain.months import month_of
from projections.engine.consumer import Stopped
from projections.engine.positions import models_to_rebuild
from projections.engine.rebuild import Progress

T = TypeVar("T")
P = ParamSpec("P")

LOCK_WAIT_S = 10.0  # Most commands take a fraction of a second.
LOCK_POLL_S = 0.05
DATABASE_ERRORS = (ServiceUnavailable, SQLAlchemyError, PersistenceError)


class Session:
    """One run of a command; if it is not `ok`, the exit status is 1 although it has its answer.

    Its installation is opened when it is first asked for, and closed before anything is printed.
    """

    def __init__(self, right: Right | None, on: State, opened: ExitStack, *, as_json: bool) -> None:
        self.load_settings: Callable[[], Settings] = Settings.load
        self.as_json, self.ok = as_json, True
        self.who: Callable[[], str | None] | None = None  # May run it without the right.
        self._right, self._on, self._opened = right, on, opened

    @cached_property
    def container(self) -> Container:
        return self._opened.enter_context(installation(self._on, self.load_settings))

    def close(self) -> None:
        """Close what was opened, because something is printed before the command ends."""
        self._opened.close()

    def watch(self, what: str) -> Progress:
        """Draw a progress line from now on."""
        return self._opened.enter_context(watched(what))

    def admit(self) -> None:
        """Ask for the right, before others have to wait; without a log nobody keeps who ran it."""
        if self._right is None or (self._on == "anything" and not has_log(self.container)):
            return
        if self._on == "anything":
            self.container.use_recorded_settings()
        self.actor()

    def require(self, right: Right) -> None:
        """Ask for a right that the command turns out to need."""
        self._right = right
        self.new_cause()

    @cached_property
    def cause(self) -> Cause:
        return self.new_cause()

    def new_cause(self) -> Cause:
        """Return the cause of the events that the command appends: now, under a new request id.

        Every command that writes comes here, so this refuses a wrong CURRENCY, and whoever may not
        run the command.
        """
        container = self.container
        acquire_write_lock(container)
        container.currency.check()
        cause = Cause(container.gate.require(), f"cli-{uuid4()}", self.actor())
        container.accounts.approvals.renew_limit(cause)
        return cause

    def actor(self) -> str:
        """Return who runs the command, as its events name them.

        Raises NotPossible when there are operators and no key of one who may run it was given.
        """
        if self.who is not None and (actor := self.who()) is not None:
            return actor
        holder = holder_of_key(self.container)
        if holder is None or self._right is None:
            return user()
        holder.require(self._right)
        return holder.actor

    def record_act(self, act: Act, subject: str) -> None:
        """Record what an operator does beside the aggregates; refuses as `new_cause` does."""
        self.container.log.append(OperatorAct.of(act, subject, self.new_cause()))

    def record_redo(self) -> None:
        """Add what the command has erased, revoked or rotated to the list of REDO_DIR."""
        container = vars(self).get("container")
        if self._right != "keys" or container is None or not container.settings.redo_dir:
            return
        if has_log(container):
            try:
                redo.collect(container)
            except OSError as error:
                warn(f"REDO_DIR, which the clock tries again: {_line(error)}")

    def catch_up(self) -> None:
        """Project what the log holds, so that the command sees what was written before it."""
        self.container.projector.catch_up()
        for position in self.container.positions.all(self.container.views).values():
            if position.failure is not None:
                warn(f"{position.name} stopped at {position.position}: {position.failure}")

    def read(
        self, query: Callable[Concatenate[Connection, P], T], *arguments: P.args, **more: P.kwargs
    ) -> T:
        """Run one query of a read model, after all have caught up."""
        self.catch_up()
        return self.container.views.read(query, *arguments, **more)

    def require_organization(self, organization_id: UUID | None) -> None:
        """Raise NotFound if an organization is named that is not registered."""
        if organization_id is not None:
            name = f"organization {organization_id}"
            self.container.log.get(Organization, organization_id, name)

    def refuse_future(self, month: str | None, *, is_empty: bool = True) -> None:
        """Refuse a month to come; one with entries has begun by the clock of who made them."""
        if month is not None and is_empty and month > month_of(self.container.clock()):
            refuse(f"month {month} has not begun")

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return self.container.operators.names()

    def named(self, actor: str | None) -> Named:
        return Named(actor, self._names.get(actor or "", actor))


@contextmanager
def installation(on: State, load_settings: Callable[[], Settings]) -> Iterator[Container]:
    """Lend the container of this installation, if it is in this state.

    An error of the installation ends the command with one line and exit status 1.
    """
    try:
        container = Container(load_settings())
        try:
            if on != "anything":
                _require_tables(container, same_log=on == "migrated")
                container.use_recorded_settings()
            yield container
        except (*DATABASE_ERRORS, container.persistence.error) as error:
            line = _database_line(error, container.persistence.location)
            raise click.ClickException(line) from error
        finally:
            container.operators_lock.release()
            container.close()
    except (*UNREADABLE, ForOperator, Stopped, Refused, Conflict, OSError) as error:
        raise click.ClickException(_line(error)) from error


def holder_of_key(container: Container) -> Operator | None:
    """Return whose key was given; None while there are no operators and no key.

    Raises NotPossible for a missing or wrong key.
    """
    key, operators = container.settings.operator_key, container.operators
    if not key:
        if not operators.exist():
            return None
        refuse("there are operators, so this needs the key of one: set OPERATOR_KEY")
    named = operator_of(key)
    holder = container.log.find(Operator, named) if named is not None else None
    hasher = container.secret_hasher
    used = hasher.matches(key, [holder.key_hash] if holder is not None else [])
    if used is None or holder is None:
        refuse("OPERATOR_KEY is the key of no operator; it may have been replaced or revoked")
    if hasher.is_outdated(used):
        cause = Cause(container.gate.require(), f"cli-{uuid4()}", holder.actor)
        new = hasher.hash(key)
        container.log.update(holder, lambda newest: newest.rehash_key(used, new, cause))
    return holder


def user() -> str:
    """Return the user of the operating system, which no environment variable can change."""
    number = os.getuid()
    try:
        return f"os:{pwd.getpwuid(number).pw_name}"
    except KeyError:  # In a container the user's number may have no name.
        return f"os:{number}"


def has_log(container: Container) -> bool:
    """Tell whether there is a log that this release can write."""
    return missing_tables(container) is None


def acquire_write_lock(container: Container) -> None:
    """Wait until no other command writes, and let none do so until this one ends.

    So the rights and the limit that a command has read hold where its events are in the log.
    """
    patience, until_s = Event(), time.monotonic() + LOCK_WAIT_S
    while not container.operators_lock.acquire():
        if time.monotonic() > until_s:
            refuse("another operator's command has not ended: try again")
        patience.wait(LOCK_POLL_S)


def _require_tables(container: Container, *, same_log: bool) -> None:
    if fault := container.persistence.fault():
        raise click.ClickException(fault)
    if missing := missing_tables(container):
        raise click.ClickException(missing)
    if same_log and models_to_rebuild(container.source, container.models):
        lost = lost_events(container)
        then = f"{lost}, and then run: python -m app migrate" if lost else NOT_MIGRATED
        raise click.ClickException(then)


def _database_line(error: Exception, location: str) -> str:
    if isinstance(error, ServiceUnavailable) and error.__cause__ is None:
        return str(error)  # The error's own text gives the reason.
    trouble = trouble_of(error, location)
    return trouble if trouble == NOT_MIGRATED else f"DATABASE_URL: {trouble}"


def _line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    details = error.details if isinstance(error, Refused) else {}
    text = ", ".join(f"{name} {value}" for name, value in details.items())
    return f"{error} ({text})" if text else str(error)
