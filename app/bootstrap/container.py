"""The container: builds the parts of one process from the settings.

A part is made on first use. So a process opens only what it needs, and inspecting an installation
does not create one.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cached_property, partial
from math import inf
from threading import RLock
from typing import Any, Self, TypeVar, cast, overload
from uuid import UUID, uuid4

import msgspec
from eventsourcing.persistence import StoredEvent

from app.adapters.circuit import PATIENCE_S, CircuitBreaker, GuardedLookup, GuardedNetwork
from app.adapters.databases import Databases, ListeningWaker, Persistence, persistence_at
from app.adapters.lookups.chain import ChainedLookup
from app.adapters.lookups.offline import canonical_of
from app.adapters.lookups.sandbox import NUMBERS as SANDBOX_NUMBERS
from app.adapters.lookups.sandbox import SandboxLookup
from app.adapters.queues.in_process import InProcessBroker
from app.adapters.queues.rabbitmq import DurableBroker
from app.adapters.remote.api import RemoteApi, RemoteRules
from app.adapters.remote.transcript import Transcript
from app.adapters.sinks import sink_at
from app.adapters.stores.checkpoints import SqlCheckpoints
from app.adapters.stores.faults import Faults
from app.adapters.stores.leases import SqlLeases
from app.adapters.stores.lookup_cache import SqlLookupCache
from app.adapters.stores.network_readings import SqlReadings
from app.adapters.stores.notes import Notes
from app.adapters.stores.paces import SqlPaces
from app.adapters.stores.personal_keys import PersonalKeys
from app.adapters.stores.rate_limits import SqlRequestCounts
from app.adapters.stores.reading_turns import SqlReadingTurns
from app.adapters.stores.sandbox_attempts import SqlSandboxAttempts
from app.adapters.stores.simulated_clock import SqlSimulatedClock
from app.adapters.stores.slices_in_hand import SqlSlicesInHand
from app.adapters.stores.throttle import SqlThrottle
from app.adapters.stores.webhook_deliveries import SqlDeliveries
from app.adapters.webhooks.sender import HttpSender
from app.bootstrap.hold import Hold
from app.bootstrap.known_plans import KnownPlans
from app.bootstrap.observed import Observed
from app.bootstrap.providers import LOOKUPS, NETWORKS, require_known, simulated
from app.bootstrap.rest import Rest
from app.bootstrap.schema import OwnTables
from app.security.authorization import Authorizer
from app.security.checkpoint_keys import CheckpointKeys
from app.security.checkpoint_keys import verify as verify_signature
from app.security.key_file import Kind
from app.security.keys import KeyRing, Pepper, WebhookKey
from app.security.rate_limits import RateLimits
from app.security.ring import Ring
from app.security.secrets import SecretHasher
from app.security.tokens import LEEWAY_S, TokenIssuer, TokenVerifier
from app.settings import (
    DOWNLOADS_MAX,
    DOWNLOADS_OF_ONE_MAX,
    LOOKUP_THREADS,
    PROVISION_THREADS,
    WAITING_MAX,
    WEBHOOK_THREADS,
    Settings,
    WrongSetting,
)
from app.watch.clock_check import ClockCheck
from app.watch.logging import WorkLog, note_cause
from app.watch.metrics import Metrics
from app.watch.tracing import tracing
from domain.accounts.commands import Accounts
from domain.accounts.committer import Committer
from domain.accounts.currency import Currency
from domain.accounts.monthly_billing import MonthlyBilling
from domain.accounts.operators import Operators
from domain.accounts.providers import Drains
from domain.aggregates import AGGREGATES
from domain.catalogue.commands import Catalogue
from domain.catalogue.matching import PlansByKey
from domain.catalogue.plan import SIMULATED, PlanTerms
from domain.cause import Clock, utc_now
from domain.errors import NotPossible
from domain.links.change_plans import LinkPlans
from domain.links.create import LinkCreate, ProvisioningRules
from domain.links.ending import LinkEnding
from domain.links.failing import Failing
from domain.links.importing import LinkImport
from domain.links.network import EsimNetwork
from domain.links.networks import Networks
from domain.links.notifications import Notifications
from domain.links.readings import LinkReadings
from domain.links.status import LinkStatusSwitch
from domain.links.waiting import Waiting
from domain.log.log import Log
from domain.lookups.answers import AnswerRules, Answers
from domain.lookups.bulk_commands import BulkCancel, BulkCreate
from domain.lookups.in_flight import InFlight
from domain.lookups.open_items import OpenItems
from domain.lookups.ports import LookupProvider
from domain.lookups.single import SingleLookup
from domain.places import Places
from domain.provider_errors import ProviderError
from domain.webhooks.commands import Webhooks
from domain.webhooks.signatures import WebhookSigner
from projections.audit.auditor import LogCheck
from projections.audit.covering import ChangedCheckpoint
from projections.audit.kept_tree import KeptTree
from projections.audit.report import Failure, Report
from projections.audit.tree_keeper import TreeKeeper
from projections.audit.witnesses import Claim, Claims, DamagedCheckpoints, KeptLeaves, Witness
from projections.engine.consumer import Source
from projections.engine.database import Database
from projections.engine.follower import Lock
from projections.engine.freshness import Freshness
from projections.engine.positions import Positions
from projections.engine.projector import Projector
from projections.engine.read_model import ReadModel
from projections.finance.views import ON_FILES
from projections.models.api_clients import ApiClients
from projections.models.erasures import Erasures
from projections.models.jobs import Jobs
from projections.models.link_spans import LinkSpans
from projections.models.links import Links
from projections.models.monthly_fees import FeeBook
from projections.models.open_slices import OpenSlices
from projections.models.organizations import Organizations
from projections.models.plans import Plans
from projections.models.proposals import Proposals
from projections.models.statements import Statements
from projections.models.timelines import Timelines
from projections.models.transactions import Transactions
from projections.models.unfinished import Unfinished
from projections.models.usage import Usage
from projections.models.wallets import Wallets
from projections.models.webhook_endpoints import WebhookEndpoints
from workers import actors
from workers.bulk import BulkLookup
from workers.checkpoints import CheckpointRules, Checkpoints
from workers.cut_off import CutOff
from workers.dispatcher import Dispatcher
from workers.fees import FeeReads, FeeRound, MonthlyFees
from workers.links import EsimReservation, LinkWork, Provisioning
from workers.lookup_turns import LookupTurns
from workers.lost_orders import LostOrders
from workers.months import MonthEnd
from workers.nightly_audit import NightlyAudit
from workers.plan_changes import PlanChanges, PlanChangeWork
from workers.reading import BackgroundReading, Lane
from workers.routes import DramatiqPublisher
from workers.shares import Shares
from workers.sweep import ProvisioningSweep, Sweep
from workers.webhook_planner import WebhookPlanner
from workers.webhooks import WebhookWork

IN_FLIGHT_MAX = 12  # Lookups of one organization, because it must not hold all HTTP threads.
DOWNLOADS_SHARE = "Too many downloads of this organization are under way; try again."
NETWORK_PROBE_S = 5.0  # How long a network that was down may take to answer a probe.
# How many messages a dispatcher queues when it starts; the sweep queues the rest.
BOOT_JOBS_MAX = 10_000

M = TypeVar("M", bound=ReadModel)
T = TypeVar("T")

logger = logging.getLogger(__name__)


class part(cached_property[T]):  # noqa: N801  # A decorator, as `property` is.
    """A cached property under a lock, which the library's no longer has since Python 3.12.

    All parts of a container share one lock, `making`, because making one part makes others.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """Return the part; once it is made, Python takes it from the container's `__dict__`."""
        if instance is None:
            return self
        with instance.making:
            made = instance.__dict__
            if self.attrname not in made:
                made[self.attrname] = self.func(instance)
            return made[self.attrname]


