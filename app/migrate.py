"""Makes or upgrades every table; safe to run twice and from two processes at once."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventsourcing.persistence import PersistenceError
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.container import Container
from projections.health import strangers
from projections.rebuild import Progress, drop_orphans, ignore_progress, rebuild


class CannotMigrate(Exception):
    """Raised with one line that names the setting which stands in the way."""


def migrate(container: Container, progress: Progress = ignore_progress) -> list[str]:
    """Make what is missing; return the names of the read models that were built anew."""
    path = container.settings.database_path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(container.beside_the_log("migrate").with_suffix(".lock")):
            for file in (
                path,
                container.beside_the_log("views"),
                container.beside_the_log("stores"),
            ):
                file.touch(mode=0o600)  # They hold personal data and keys; SQLite keeps the mode.
            container.open_log(create=True).close()
            _create_stores(container)
            built = _build_models(container, progress)
    except (OSError, sqlite3.Error, SQLAlchemyError, PersistenceError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        message = f"DATABASE_URL: cannot use {path}: {_first_line(reason)}"
        raise CannotMigrate(message) from error
    check_currency(container)
    return built


def _create_stores(container: Container) -> None:
    with container.vault.database.writing() as connection:
        container.vault.metadata.create_all(connection)
    own = (
        container.lookup_cache,
        container.leases,
        container.throttle,
        container.sandbox_attempts,
    )
    with container.stores.writing() as connection:
        for store in own:
            store.metadata.create_all(connection)


def _build_models(container: Container, progress: Progress) -> list[str]:
    with container.views.writing() as connection:
        container.positions.metadata.create_all(connection)
    drop_orphans(container.views)
    models = strangers(container.log, container.views, container.positions, container.models)
    for model in models:
        rebuild(container.log, container.views, container.positions, model, progress)
    container.projector.catch_up()
    return [model.name for model in models]


def check_currency(container: Container) -> None:
    """Refuse another currency than that of the wallets that are there; they are projected."""
    with container.views.reading() as connection:
        statement = select(container.wallets.rows.c.currency).limit(1)
        found = connection.execute(statement).scalar_one_or_none()
    if found is not None and found != container.settings.currency:
        message = f"CURRENCY must stay {found}: wallets of this installation hold it"
        raise CannotMigrate(message)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock file, so that two processes take turns."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _first_line(reason: object) -> str:
    return str(reason).splitlines()[0]
