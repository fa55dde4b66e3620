"""Makes or upgrades every table; safe to run twice and from two machines at once."""

from collections.abc import Mapping

from eventsourcing.persistence import PersistenceError
from sqlalchemy.exc import SQLAlchemyError

from app.container import Container
from app.persistence.schema import NewerSchema, ensure, is_current, versions
from app.persistence.trouble import trouble_of
from projections.health import strangers
from projections.rebuild import Progress, drop_orphans, ignore_progress, rebuild_all

# Raise one with any change of the shape of its tables; `ensure` says what then happens.
STORES_VERSION = 2
NUMBERS_VERSION = 1
IN_HAND_VERSION = 1
NETWORK_VERSION = 1
KEYS_VERSION = 1
NOTES_VERSION = 1
POSITIONS_VERSION = 1
KNOWN = {
    "stores": STORES_VERSION,
    "network_numbers": NUMBERS_VERSION,
    "simulated_network": NETWORK_VERSION,
    "personal_keys": KEYS_VERSION,
    "notes": NOTES_VERSION,
    "positions": POSITIONS_VERSION,
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
    ensure(container.stores, "stores", STORES_VERSION, tables, cheap=True)
    numbers = [container.readings.parts.metadata]
    ensure(container.stores, "network_numbers", NUMBERS_VERSION, numbers, cheap=True)
    container.readings.mend()
    in_hand = [container.slices_in_hand.metadata]
    ensure(container.stores, "slices_in_hand", IN_HAND_VERSION, in_hand, cheap=True)
    network = [container.simulated_network.metadata]
    ensure(container.stores, "simulated_network", NETWORK_VERSION, network, cheap=True)
    keys = container.vault
    ensure(keys.database, "personal_keys", KEYS_VERSION, [keys.metadata], cheap=False)
    ensure(keys.database, "notes", NOTES_VERSION, [container.notes.metadata], cheap=True)
    # Without positions every read model is rebuilt and the dispatcher sweeps.
    positions = [container.positions.metadata]
    ensure(container.views, "positions", POSITIONS_VERSION, positions, cheap=True)


def is_migrated(container: Container) -> bool:
    """Tell whether the own tables are those of this release."""
    return (
        is_current(container.stores, "stores", STORES_VERSION)
        and is_current(container.stores, "network_numbers", NUMBERS_VERSION)
        and is_current(container.stores, "slices_in_hand", IN_HAND_VERSION)
        and is_current(container.stores, "simulated_network", NETWORK_VERSION)
        and is_current(container.vault.database, "personal_keys", KEYS_VERSION)
        and is_current(container.vault.database, "notes", NOTES_VERSION)
        and is_current(container.views, "positions", POSITIONS_VERSION)
    )


def table_versions(container: Container) -> dict[str, int]:
    """Return the version of each set of own tables that is there."""
    return {**versions(container.stores), **versions(container.vault.database)}


def newer_tables(found: Mapping[str, int]) -> list[str]:
    """Return the sets of tables that are of a later release than this one."""
    return [name for name, version in found.items() if version > KNOWN.get(name, 0)]


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
