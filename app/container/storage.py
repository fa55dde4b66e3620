"""The three kinds of table: the log, the database of read models, own stores."""

from functools import cached_property
from pathlib import Path

from sqlalchemy import Engine

from app.persistence.sqlite import engine_for
from app.settings import Settings
from app.stores.leases import SqlLeases
from app.stores.lookup_cache import SqlLookupCache
from app.stores.network_readings import SqlReadings
from app.stores.personal_keys import PersonalKeys
from app.stores.sandbox_attempts import SqlSandboxAttempts
from app.stores.throttle import SqlThrottle
from domain.application import Log
from domain.cause import Clock, utc_now
from projections.database import Database

LOG_LOCK_TIMEOUT_S = 10


class Storage:
    """Where this installation keeps things."""

    def __init__(self, settings: Settings, clock: Clock = utc_now) -> None:
        self.settings = settings
        self.clock = clock

    @cached_property
    def log(self) -> Log:
        """The event log; its tables are made by `migrate`."""
        return self.open_log(create=False)

    def open_log(self, *, create: bool) -> Log:
        """Open the log file, making its tables when asked to."""
        return Log(
            {
                "PERSISTENCE_MODULE": "eventsourcing.sqlite",
                "SQLITE_DBNAME": str(self.settings.database_path),
                "SQLITE_LOCK_TIMEOUT": str(LOG_LOCK_TIMEOUT_S),
                "APPLICATION_RECORDER_TOPIC": "app.persistence.sqlite_log:SQLiteLogRecorder",
                "CREATE_TABLE": "y" if create else "n",
            }
        )

    @cached_property
    def views(self) -> Database:
        """The database of read models and positions; a lost tail is followed again."""
        return Database(self._engine("views", synchronous="NORMAL"))

    @cached_property
    def stores(self) -> Database:
        """The database of own stores that cost little to lose."""
        return Database(self._engine("stores", synchronous="NORMAL"))

    @cached_property
    def vault(self) -> PersonalKeys:
        """Keys of personal data, in the file of the log and as durable as it."""
        path = self.settings.database_path
        return PersonalKeys(Database(engine_for(path, synchronous="FULL")))

    def _engine(self, purpose: str, *, synchronous: str) -> Engine:
        return engine_for(self.beside_the_log(purpose), synchronous=synchronous)

    def beside_the_log(self, purpose: str) -> Path:
        """Return the path of another file of this installation."""
        path = self.settings.database_path
        return path.with_name(f"{path.stem}-{purpose}{path.suffix}")

    @cached_property
    def lookup_cache(self) -> SqlLookupCache:
        """Answers kept from earlier lookups."""
        return SqlLookupCache(self.stores)

    @cached_property
    def leases(self) -> SqlLeases:
        """Claims of running idempotent lookups."""
        return SqlLeases(self.stores, self.clock)

    @cached_property
    def throttle(self) -> SqlThrottle:
        """Counters of wrong secrets."""
        return SqlThrottle(self.stores, self.clock)

    @cached_property
    def sandbox_attempts(self) -> SqlSandboxAttempts:
        """Counters of attempts at sandbox numbers."""
        return SqlSandboxAttempts(self.stores)

    @cached_property
    def readings(self) -> SqlReadings:
        """Usage and status of links as last seen."""
        return SqlReadings(self.stores)