class _ReadModel(part[M]):
    """A read model as a part; it is also listed in `models`."""

    def __init__(self, kind: type[M]) -> None:
        super().__init__(lambda _: kind())


class Container:
    """The parts of one process. Set `role` before the first part is used.

    Raises WrongSetting when a provider is not known.
    """

    role = "command"

    def __init__(self, settings: Settings, clock: Clock = utc_now) -> None:
        require_known(settings)
        self.making = RLock()
        self.settings = settings
        self.clock = clock
        self.monotonic: Callable[[], float] = time.monotonic
        self.began = clock(), self.monotonic()
        self.clock_check = ClockCheck(clock, self._server_time)
        self.is_closed = False
        self.circuits: list[CircuitBreaker] = []
        self.remote_apis: list[RemoteApi] = []
        self.transcript: Transcript | None = None

    def _server_time(self) -> datetime | None:
        return self.views.server_time()

    # The databases: the log, the read models, own stores, and keys beside the log.

    @part
    def persistence(self) -> Persistence:
        """The database system that holds all tables."""
        settings = self.settings
        return persistence_at(settings.database_url, self.role, settings.service_role)

    @part
    def log(self) -> Log:
        """The event log; its tables are made by `migrate`."""
        return self.open_log(create=False)

    def open_log(self, *, create: bool) -> Log:
        """Open the log, with new tables if `create`; metrics count what it appends."""
        tables = {"CREATE_TABLE": "y" if create else "n"}
        log = Log({**self.persistence.log_environment(), **tables}, AGGREGATES)
        log.observer, log.around = self._note_events, tracing().committing
        return log

    def _note_events(self, stored: Sequence[StoredEvent]) -> None:
        self.metrics.appended(stored)
        if stored:
            note_cause(lambda: _cause_of(stored[0]))

    @part
    def databases(self) -> Databases:
        return self.persistence.databases()

    @part
    def views(self) -> Database:
        """The database of read models and positions; after a crash they catch up with the log."""
        return self.databases.views

    def open_finance(self) -> Database:
        """Open the finance views in read-only sessions; the caller closes them."""
        url = self.settings.finance_database_url or self.settings.database_url
        return persistence_at(url, "finance").read_only(ON_FILES)

    @part
    def stores(self) -> Database:
        """The database of own stores that cost little to lose."""
        return self.databases.stores

    @part
    def shared_clock(self) -> Clock:
        """The database server's clock, asked each time; this machine's where it has none."""
        return lambda: self.views.server_time() or self.clock()

    @part
    def cut_off(self) -> CutOff:
        """The time of what is done once and for ever, and whether it can be believed."""

        def alive(at: datetime) -> None:
            self.notes.replace("alive", "", at)

        own, check = (self.clock, self.monotonic), self.clock_check.check
        return CutOff(self.shared_clock, check, self._last_sign, alive, own, self.began)

    def _last_sign(self) -> datetime | None:
        """Return when the installation was last alive; before its first note, what else tells."""
        if (note := self.notes.newest("alive")) is not None:
            return note.at
        newest = self.log.stored(self.log.head() - 1, 1)
        beats = (each.caught_up_at for each in self.positions.all(self.views).values())
        signs = [*(each.timestamp for each in newest), *(at for at in beats if at is not None)]
        return max(signs, default=None)

    # Own stores. A new store is a part here, and its tables go into a set of `own_tables`.

    @part
    def vault(self) -> PersonalKeys:
        """Keys of personal data, in the database of the log and as durable as the log."""
        return PersonalKeys(self.databases.keys)

    @part
    def notes(self) -> Notes:
        """What this installation notes about itself, in the database of the log."""
        return Notes(self.databases.keys)

    @part
    def hold(self) -> Hold:
        """Whether this installation is a held copy; a thread of each process looks every second."""
        return Hold(self.notes, self.log)

    @part
    def rest(self) -> Rest:
        """Whether this process acts on nothing now."""
        return Rest(self.hold, self.clock_check)

    def is_resting(self) -> bool:
        return self.rest.is_on

    def checked_clock(self) -> datetime:
        """Tell the time to what refunds, or repeats a call; raises ClockOff if it is wrong."""
        now = self.clock()
        self.clock_check.refuse()
        return now

    @part
    def lookup_cache(self) -> SqlLookupCache:
        """Answers kept from earlier lookups."""
        return SqlLookupCache(self.stores, self._faults("lookup_cache"))

    @part
    def leases(self) -> SqlLeases:
        """Leases of running idempotent lookups."""
        return SqlLeases(self.stores, self.clock, self._faults("leases"))

    @part
    def paces(self) -> SqlPaces:
        """How fast providers may be called."""
        return SqlPaces(self.stores, self.clock, self._faults("provider_paces"))

    @part
    def request_counts(self) -> SqlRequestCounts:
        """Requests of organizations in this minute."""
        return SqlRequestCounts(self.stores, self._faults("rate_limits"))

    @part
    def rate_limits(self) -> RateLimits:
        return RateLimits(self.request_counts, self.clock)

    @part
    def throttle(self) -> SqlThrottle:
        """Counters of wrong secrets."""
        return SqlThrottle(self.stores, self.clock)

    @part
    def sandbox_attempts(self) -> SqlSandboxAttempts:
        """Counters of attempts at sandbox numbers."""
        return SqlSandboxAttempts(self.stores)

    @part
    def simulated_clock(self) -> SqlSimulatedClock:
        """How far the clock of a sandbox's simulated network is ahead."""
        return SqlSimulatedClock(self.stores)

    @part
    def readings(self) -> SqlReadings:
        """Usage and status of links as last seen."""
        return SqlReadings(self.stores, self._faults("network_readings"))

    @part
    def reading_turns(self) -> SqlReadingTurns:
        """When each link is read in the background."""
        return SqlReadingTurns(self.stores)

    @part
    def slices_in_hand(self) -> SqlSlicesInHand:
        return SqlSlicesInHand(self.stores)

    def _faults(self, store: str) -> Faults:
        return Faults(store, self.persistence.place, self.metrics.store_failed)

    @property
    def own_tables(self) -> list[OwnTables]:
        """Every set of tables besides the log and the read models, as `migrate` makes them.

        Raise the version of a set when its tables change; `ensure` says what happens then.
        """
        plain = (self.lookup_cache, self.leases, self.throttle, self.sandbox_attempts)
        plain_tables = [store.metadata for store in (*plain, self.readings)]
        keys, stores, told = self.vault, self.stores, self.webhook_deliveries
        checkpoints = self.checkpoint_store
        return [
            OwnTables("stores", 2, stores, plain_tables),
            OwnTables("slices_in_hand", 1, stores, [self.slices_in_hand.metadata]),
            OwnTables("rate_limits", 1, stores, [self.request_counts.metadata]),
            OwnTables("reading_turns", 1, stores, [self.reading_turns.metadata]),
            OwnTables("provider_paces", 1, stores, [self.paces.metadata]),
            OwnTables("simulated_clock", 1, stores, [self.simulated_clock.metadata]),
            OwnTables("simulated_network", 1, stores, [simulated(self).metadata]),
            OwnTables("personal_keys", 1, keys.database, [keys.metadata], cheap=False),
            OwnTables("key_branches", 1, keys.database, [keys.branch_metadata], cheap=False),
            OwnTables("checkpoints", 1, keys.database, [checkpoints.metadata], cheap=False),
            OwnTables("notes", 1, keys.database, [self.notes.metadata]),
            OwnTables("audit_tree", 1, self.views, [self.kept_tree.metadata]),
            OwnTables("webhook_deliveries", WebhookPlanner.version, self.views, [told.metadata]),
            # Without positions every read model is rebuilt, and the dispatcher sweeps.
            OwnTables("positions", 1, self.views, [self.positions.metadata]),
        ]

    # Read models: one line for each.

    organizations = _ReadModel(Organizations)
    clients = _ReadModel(ApiClients)
    wallets = _ReadModel(Wallets)
    proposals = _ReadModel(Proposals)
    transactions = _ReadModel(Transactions)
    statements = _ReadModel(Statements)
    usage = _ReadModel(Usage)
    jobs = _ReadModel(Jobs)
    open_slices = _ReadModel(OpenSlices)
    plans = _ReadModel(Plans)
    links = _ReadModel(Links)
    link_spans = _ReadModel(LinkSpans)
    timelines = _ReadModel(Timelines)
    unfinished = _ReadModel(Unfinished)
    fee_book = _ReadModel(FeeBook)
    webhook_endpoints = _ReadModel(WebhookEndpoints)
    erasures = _ReadModel(Erasures)

    @property
    def models(self) -> list[ReadModel]:
        parts = [each for kind in type(self).__mro__ for each in vars(kind).items()]
        made = [getattr(self, name) for name, kind in parts if isinstance(kind, _ReadModel)]
        for model in made:
            model.vault = self.vault
        return made

    @part
    def positions(self) -> Positions:
        """How far each follower has come."""
        return Positions()

    @part
    def waker(self) -> ListeningWaker:
        """Tells followers that the log has grown."""
        return self.persistence.waker(self.log.appended)

    @part
    def freshness(self) -> Freshness:
        """Tells how old the read models are."""
        return Freshness(self.log, self.views, self.positions, self.clock)

    @part
    def source(self) -> Source:
        """What every consumer of the log needs."""
        return Source(self.log, self.views, self.positions, self.clock)

    @part
    def projector(self) -> Projector:
        """Keeps the read models up to date."""
        return Projector(self.source, self.models)

    # What an auditor can check.

    @part
    def kept_tree(self) -> KeptTree:
        """The leaves of all events, as they were when they were first seen."""
        return KeptTree()

    @part
    def tree_keeper(self) -> TreeKeeper:
        """Keeps the tree up to date."""
        return TreeKeeper(self.source, self.kept_tree)

    @part
    def checkpoint_keys(self) -> CheckpointKeys:
        """The keys that sign checkpoints."""
        return CheckpointKeys(self.settings.signing_keys, self.clock)

    @part
    def checkpoint_store(self) -> SqlCheckpoints:
        """The checkpoints that were signed here, in the database of the log."""
        return SqlCheckpoints(self.databases.keys)

    @part
    def checkpoints(self) -> Checkpoints:
        """Makes checkpoints and brings them to their sink."""
        settings = self.settings
        rules = CheckpointRules(
            origin=settings.checkpoint_origin,
            every=timedelta(seconds=settings.checkpoint_every_s),
            lag=self._checkpoint_lag,
        )
        return Checkpoints(
            self.log,
            self.views,
            self.tree_keeper,
            self.kept_tree,
            self.checkpoint_store,
            self.checkpoint_keys.newest,
            rules,
            sink_at(settings.checkpoint_sink),
            self.clock,
        )

    def _checkpoint_lag(self) -> timedelta:
        waits = self.views.waits_for_standby()
        return timedelta(0) if waits else timedelta(seconds=self.settings.checkpoint_lag_s)

    def witnesses(self) -> list[Witness]:
        """Return the kept leaves and our own checkpoints, against which the log is checked.

        A checkpoint whose key is missing still counts, because its root can be compared.
        """
        known = [key.public_key for key in self.checkpoint_keys.live()]
        kept = [*self.checkpoint_store.all()]
        signed = (each.signed for each in kept if not isinstance(each, ChangedCheckpoint))
        changed = [each for each in kept if isinstance(each, ChangedCheckpoint)]
        ours = [
            Claim(
                f"our checkpoint of {each.checkpoint.at:%Y-%m-%d %H:%M:%S}",
                each.checkpoint,
                each.fault(known, verify_signature) if each.is_by(known) else None,
            )
            for each in signed
        ]
        spoiled = DamagedCheckpoints([Failure(each.position, str(each)) for each in changed])
        return [KeptLeaves(self.views, self.kept_tree), Claims(ours, listed=False), spoiled]

    @part
    def nightly_audit(self) -> NightlyAudit:
        """The nightly audit, which stores its result as a note."""

        def newest() -> datetime | None:
            note = self.notes.newest("audit")
            return None if note is None else note.at

        def tell(report: Report) -> None:
            told = {"events": report.events, "failures": [asdict(each) for each in report.failures]}
            value = msgspec.json.encode(told).decode()
            self.notes.replace("audit", value, self.clock())

        return NightlyAudit(lambda: LogCheck(self.log, self.witnesses()), newest, tell, self.clock)

    def statement_checkpoint(self, closed_at: int | None) -> str | None:
        """Return the signed checkpoint for the statements of the month closed at this position.

        None while the month is open, while no checkpoint covers it, or if its checkpoint was
        changed.
        """
        with suppress(ChangedCheckpoint):  # The audit reports it.
            if closed_at is not None and (found := self.checkpoint_store.covering(closed_at)):
                return found.signed.note
        return None

    # Money and the catalogue.

    @part
    def committer(self) -> Committer:
        """The only writer of wallets in this process."""
        return Committer(self.log, self.persistence.turns(), self.rest.refuse)

    @part
    def currency(self) -> Currency:
        return Currency(self.log, self.settings.currency)

    @part
    def accounts(self) -> Accounts:
        """Operators' commands on organizations, clients and wallets."""
        return Accounts(self.log, self.committer, self.currency, uuid4)

    @part
    def operators(self) -> Operators:
        return Operators(self.log)

    @part
    def operators_turn(self) -> Lock:
        """Held by a command that writes, until it ends."""
        return self.persistence.lock("operators")

    @part
    def catalogue(self) -> Catalogue:
        """Operators' commands on plans."""
        return Catalogue(self.log, self._plans_by_key)

    @part
    def link_import(self) -> LinkImport:
        """Takes over links that were issued elsewhere."""
        return LinkImport(self.log, self.vault, self.networks, self._plan_terms)

    def _plan_terms(self) -> Mapping[UUID, PlanTerms]:
        """Return the terms of all plans, once their read model is as new as the log."""
        self.projector.catch_up(self.log.head())
        with self.views.reading() as connection:
            return {row.id: row.terms for row in self.plans.all(connection)}

    def _plans_by_key(self) -> PlansByKey:
        """Return all plans by key, once their read model is as new as the log."""
        goal = self.log.head()
        self.projector.catch_up(goal)
        with self.views.reading() as connection:
            place = self.positions.get(connection, self.plans.name)
            if place is None or place.position < goal:
                message = "read model plans is behind the log; see: projections status"
                raise NotPossible(message)
            return self.plans.keys(connection)

    @part
    def known_plans(self) -> KnownPlans:
        """The terms of plans, read once for a request."""
        return KnownPlans(self.views, self.plans, self.clock)

    # Providers.

    def record_calls(self) -> list[dict[str, Any]]:
        """Record all later calls to providers, redacted, in the list that is returned.

        Call this before any provider is made.
        """
        self.transcript = Transcript()
        return self.transcript.exchanges

    def remote_api(
        self,
        name: str,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        rules: RemoteRules | None = None,
    ) -> RemoteApi:
        """Open the HTTP API of a provider; `headers` go with each call, and `close` closes it.

        Raises WrongSetting for a base URL that would leave this machine without TLS.
        """
        try:
            api = RemoteApi(
                name,
                base_url,
                clock=self.clock,
                headers=headers,
                rules=rules,
                tell=self.metrics.called,
                pace=partial(self.paces.turn, name),
                record=None if self.transcript is None else self.transcript.note,
            )
        except ValueError as error:
            message = f"the base URL of {name} {error}"
            raise WrongSetting(message) from None
        self.remote_apis.append(api)
        return api

    @part
    def drains(self) -> Drains:
        """Which providers get no new work; a thread of each process reads this every second."""
        settings = self.settings
        return Drains(self.log, [*settings.lookup_providers, *settings.networks])

    # Lookups.

    @part
    def bare_lookups(self) -> list[LookupProvider]:
        """The providers of lookups that LOOKUP_PROVIDER names, without their circuits."""
        return [LOOKUPS[name](self) for name in self.settings.lookup_providers]

    @part
    def lookups(self) -> list[LookupProvider]:
        """The providers of lookups in the order in which they are asked, each with a circuit."""
        *others, last = self.bare_lookups
        patient = [(each, PATIENCE_S) for each in others] + [(last, inf)]
        return [self._guarded(bare, patience_s) for bare, patience_s in patient]

    def _guarded(self, bare: LookupProvider, patience_s: float) -> LookupProvider:
        circuit = CircuitBreaker("lookup provider", bare.name, bare.probe, patience_s=patience_s)
        self.circuits.append(circuit)
        return GuardedLookup(bare, circuit, self._gets_no_lookups)

    def _gets_no_lookups(self, name: str) -> bool:
        return self.is_resting() or self.drains.has(name)

    @part
    def provider(self) -> LookupProvider:
        """Answers lookups; the failures that a sandbox plays never open a circuit."""
        first, *others = self.lookups
        provider = ChainedLookup(self.lookups, self.metrics.fell_over) if others else first
        if not self.settings.sandbox:
            return provider
        return SandboxLookup(provider, self.sandbox_attempts, time.sleep)

    def warm(self) -> None:
        """Connect to the provider or load its data, so that the first lookup need not wait."""
        try:
            if not self.is_resting():
                self.provider.probe()
        except ProviderError:
            pass  # A provider that is down is noticed when it is asked.
        except Exception as error:  # noqa: BLE001  # Lookups go on. The text may hold a secret.
            logger.warning("the lookup provider could not be warmed: %s", type(error).__name__)

    @part
    def answers(self) -> Answers:
        """Answers from the cache, then from the provider; counted by source."""
        return Answers(self.provider, self.lookup_cache, self.clock, self.answer_rules())

    def answer_rules(self) -> AnswerRules:
        """Return the settings about answers."""
        settings = self.settings
        return AnswerRules(
            cache_ttl=settings.lookup_cache_ttl,
            uncached=SANDBOX_NUMBERS if settings.sandbox else (),
            pause=time.sleep,
            tell=self.metrics.looked_up,
            costs=settings.lookup_costs,
            cache_ttls=self._cache_ttls(),
            concurrency=max(settings.lookups_at_once.values()),
            carry=tracing().carried,
            canonical_of=canonical_of,
        )

    def _cache_ttls(self) -> dict[str, timedelta]:
        """Return how long answers are kept, by provider, where that differs from the default.

        Answers of a provider in this process are never kept. It stands in for a remote provider, so
        a kept answer would still be given after the remote provider is back.
        """
        near = {each.name: timedelta(0) for each in self.bare_lookups if not each.remote}
        return self.settings.lookup_cache_ttls | near

    @part
    def single_lookup(self) -> SingleLookup:
        has_slow_calls = self.provider.remote or self.settings.sandbox
        return SingleLookup(
            log=self.log,
            committer=self.committer,
            vault=self.vault,
            answers=self.answers,
            leases=self.leases if has_slow_calls else None,
            in_flight=InFlight(IN_FLIGHT_MAX, WAITING_MAX - IN_FLIGHT_MAX),
            postponed=InFlight(),
            clock=self.clock,
            new_id=uuid4,
        )

    @part
    def bulk_create(self) -> BulkCreate:
        open_items = OpenItems(self._open_items, self.settings.job_items_open_max)
        return BulkCreate(self.log, self.committer, self.vault, open_items, uuid4)

    @part
    def bulk_cancel(self) -> BulkCancel:
        return BulkCancel(self.log, self.committer, self.vault)

    def _open_items(self, organization_id: UUID) -> tuple[int, int]:
        with self.views.reading() as connection:
            place = self.positions.get(connection, self.open_slices.name)
            shown = self.open_slices.items_of(connection, organization_id)
        return shown, place.position if place is not None else 0

    @part
    def bulk_lookup(self) -> BulkLookup:
        return BulkLookup(self.log, self.committer, self.vault, self.answers, self.clock)

    @part
    def lookup_turns(self) -> LookupTurns:
        """Decides which slice of which job comes next."""
        return LookupTurns(
            self.log,
            self.views,
            self.open_slices,
            self.slices_in_hand,
            self.bulk_lookup,
            self.publisher,
            self.clock,
            LOOKUP_THREADS,
        )

    # Links.

    @part
    def bare_network(self) -> EsimNetwork:
        """The network that NETWORK_PROVIDER names first, without its circuit."""
        return NETWORKS[self.settings.networks[0]](self)

    @part
    def network(self) -> EsimNetwork:
        """The network of imported plans that name none."""
        return self._guarded_network(self.bare_network)

    @part
    def networks(self) -> Networks:
        """The networks that NETWORK_PROVIDER names."""
        first, *others = self.settings.networks
        made = {name: self._guarded_network(NETWORKS[name](self)) for name in others}
        return Networks({first: self.network, **made}, self._is_drained, self.is_resting)

    def _is_drained(self, name: str) -> bool:
        return self.drains.has(name)  # Looked up late: `check_settings` must not open the log.

    @property
    def network_names(self) -> Iterable[str]:
        """Every network that links may run on: the configured ones first, then all others."""
        return dict.fromkeys([*self.settings.networks, *NETWORKS])

    def _guarded_network(self, bare: EsimNetwork) -> EsimNetwork:
        """Put a circuit breaker around a remote network; the simulated one fails on purpose."""
        if not bare.remote:
            return bare
        circuit = CircuitBreaker(
            "eSIM network", bare.name, lambda: bare.probe(timeout_s=NETWORK_PROBE_S)
        )
        self.circuits.append(circuit)
        return cast("EsimNetwork", GuardedNetwork(bare, circuit))

    @part
    def provisioning_rules(self) -> ProvisioningRules:
        """The operator's settings about links."""
        settings = self.settings
        return ProvisioningRules(
            base_plan=settings.network_base_plan,
            product=settings.network_esim_product,
            currency=settings.currency,
            deadline=timedelta(seconds=settings.provisioning_deadline_s),
        )

    @part
    def failing(self) -> Failing:
        """Fails links and changes of their plans."""
        return Failing(self.log, self.committer, self.networks, self.checked_clock)

    @part
    def waiting(self) -> Waiting:
        """The places of requests that wait for the network; a gauge shows how many are taken."""
        shown, networks = self.metrics.waiting.track_inprogress, len(self.settings.networks)
        return Waiting(WAITING_MAX, shown, networks)

    @part
    def downloads(self) -> Places:
        """The places of streamed replies, whose rows are still read while they are sent."""
        return Places(
            DOWNLOADS_MAX,
            DOWNLOADS_OF_ONE_MAX,
            beyond_share=DOWNLOADS_SHARE,
            full="Too many downloads are under way; try again.",
            shown=self.metrics.downloads.track_inprogress,
        )

    @part
    def link_create(self) -> LinkCreate:
        return LinkCreate(
            log=self.log,
            failing=self.failing,
            networks=self.networks,
            offers=self.known_plans.offer,
            waiting=self.waiting,
            rules=self.provisioning_rules,
            vault=self.vault,
            clock=self.clock,
            new_id=uuid4,
        )

    @part
    def link_plans(self) -> LinkPlans:
        """The command that changes the plans of a link."""
        return LinkPlans(
            log=self.log,
            committer=self.committer,
            failing=self.failing,
            networks=self.networks,
            offers=self.known_plans.offer,
            waiting=self.waiting,
            rules=self.provisioning_rules,
            clock=self.clock,
            new_id=uuid4,
        )

    @part
    def link_status(self) -> LinkStatusSwitch:
        """The command that suspends and reactivates links."""
        return LinkStatusSwitch(self.log, self.networks, self.waiting, self.checked_clock)

    @part
    def link_ending(self) -> LinkEnding:
        """The commands that end and cancel links."""
        within = timedelta(days=self.settings.link_cancel_days)
        parts = (self.log, self.committer, self.networks, self.waiting)
        return LinkEnding(*parts, within, self.checked_clock)

    @part
    def link_readings(self) -> LinkReadings:
        """Reads usage and status of links."""
        return LinkReadings(
            self.log,
            self.networks,
            self.readings,
            self.vault,
            self.waiting,
            self.clock,
            tells=self.settings.readings_refresh_s > 0,
        )

    @part
    def background_reading(self) -> BackgroundReading:
        """Keeps usage and status of links fresh even if nobody reads them."""
        networks = [self.networks.of(name) for name in self.networks.names]
        return BackgroundReading(
            self.link_readings,
            self.reading_turns,
            self.views,
            self.links,
            self.clock,
            timedelta(seconds=self.settings.readings_refresh_s),
            {each.name: Lane(each.background_reads_per_s) for each in networks},
        )

    @part
    def notifications(self) -> Notifications:
        """Takes the notifications of networks."""
        return Notifications(self.link_readings)

    @part
    def provisioning(self) -> LinkWork:
        """Works on links, each with its network."""
        return LinkWork(self.log, self.networks, self.provision_shares, self._provisioning_of)

    def _provisioning_of(self, network: EsimNetwork) -> Provisioning:
        return Provisioning(
            log=self.log,
            network=network,
            readings=self.readings,
            vault=self.vault,
            reservation=EsimReservation(
                self.log, self.committer, network, self.provisioning_rules, self.checked_clock
            ),
            failing=self.failing,
            ending=self.link_ending,
            rules=self.provisioning_rules,
            clock=self.checked_clock,
            new_id=uuid4,
        )

    @part
    def plan_changes(self) -> PlanChangeWork:
        """Works on plan changes, each with the network of its link."""
        return PlanChangeWork(self.log, self.networks, self.provision_shares, self._plan_changes_of)

    def _plan_changes_of(self, network: EsimNetwork) -> PlanChanges:
        return PlanChanges(self.log, network, self.failing, self.checked_clock)

    @part
    def lost_orders(self) -> LostOrders:
        return LostOrders(self.log, self.networks, self.checked_clock, self.provision_shares)

    @part
    def provision_shares(self) -> Shares:
        """Shares the threads of the provisioning queue between networks and organizations."""
        return Shares(PROVISION_THREADS, len(self.settings.networks))

    # Webhooks.

    @part
    def webhooks(self) -> Webhooks:
        """The commands and reads of webhook endpoints."""
        return Webhooks(self.log, self.vault, uuid4, lambda: self.webhook_key.newest().id)

    @part
    def webhook_deliveries(self) -> SqlDeliveries:
        """The deliveries to endpoints, in the database that holds their planner's position."""
        return SqlDeliveries(self.views)

    @part
    def webhook_planner(self) -> WebhookPlanner:
        """Plans deliveries to endpoints."""
        parts = self.webhook_endpoints, self.webhook_deliveries, self.publisher
        return WebhookPlanner(self.source, *parts)

    @part
    def webhook_work(self) -> WebhookWork:
        """Sends the planned deliveries to endpoints."""
        return WebhookWork(
            self.log,
            self.webhooks,
            self.webhook_deliveries,
            self.webhook_sender,
            self.webhook_signer.sign,
            self.webhook_key.can_sign,
            self.publisher,
            self.clock,
            WEBHOOK_THREADS,
            self.cut_off.is_doubted,
        )

    @part
    def webhook_key(self) -> WebhookKey:
        """The keys that secrets of webhooks are derived from."""

        def noted() -> str | None:
            note = self.notes.newest("webhook_key")
            return None if note is None else note.value

        return WebhookKey(self.settings.signing_keys, self.clock, noted)

    @part
    def webhook_signer(self) -> WebhookSigner:
        """Makes secrets of webhooks, and signs with them."""
        return WebhookSigner(self.webhook_key.value)

    @part
    def webhook_sender(self) -> HttpSender:
        return HttpSender(
            allow_private=self.settings.webhooks_allow_private, tell=self.metrics.told
        )

    # Monthly fees, and the end of a month.

    @part
    def fee_round(self) -> FeeRound:
        """Queues the work of the monthly fees."""
        return FeeRound(self.publisher)

    @part
    def monthly_fees(self) -> MonthlyFees:
        """Charges for active links, month by month."""
        billing = MonthlyBilling(self.log, self.committer, self.currency)
        reads = FeeReads(
            database=self.views,
            organizations=self.organizations,
            links=self.link_spans,
            book=self.fee_book,
            reach=self._reach_fees,
        )
        return MonthlyFees(self.log, billing, reads, self.cut_off)

    def _reach_fees(self, position: int) -> bool:
        """Project up to a position; False if a read model of the fees has stopped before it."""
        self.projector.catch_up(position)
        places = self.positions.all(self.views)
        needed = (self.organizations.name, self.link_spans.name, self.fee_book.name)
        return all(name in places and places[name].position >= position for name in needed)

    @part
    def month_end(self) -> MonthEnd:
        """Closes the months that are over."""
        return MonthEnd(self.log, self.cut_off)

    # The queues and what fills them.

    @part
    def broker(self) -> InProcessBroker | DurableBroker:
        """The queues, with every actor declared; nothing is connected before it is used.

        Each message that a worker handles gets a log line and a count.
        """
        settings = self.settings
        broker: InProcessBroker | DurableBroker = InProcessBroker()
        if not settings.has_own_broker:
            broker = DurableBroker(settings.broker_url.split(","), quorum=settings.quorum_queues)
        actors.register(broker, self)
        for each in (*tracing().middleware(), WorkLog(self.metrics.worked)):
            broker.add_middleware(each)
        return broker

    @part
    def publisher(self) -> DramatiqPublisher:
        """Puts messages into queues."""
        return DramatiqPublisher(self.broker, self.broker.backlog)

    @part
    def dispatcher(self) -> Dispatcher:
        """Turns events into messages."""
        around = tracing().dispatching
        return Dispatcher(self.source, self.publisher, self.sweep_everything, around)

    @part
    def sweep(self) -> Sweep:
        """Queues idle jobs again."""
        return Sweep(self.log, self.views, self.jobs, self.publisher, self.clock)

    @part
    def provisioning_sweep(self) -> ProvisioningSweep:
        """Queues links and plan changes again that are due."""
        return ProvisioningSweep(self.views, self.unfinished, self.publisher, self.clock)

    def sweep_everything(self) -> None:
        """Queue all unfinished work, because after a start its earlier messages may be lost."""
        self.projector.catch_up()
        self.sweep.run(idle=timedelta(0), jobs_max=BOOT_JOBS_MAX)
        self.provisioning_sweep.run(everything=True, work_max=BOOT_JOBS_MAX)

    # Who may do what.

    @part
    def keys(self) -> KeyRing:
        settings = self.settings
        retire_after_s = settings.token_ttl_s + LEEWAY_S
        return KeyRing(settings.signing_keys, settings.token_algorithm, self.clock, retire_after_s)

    @part
    def issuer(self) -> TokenIssuer:
        settings = self.settings
        return TokenIssuer(
            self.keys, settings.iss, settings.token_audience, settings.token_ttl_s, self.clock
        )

    @part
    def verifier(self) -> TokenVerifier:
        return TokenVerifier(self.keys, self.settings.iss, self.settings.token_audience, self.clock)

    @part
    def pepper(self) -> Pepper:
        """The peppers of client secrets and operator keys."""
        settings = self.settings
        return Pepper(
            settings.signing_keys,
            self.clock,
            lambda: self.notes.newest("pepper") is not None,
            settings.secret_pepper.encode(),
        )

    @property
    def rings(self) -> Mapping[Kind, Ring[Any]]:
        """The keys of each kind, as commands renew and revoke them."""
        return {
            "signing": self.keys,
            "pepper": self.pepper,
            "webhooks": self.webhook_key,
            "checkpoints": self.checkpoint_keys,
        }

    @part
    def secret_hasher(self) -> SecretHasher:
        """Hashes and compares client secrets."""
        return SecretHasher(self.pepper)

    def endless_secrets_until(self) -> datetime | None:
        """Return when secrets end whose rotation set no end; None before `migrate` has noted it."""
        noted = self.notes.all("endless_secrets")
        return datetime.fromisoformat(noted[0].value) if noted else None

    @part
    def authorizer(self) -> Authorizer:
        """Decides who may do what now."""
        return Authorizer(
            self.log, self.views, self.positions, self.organizations, self.clients, self.clock
        )

    # What operators watch.

    @part
    def metrics(self) -> Metrics:
        """The counters of this process, and the gauges that are read at each scrape."""
        return Metrics(self.observed, WAITING_MAX)

    @part
    def observed(self) -> Observed:
        """The values that metrics and `doctor` report."""
        return Observed(self)

    # Start and end.

    def check_settings(self) -> None:
        """Make the parts that check a setting themselves, such as a table or a URL.

        Raises WrongSetting.
        """
        _ = self.bare_lookups, self.broker
        if {*self.settings.networks} != {SIMULATED}:  # The simulated one needs only a database.
            _ = self.networks

    def complete(self) -> None:
        """Make every part that is still missing, so that no request has to wait for one."""
        for name in dir(type(self)):
            if isinstance(getattr(type(self), name), part):
                getattr(self, name)

    def anew(self) -> Self:
        """Return a container of the same settings for the server that answers now.

        Nothing that this one remembers of the log goes over; the metrics go on counting.
        """
        following = type(self)(self.settings, self.clock)
        following.role = self.role
        going_on = {"metrics": self.metrics, "observed": self.observed}
        following.__dict__.update(going_on)
        self.observed.watch(following)
        return following

    def close(self) -> None:
        """Commit what waits and close the databases; parts that were never made are left alone."""
        self.is_closed, held = True, self.__dict__
        parts = [held.get(name) for name in ("broker", "committer", "lookup_cache", "waker", "log")]
        for each in (*self.circuits, *self.remote_apis, *parts, *held.get("databases", ())):
            if each is not None:
                each.close()


def _cause_of(event: StoredEvent) -> Mapping[str, Any]:
    """Return the request, the organization and the slice of an event.

    The slice must come from the event, because a message for a slice only says that there is work:
    another slice may have been worked on.
    """
    state = msgspec.json.decode(event.state)
    names = ("request_id", "organization_id", "slice_index")
    facts = {name: state[name] for name in names if name in state}
    return facts | ({"job_id": str(event.originator_id)} if "slice_index" in facts else {})
