"""The installation that a command works on, and the one line that says why it could not."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from uuid import UUID, uuid4

import click
from eventsourcing.persistence import PersistenceError
from sqlalchemy.exc import SQLAlchemyError

from app.bootstrap.container import Container
from app.bootstrap.schema import NewerSchema
from app.cli.rights import authorize
from app.processes.backup import NoBackup
from app.processes.migrate import CannotMigrate, lost_events, missing_tables
from app.security.key_file import SigningKeysError
from app.settings import Settings, WrongSetting
from app.watch.trouble import NOT_MIGRATED, trouble_of
from domain.accounts.operator_acts import Act, OperatorAct
from domain.accounts.organization import Organization
from domain.cause import Cause
from domain.errors import Conflict, NotPossible, Refused, ServiceUnavailable
from domain.log.log import Poisoned
from projections.audit.export import NoExport
from projections.audit.tree_keeper import Unkept
from projections.engine.positions import models_to_rebuild

TURN_WAIT_S = 10.0  # Most commands take a fraction of a second.
TURN_LOOK_S = 0.05
DATABASE_ERRORS = (ServiceUnavailable, SQLAlchemyError, PersistenceError)
OTHER_ERRORS = (
    WrongSetting,
    CannotMigrate,
    NoBackup,
    NoExport,
    NewerSchema,
    SigningKeysError,
    Poisoned,
    Unkept,
    Refused,
    NotPossible,
    Conflict,
    OSError,
)


@contextmanager
def installation(
    *,
    migrated: bool = True,
    same_log: bool = True,
    settings: Callable[[], Settings] = Settings.load,
) -> Iterator[Container]:
    """Lend the container of this installation, by default only if its tables are up to date.

    An error of the installation ends the command with one line and exit status 1. Print after this
    block, so that a broken pipe is not taken for a broken installation.
    """
    try:
        container = Container(settings())
        try:
            if migrated:
                _require_tables(container, same_log=same_log)
            yield container
        except (*DATABASE_ERRORS, container.persistence.error) as error:
            line = _database_line(error, container.persistence.place)
            raise click.ClickException(line) from error
        finally:
            container.operators_turn.release()
            container.close()
    except OTHER_ERRORS as error:
        raise click.ClickException(_line(error)) from error


def cause_of(container: Container, actor: str | None = None) -> Cause:
    """Return the cause of the events that one command appends: now, under a new request id.

    Every command that writes calls this, so this refuses a wrong CURRENCY, and an operator without
    the right. `actor` names who runs the command, if the caller has already found that out.
    """
    take_turn(container)
    container.currency.check()
    container.clock_check.require()
    return Cause(container.clock(), f"cli-{uuid4()}", actor or authorize(container))


def note_act(container: Container, act: Act, subject: str, actor: str | None = None) -> None:
    """Record what an operator does beside the aggregates; refuses as `cause_of` does."""
    container.log.append(OperatorAct.note(act, subject, cause_of(container, actor)))


def take_turn(container: Container) -> None:
    """Wait until no other command writes, and let none do so until this one ends.

    So the rights and the limit that a command has read hold where its events are in the log.
    """
    patience, until_s = Event(), time.monotonic() + TURN_WAIT_S
    while not container.operators_turn.hold():
        if time.monotonic() > until_s:
            message = "another operator's command has not ended: try again"
            raise NotPossible(message)
        patience.wait(TURN_LOOK_S)


def catch_up(container: Container) -> None:
    """Project what the log holds, so that the command sees what was written before it."""
    container.projector.catch_up()
    known = container.positions.all(container.views)
    for place in known.values():
        if place.failure is not None:
            stopped = f"Warning: {place.name} stopped at {place.position}: {place.failure}"
            click.echo(stopped, err=True)


def require_organization(container: Container, organization_id: UUID | None) -> None:
    """Raise NotFound if an organization is named that is not registered."""
    if organization_id is not None:
        container.log.get(Organization, organization_id, f"organization {organization_id}")


def _require_tables(container: Container, *, same_log: bool) -> None:
    if fault := container.persistence.fault():
        raise click.ClickException(fault)
    parts = (container.log, container.views, container.positions, container.models)
    if missing := missing_tables(container):
        raise click.ClickException(missing)
    if same_log and models_to_rebuild(*parts):
        lost = lost_events(container)
        then = f"{lost}, and then run: python -m app migrate" if lost else NOT_MIGRATED
        raise click.ClickException(then)


def _database_line(error: Exception, place: str) -> str:
    if isinstance(error, ServiceUnavailable) and error.__cause__ is None:
        return str(error)  # The error's own text gives the reason.
    trouble = trouble_of(error, place)
    return trouble if trouble == NOT_MIGRATED else f"DATABASE_URL: {trouble}"


def _line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    details = error.details if isinstance(error, Refused) else {}
    told = ", ".join(f"{name} {value}" for name, value in details.items())
    return f"{error} ({told})" if told else str(error)
