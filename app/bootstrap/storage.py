"""The three kinds of table: the log, the database of read models, own stores.

Read models, their positions and the projector.
"""

from datetime import datetime
from functools import cached_property

from app.adapters.databases import ListeningWaker, Persistence, persistence_at
from app.adapters.stores.faults import Faults
from app.adapters.stores.leases import SqlLeases
from app.adapters.stores.lookup_cache import SqlLookupCache
from app.adapters.stores.network_readings import SqlReadings
from app.adapters.stores.notes import Notes
from app.adapters.stores.personal_keys import PersonalKeys
from app.adapters.stores.sandbox_attempts import SqlSandboxAttempts
from app.adapters.stores.throttle import SqlThrottle
from app.settings import Settings
from app.watch.database_clock import DatabaseClock
from domain.aggregates import AGGREGATES
from domain.cause import Clock, utc_now
from domain.log.log import Log
from projections.engine.database import Database
from projections.engine.freshness import Freshness
from projections.engine.positions import Positions
from projections.engine.projector import Projector
from projections.engine.read_model import ReadModel
from projections.models.api_clients import ApiClients
from projections.models.jobs import Jobs
from projections.models.link_spans import LinkSpans
from projections.models.links import Links
from projections.models.monthly_fees import FeeBook
from projections.models.open_slices import OpenSlices
from projections.models.organizations import Organizations
from projections.models.plans import Plans
from projections.models.timelines import Timelines
from projections.models.transactions import Transactions
from projections.models.unfinished import Unfinished
from projections.models.wallets import Wallets


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


class Reading(Storage):
    """What the log looks like when it is asked."""

    @cached_property
    def positions(self) -> Positions:
        """How far each follower has come."""
        return Positions()

    @cached_property
    def organizations(self) -> Organizations:
        """Organizations as read."""
        return Organizations()

    @cached_property
    def clients(self) -> ApiClients:
        """API clients as read."""
        return ApiClients()

    @cached_property
    def wallets(self) -> Wallets:
        """Balances as read."""
        return Wallets()

    @cached_property
    def transactions(self) -> Transactions:
        """The transaction stream as read."""
        return Transactions()

    @cached_property
    def jobs(self) -> Jobs:
        """Bulk jobs as read."""
        return Jobs()

    @cached_property
    def open_slices(self) -> OpenSlices:
        """Slices of bulk jobs whose work has not ended."""
        return OpenSlices()

    @cached_property
    def plans(self) -> Plans:
        """The catalogue as read."""
        return Plans()

    @cached_property
    def links(self) -> Links:
        """Links as listed."""
        return Links()

    @cached_property
    def link_spans(self) -> LinkSpans:
        """When links were active."""
        return LinkSpans()

    @cached_property
    def timelines(self) -> Timelines:
        """What has happened to links."""
        return Timelines()

    @cached_property
    def unfinished(self) -> Unfinished:
        """Links and plan changes whose work has not ended."""
        return Unfinished()

    @cached_property
    def fee_book(self) -> FeeBook:
        """Monthly fees as read."""
        return FeeBook()

    @property
    def models(self) -> list[ReadModel]:
        """Every read model."""
        return [
            self.organizations,
            self.clients,
            self.wallets,
            self.transactions,
            self.jobs,
            self.open_slices,
            self.plans,
            self.links,
            self.link_spans,
            self.timelines,
            self.unfinished,
            self.fee_book,
        ]

    @cached_property
    def waker(self) -> ListeningWaker:
        """What tells followers that the log has grown."""
        return self.persistence.waker(self.log.appended)

    @cached_property
    def freshness(self) -> Freshness:
        """How old the read models are."""
        return Freshness(self.log, self.views, self.positions, self.clock)

    @cached_property
    def projector(self) -> Projector:
        """What keeps the read models up."""
        return Projector(self.log, self.views, self.positions, self.models, self.clock)
