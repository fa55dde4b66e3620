"""Makes or upgrades every table; safe to run twice and from two machines at once."""

from collections.abc import Mapping

from eventsourcing.persistence import PersistenceError
from sqlalchemy.exc import SQLAlchemyError

from app.bootstrap.container import Container
from app.processes.schema import NewerSchema, ensure, is_current, versions
from app.watch.trouble import trouble_of
from projections.engine.health import strangers
from projections.engine.rebuild import Progress, drop_orphans, ignore_progress, rebuild_all

# Raise one with any change of the shape of its tables; `ensure` says what then happens.
VERSIONS = {
    "stores": 2,
    "network_numbers": 1,
    "slices_in_hand": 1,
    "simulated_network": 1,
    "personal_keys": 1,
    "notes": 1,
    "positions": 1,
}


class CannotMigrate(Exception):
    """Raised with one line that names the setting which stands in the way."""


def migrate(container: Container, progress: Progress = ignore_progress) -> list[str]:
    """Make what is missing; return the names of the read models that were built anew.

    Raises WrongCurrency before it changes anything of an installation that has another one.
    """
    persistence = container.persistence
    try:
        if fault := persistence.fault():
            raise CannotMigrate(fault)
        with persistence.migrating():
            container.open_log(create=True).close()
            container.currency.check()
            _create_stores(container)
            built = _build_models(container, progress)
    except NewerSchema as error:
        message = f"DATABASE_URL: {error}"
        raise CannotMigrate(message) from error
    except (OSError, SQLAlchemyError, PersistenceError, persistence.error) as error:
        message = f"DATABASE_URL: {_trouble(error, persistence.place)}"
        raise CannotMigrate(message) from error
    return built


def _create_stores(container: Container) -> None:
    own = (
        container.lookup_cache,
        container.leases,
        container.throttle,
        container.sandbox_attempts,
        container.readings,
    )
    tables = [store.metadata for store in own]
    ensure(container.stores, "stores", VERSIONS["stores"], tables, cheap=True)
    numbers = [container.readings.parts.metadata]
    ensure(container.stores, "network_numbers", VERSIONS["network_numbers"], numbers, cheap=True)
    container.readings.mend()
    in_hand = [container.slices_in_hand.metadata]
    ensure(container.stores, "slices_in_hand", VERSIONS["slices_in_hand"], in_hand, cheap=True)
    network = [container.simulated_network.metadata]
    ensure(
        container.stores, "simulated_network", VERSIONS["simulated_network"], network, cheap=True
    )
    keys = container.vault
    ensure(keys.database, "personal_keys", VERSIONS["personal_keys"], [keys.metadata], cheap=False)
    ensure(keys.database, "notes", VERSIONS["notes"], [container.notes.metadata], cheap=True)
    # Without positions every read model is rebuilt and the dispatcher sweeps.
    positions = [container.positions.metadata]
    ensure(container.views, "positions", VERSIONS["positions"], positions, cheap=True)


def is_migrated(container: Container) -> bool:
    """Tell whether the own tables are those of this release."""
    beside_the_log = dict.fromkeys(("personal_keys", "notes"), container.vault.database)
    places = {**beside_the_log, "positions": container.views}
    return all(
        is_current(places.get(name, container.stores), name, version)
        for name, version in VERSIONS.items()
    )


def table_versions(container: Container) -> dict[str, int]:
    """Return the version of each set of own tables that is there."""
    return {**versions(container.stores), **versions(container.vault.database)}


def newer_tables(found: Mapping[str, int]) -> list[str]:
    """Return the sets of tables that are of a later release than this one."""
    return [name for name, version in found.items() if version > VERSIONS.get(name, 0)]


def _build_models(container: Container, progress: Progress) -> list[str]:
    drop_orphans(container.views)
    models = strangers(container.log, container.views, container.positions, container.models)
    rebuild_all(container.log, container.views, container.positions, models, progress)
    container.projector.catch_up()
    return [model.name for model in models]


def _trouble(error: Exception, place: str) -> str:
    if isinstance(error, OSError):
        return f"cannot use {place}: {error.strerror or error}"
    return trouble_of(error, place)
