"""The three kinds of table: the log, the database of read models, own stores."""

from datetime import datetime
from functools import cached_property

from app.database_clock import DatabaseClock
from app.persistence import Persistence, persistence_at
from app.settings import Settings
from app.stores.faults import Faults
from app.stores.leases import SqlLeases
from app.stores.lookup_cache import SqlLookupCache
from app.stores.network_readings import SqlReadings
from app.stores.notes import Notes
from app.stores.personal_keys import PersonalKeys
from app.stores.sandbox_attempts import SqlSandboxAttempts
from app.stores.throttle import SqlThrottle
from domain.aggregates import AGGREGATES
from domain.cause import Clock, utc_now
from domain.log.log import Log
from projections.engine.database import Database


class Storage:
    """Where this installation keeps things."""

    role = "command"  # What this process is for; set before anything is opened.

    def __init__(self, settings: Settings, clock: Clock = utc_now) -> None:
        self.settings = settings
        self.local_clock = clock
        self.time = DatabaseClock(clock, self._server_time, server=lambda: self.log.server)
        self.clock: Clock = self.time

    def _server_time(self) -> datetime | None:
        return self.views.server_time()

    @cached_property
    def persistence(self) -> Persistence:
        """The engine that holds all three."""
        return persistence_at(self.settings.database_url, self.role)

    @cached_property
    def log(self) -> Log:
        """The event log; its tables are made by `migrate`."""
        return self.open_log(create=False)

    def open_log(self, *, create: bool) -> Log:
        """Open the log, making its tables when asked to."""
        tables = {"CREATE_TABLE": "y" if create else "n"}
        return Log({**self.persistence.log_environment(), **tables}, AGGREGATES)

    @cached_property
    def databases(self) -> tuple[Database, Database, Database]:
        """The databases of the read models, the own stores and the keys."""
        return self.persistence.databases()

    @cached_property
    def views(self) -> Database:
        """The database of read models and positions; a lost tail is followed again."""
        return self.databases[0]

    @cached_property
    def stores(self) -> Database:
        """The database of own stores that cost little to lose."""
        return self.databases[1]

    @cached_property
    def shared_clock(self) -> Clock:
        """The earlier of this machine's clock and the database server's.

        For what comes too early for all if one machine is ahead.
        """

        def earlier() -> datetime:
            now, told = self.local_clock(), self.views.server_time()
            return now if told is None else min(now, told)

        return earlier

    @cached_property
    def vault(self) -> PersonalKeys:
        """Keys of personal data, beside the log and as durable as it."""
        return PersonalKeys(self.databases[2], server=lambda: self.log.server)

    @cached_property
    def notes(self) -> Notes:
        """What this installation remembers of itself, beside the log."""
        return Notes(self.databases[2])

    @cached_property
    def lookup_cache(self) -> SqlLookupCache:
        """Answers kept from earlier lookups."""
        return SqlLookupCache(self.stores, self._faults("lookup_cache"))

    @cached_property
    def leases(self) -> SqlLeases:
        """Claims of running idempotent lookups."""
        return SqlLeases(self.stores, self.clock, self._faults("leases"))

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
        return SqlReadings(self.stores, self._faults("network_readings"))

    def _faults(self, store: str) -> Faults:
        return Faults(store, self.persistence.place, self._note_store_error)

    def _note_store_error(self, store: str) -> None:
        """Let who counts know that a store could not be asked; nobody does here."""
