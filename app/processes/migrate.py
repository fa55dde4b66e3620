"""Creates or upgrades every table; safe to run twice, and on two machines at once."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from eventsourcing.persistence import PersistenceError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.bootstrap.container import Container
from app.bootstrap.schema import NewerSchema, ensure, is_current, versions
from app.processes.erasing import erase_again
from app.watch.trouble import NOT_MIGRATED, RESTORE, trouble_of
from domain.errors import ForOperator
from projections.engine.positions import belongs, models_to_rebuild
from projections.engine.rebuild import Progress, drop_former, ignore_progress, rebuild_all
from projections.engine.sql_views import define
from projections.engine.trigrams import EXTENSIONS
from projections.finance.views import VIEWS

# Sets of tables of 1.0.0 that are of no later release.
SETS = ("network_numbers", "slices_in_hand", "rate_limits", "provider_paces", "simulated_clock")

logger = logging.getLogger(__name__)


class CannotMigrate(ForOperator):
    """Raised with one line that names the setting at fault."""


def migrate(
    container: Container,
    progress: Progress = ignore_progress,
    warn: Callable[[str], object] = logger.warning,
) -> list[str]:
    """Create what is missing; return the names of the read models that were rebuilt.

    `warn` is called if the log has lost events that read models had seen, and if searches for links
    have no index. Raises CannotMigrate, and WrongCurrency before anything is changed.
    """
    persistence = container.persistence
    try:
        if fault := persistence.fault():
            raise CannotMigrate(fault)
        with persistence.migrating():
            container.open_log(create=True).close()
            persistence.protect_log()
            container.currency.check()
            for own in container.own_tables:
                ensure(own)
            if container.notes.newest("counters") is None:  # The first `migrate` of this release.
                was_there = "simulated_clock" in table_versions(container)  # By 1.0.0.
                container.notes.add("counters", "upgraded" if was_there else "", container.clock())
            _delete_former_queues(container, warn)
            _warn_of_losses(container, warn)
            built = _build_models(container, progress, warn)
            erase_again(container)
            with container.views.writing() as connection:
                define(connection, VIEWS[connection.dialect.name])
    except NewerSchema as error:
        raise CannotMigrate(f"DATABASE_URL: {error}") from error
    except (OSError, SQLAlchemyError, PersistenceError, persistence.error) as error:
        raise CannotMigrate(f"DATABASE_URL: {_trouble(error, persistence.location)}") from error
    return built


def slow_search(container: Container) -> str | None:
    """Say that searches for links have no index on PostgreSQL; None if they have one."""
    made = text(
        "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() "
        "AND tablename = 'links' AND indexdef LIKE '%USING gin%'"
    )
    with container.views.reading() as connection:
        if connection.dialect.name != "postgresql" or connection.execute(made).scalar_one():
            return None
    return (
        "a search for links reads all links of an organization: create the extensions "
        f"{' and '.join(EXTENSIONS)}, then: python -m app migrate"
    )


def _delete_former_queues(container: Container, warn: Callable[[str], object]) -> None:
    """Delete the queues that were beside ours; a broker that is away is asked next time."""
    with suppress(ConnectionError):
        for name, count in container.broker.delete_former_queues().items():
            warn(f"the queue {name} of an earlier release holds {count} messages: delete it")


def _warn_of_losses(container: Container, warn: Callable[[str], object]) -> None:
    lost = lost_events(container)
    if lost and not container.log.head():
        message = f"DATABASE_URL: {container.persistence.location} is empty: {lost}; {RESTORE}"
        raise CannotMigrate(message)
    if lost:
        warn(f"{lost}; the read models are built from what it holds")


def missing_tables(container: Container) -> str | None:
    """Say that the installation, its log or its tables are not there; None if they are."""
    persistence = container.persistence
    if not persistence.exists():
        return (
            f"there is no database at {persistence.location}; a new installation begins with: "
            "python -m app migrate"
        )
    return None if is_migrated(container) else NOT_MIGRATED


def is_migrated(container: Container) -> bool:
    """Tell whether the own tables are those of this release."""
    if not container.persistence.has_all_files():
        return False
    found = table_versions(container)
    return all(is_current(own, found) for own in container.own_tables)


def lost_events(container: Container) -> str | None:
    """Say which event of a read model the log no longer holds; None if it holds all.

    After a failover that can happen. Otherwise somebody has shortened or changed the log, and an
    operator must look before `migrate` hides it.
    """
    known = container.positions.all(container.views)
    for at in (known.get(model.name) for model in container.models):
        if at is not None and not belongs(container.log, at.ref):
            return (
                f"the log no longer holds the event at position {at.position} that {at.name} "
                "has seen; look at: python -m app audit verify"
            )
    return None


def table_versions(container: Container) -> dict[str, int]:
    databases = dict.fromkeys((container.stores, container.views, container.vault.database))
    return {name: version for each in databases for name, version in versions(each).items()}


def newer_tables(container: Container, found: Mapping[str, int]) -> list[str]:
    known = {own.name: own.version for own in container.own_tables}
    known |= dict.fromkeys(SETS, 1)
    return [name for name, version in found.items() if version > known.get(name, 0)]


def _build_models(
    container: Container, progress: Progress, warn: Callable[[str], object]
) -> list[str]:
    models = models_to_rebuild(container.source, container.models)
    rebuild_all(container.source, models, progress)
    drop_former(container.views)
    with container.stores.writing() as connection:  # 1.0.0 kept pieces of numbers in it.
        connection.execute(text("DROP TABLE IF EXISTS network_number_parts"))
    if slow_search(container):  # The extensions may have come later than the table.
        container.views.write(container.links.index_of_texts.create)
        if fault := slow_search(container):
            warn(fault)
    container.projector.catch_up()
    return [model.name for model in models]


def _trouble(error: Exception, location: str) -> str:
    if isinstance(error, OSError):
        return f"cannot use {location}: {error.strerror or error}"
    return trouble_of(error, location)
