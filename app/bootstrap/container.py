"""The container: builds the parts of one process from the settings.

A part is made on first use. So a process opens only what it needs, and inspecting an installation
does not create one.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property, partial
from inspect import signature
from math import inf
from operator import attrgetter
from threading import RLock
from typing import Any, Self, TypeVar, cast, overload
from uuid import UUID, uuid4

from sqlalchemy import Connection

from app.adapters.circuit import PATIENCE_S, CircuitBreaker, GuardedLookup, GuardedNetwork
from app.adapters.databases import persistence_at
from app.adapters.lookups.chain import ChainedLookup
from app.adapters.lookups.offline import canonical_of
from app.adapters.lookups.sandbox import NUMBERS as SANDBOX_NUMBERS
from app.adapters.lookups.sandbox import SandboxLookup
from app.adapters.queues.in_process import InProcessBroker
from app.adapters.queues.rabbitmq import DurableBroker
from app.adapters.remote.api import Record, RemoteApi, RemoteRules
from app.adapters.remote.transcript import redacted
from app.adapters.sinks import sink_at
from app.adapters.webhooks.sender import HttpSender
from app.bootstrap.gate import Gate
from app.bootstrap.observed import Observed
from app.bootstrap.providers import LOOKUPS, NETWORKS, require_known, simulated
from app.bootstrap.sandbox import LOOKUP, Sandbox, is_of
from app.bootstrap.schema import OwnTables
from app.bootstrap.shared_settings import NAMES, SharedSettings
from app.security.authorization import Authorizer
from app.security.checkpoint_keys import CheckpointKeys
from app.security.checkpoint_keys import verify as verify_signature
from app.security.key_file import Kind
from app.security.key_store import KeyStore
from app.security.keys import KeyRing, Pepper, WebhookKey
from app.security.rate_limits import RateLimits
from app.security.secrets import SecretHasher
from app.security.throttle import Throttle
from app.security.tokens import LEEWAY_S, TokenIssuer, TokenVerifier
from app.settings import (
    DOWNLOADS_MAX,
    DOWNLOADS_OF_ONE_MAX,
    HTTP_THREADS,
    LOOKUP_THREADS,
    PROVISION_THREADS,
    WAITING_MAX,
    WEBHOOK_THREADS,
    Settings,
    WrongSetting,
)
from app.watch.logging import WorkLog
from app.watch.metrics import STORES, Metrics
from app.watch.tracing import tracing
from app.watch.trouble import trouble_of
from domain.accounts.commands import Accounts
from domain.accounts.committer import Committer
from domain.accounts.currency import Currency
from domain.accounts.monthly_billing import MonthlyBilling
from domain.accounts.operators import Operators
from domain.accounts.prices import Prices
from domain.aggregates import AGGREGATES
from domain.blocking import sleep_s
from domain.catalogue.commands import Catalogue, PlansByKey
from domain.catalogue.plan import SIMULATED, PlanTerms
from domain.cause import Clock, utc_now
from domain.errors import NotPossible
from domain.limiter import Limiter, OpenItems
from domain.links.buying import as_sold
from domain.links.change_plans import LinkPlans
from domain.links.create import LinkCreate, ProvisioningRules
from domain.links.failing import Failing
from domain.links.importing import LinkImport
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.network import EsimNetwork
from domain.links.networks import Networks
from domain.links.plan_change import PlanChange
from domain.links.readings import LinkReadings
from domain.links.requested import EndLink, SetStatus
from domain.links.waiting import limiters_of
from domain.log.log import Log
from domain.lookups.answers import AnswerRules, Answers
from domain.lookups.bulk_job import BulkJobs
from domain.lookups.ports import LookupProvider
from domain.lookups.single import SingleLookup
from domain.provider_errors import ProviderError
from domain.webhooks.commands import Webhooks
from domain.webhooks.signatures import WebhookSigner
from projections.audit.covering import ChangedCheckpoint
from projections.audit.report import Failure
from projections.audit.stored_tree import StoredTree
from projections.audit.tree_builder import TreeBuilder
from projections.audit.witnesses import Claim, Claims, StoredLeaves, Witness
from projections.engine.database import Database
from projections.engine.freshness import Freshness
from projections.engine.positions import Positions, Source
from projections.engine.projector import Projector
from projections.engine.read_model import ReadModel
from projections.engine.reader import read_events
from projections.finance.views import ON_FILES
from projections.models.api_clients import ApiClients
from projections.models.due import DueList
from projections.models.erasures import Erasures
from projections.models.jobs import Jobs
from projections.models.links import Links
from projections.models.organizations import Organizations
from projections.models.plans import Plans
from projections.models.proposals import Proposals
from projections.models.statements import Statements
from projections.models.transactions import Transactions
from projections.models.usage import Usage
from projections.models.wallets import Wallets
from projections.models.webhook_endpoints import WebhookEndpoints
from projections.models.webhook_messages import WebhookMessages
from projections.stores.checkpoints import CheckpointStore
from projections.stores.counters import Counters
from projections.stores.deliveries import Deliveries
from projections.stores.faults import Faults
from projections.stores.lookup_cache import SqlLookupCache
from projections.stores.notes import Notes
from projections.stores.personal_keys import PersonalKeys
from projections.stores.reading_schedule import ReadingSchedule
from projections.stores.readings import SqlReadings
from workers import actors
from workers.bulk import BulkLookup
from workers.checkpoints import Checkpoints
from workers.driving import Driving
from workers.fees import MonthlyFees
from workers.links import CreateEndpoint, LostOrders, PlaceOrder
from workers.months import CutOff, MonthEnd
from workers.nightly_audit import NightlyAudit
from workers.plan_changes import AddPlan, RemovePlan
from workers.reading import BackgroundReading, Lane
from workers.routes import Dispatcher, Publisher
from workers.webhook_planner import WebhookPlanner
from workers.webhooks import WebhookWork
from workers.work import Work

IN_FLIGHT_MAX = 12  # Lookups of one organization: it must not take all calls of a provider.
IN_FLIGHT_WAIT_S = 5.0
IN_FLIGHT = "Too many lookups of this organization are under way; try again."
DOWNLOADS_SHARE = "Too many downloads of this organization are under way; try again."
PICTURE_WAIT_S = 10.0
PICTURES = "Too many pictures of this organization wait to be drawn; try again."
NETWORK_PROBE_S = 5.0  # How long a network that was down may take to answer a probe.

T = TypeVar("T")

logger = logging.getLogger(__name__)


class part(cached_property[T]):  # noqa: N801  # A decorator, as `property` is.
    """A cached property under a lock, which the library's no longer has since Python 3.12.

    All parts of a container share one lock, `making`, because making one part makes others.
    """

    def __init__(self, make: Callable[["Container"], T]) -> None:
        super().__init__(make)

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


class auto(part[T]):  # noqa: N801  # As above.
    """A part of this class. Each of its parameters gets the part of the same name.

    `named` says what a parameter gets otherwise: a part, or value of a part, by its path, or what
    a function makes of the container. A test makes every part and compares what it was given with
    the types of its parameters.
    """

    def __init__(self, kind: type[T], **named: "str | Callable[[Container], Any]") -> None:
        gets = {name: attrgetter(it) if isinstance(it, str) else it for name, it in named.items()}
        super().__init__(lambda c: c.make(kind, **{name: get(c) for name, get in gets.items()}))
        self.kind = kind


class Container:
    """The parts of one process. Set `role` before the first part is used.

    A lambda of a part uses only parts that stand above it, because mypy knows their types then.
    Raises WrongSetting when a provider is not known.
    """

    role = "command"

    def __init__(self, settings: Settings, clock: Clock = utc_now) -> None:
        require_known(settings)
        self.making = RLock()
        self.settings = settings
        self.clock = clock
        self.monotonic: Callable[[], float] = time.monotonic
        self.started = clock(), self.monotonic()
        self.gate = Gate(self)
        self.new_id = uuid4
        self.is_closed = False
        self.circuits: list[CircuitBreaker] = []
        self.remote_apis: list[RemoteApi] = []
        self.record_call: Record | None = None

    def make(self, kind: Callable[..., T], **given: Any) -> T:
        """Make an object; a parameter that is not given gets the part of its name.

        One that has a default and is not given keeps the default.
        """
        wanted = signature(kind).parameters.values()
        missing = [it.name for it in wanted if it.name not in given and it.default is it.empty]
        return kind(**given, **{name: getattr(self, name) for name in missing})

    # The databases: the log, the read models, own stores, and keys beside the log.

    persistence = part(
        lambda c: persistence_at(c.settings.database_url, c.role, c.settings.service_role)
    )
    log = part(lambda c: c.open_log(create=False))  # Its tables are made by `migrate`.

    def open_log(self, *, create: bool) -> Log:
        """Open the log, with new tables if `create`; metrics count what it appends."""
        tables = {"CREATE_TABLE": "y" if create else "n"}
        log = Log({**self.persistence.log_environment(), **tables}, AGGREGATES)
        log.observer, log.around = self.metrics.appended, tracing().around or log.around
        return log

    databases = part(lambda c: c.persistence.databases())
    views = part(lambda c: c.databases.views)
    stores = part(lambda c: c.databases.stores)
    positions = auto(Positions)

    def open_finance(self) -> Database:
        """Open the finance views in read-only sessions; the caller closes them."""
        url = self.settings.finance_database_url or self.settings.database_url
        return persistence_at(url, "finance").read_only(ON_FILES)

    # The database server's clock, asked each time; this machine's where it has none.
    shared_clock = part[Clock](lambda c: lambda: c.views.server_time() or c.clock())

    cut_off = auto(CutOff, check="gate.check", wall="clock")

    # What operators watch.

    observed = part(Observed)
    metrics = part(lambda c: Metrics(c.observed.queries, WAITING_MAX))

    # Own stores. A new one is a part here, and its tables go into a set of `own_tables`.

    vault = part(lambda c: PersonalKeys(c.databases.keys))
    notes = part(lambda c: Notes(c.databases.keys))
    shared_settings = part(lambda c: SharedSettings(c.notes, c.settings, c.role))
    checkpoint_store = part(lambda c: CheckpointStore(c.databases.keys))
    webhook_deliveries = part(lambda c: Deliveries(c.views))  # Beside its planner's position.
    reading_schedule = part(lambda c: ReadingSchedule(c.stores))
    stored_tree = auto(StoredTree)

    def faults_of(self, store: str) -> Faults:
        location, count = self.persistence.location, partial(self.metrics.count, "store_errors")
        assert store in STORES, store  # A counter that begins with its first error raises no alert.
        return Faults(store, lambda error: trouble_of(error, location), count)

    lookup_cache = part(lambda c: SqlLookupCache(c.stores, c.faults_of("lookup_cache")))
    readings = part(lambda c: SqlReadings(c.stores, c.faults_of("network_readings")))
    counters = part(lambda c: Counters(c.stores, c.clock, c.faults_of))

    @property
    def own_tables(self) -> list[OwnTables]:
        """Every set of tables besides the log and the read models, as `migrate` makes them."""
        keys, stores, sent = self.vault, self.stores, self.webhook_deliveries
        checkpoints = self.checkpoint_store
        return [
            OwnTables("stores", 2, stores, [self.lookup_cache.metadata, self.readings.metadata]),
            OwnTables("counters", 1, stores, [self.counters.metadata]),
            OwnTables("reading_turns", 1, stores, [self.reading_schedule.metadata]),
            OwnTables("simulated_network", 1, stores, [simulated(self).metadata]),
            OwnTables("personal_keys", 1, keys.database, [keys.metadata], cheap=False),
            OwnTables("key_branches", 1, keys.database, [keys.branch_metadata], cheap=False),
            OwnTables("checkpoints", 1, keys.database, [checkpoints.metadata], cheap=False),
            OwnTables("notes", 1, keys.database, [self.notes.metadata]),
            OwnTables("audit_tree", 1, self.views, [self.stored_tree.metadata]),
            OwnTables("webhook_deliveries", WebhookPlanner.version, self.views, [sent.metadata]),
            # Without positions every read model is rebuilt, and the dispatcher starts at the head.
            OwnTables("positions", 1, self.views, [self.positions.metadata]),
        ]

    # Read models: one line for each.

    organizations = auto(Organizations)
    clients = auto(ApiClients)
    wallets = auto(Wallets)
    proposals = auto(Proposals)
    transactions = auto(Transactions)
    statements = auto(Statements)
    usage = auto(Usage)
    jobs = auto(Jobs)
    plans = auto(Plans)
    links = auto(Links)
    due_list = auto(DueList)
    webhook_endpoints = auto(WebhookEndpoints)
    webhook_messages = auto(WebhookMessages)
    erasures = auto(Erasures)

    @property
    def models(self) -> list[ReadModel]:
        parts = [each for kind in type(self).__mro__ for each in vars(kind).items()]
        kinds = {name: each.kind for name, each in parts if isinstance(each, auto)}
        found = [getattr(self, name) for name in kinds if issubclass(kinds[name], ReadModel)]
        for model in found:
            model.vault, model.log = self.vault, self.log
        return found

    waker = part(lambda c: c.persistence.waker(c.log.appended))

    def listen(self) -> None:
        """Hear from now on of the commits of other processes, if the database tells of them."""
        if self.waker is not None:
            self.waker.start()

    source = auto(Source, database="views")  # What every consumer of the log needs.
    freshness = auto(Freshness)
    projector = auto(Projector)

    # What an auditor can check.

    tree_builder = auto(TreeBuilder, tree="stored_tree")
    checkpoint_keys = auto(CheckpointKeys, directory="settings.signing_keys")

    checkpoints = auto(
        Checkpoints,
        database="views",
        sign="checkpoint_keys.sign",
        name="settings.checkpoint_origin",
        every=lambda c: timedelta(seconds=c.settings.checkpoint_every_s),
        lag="_checkpoint_lag",
        sink=lambda c: sink_at(c.settings.checkpoint_sink),
    )

    def _checkpoint_lag(self) -> timedelta:
        waits = self.views.waits_for_standby()
        return timedelta(0) if waits else timedelta(seconds=self.settings.checkpoint_lag_s)

    def witnesses(self) -> list[Witness]:
        """Return the kept leaves and our own checkpoints, against which the log is checked.

        A checkpoint whose key is missing still counts, because its root can be compared.
        """
        known = [key.public_key for key in self.checkpoint_keys.live()]
        ours, spoiled = list[Claim](), list[Failure]()
        for each in self.checkpoint_store.all():
            if isinstance(each, ChangedCheckpoint):
                spoiled.append(Failure(each.position, str(each)))
                continue
            signed, checkpoint = each.signed, each.signed.checkpoint
            fault = signed.fault(known, verify_signature) if signed.is_by(known) else None
            name = f"our checkpoint of {checkpoint.at:%Y-%m-%d %H:%M:%S}"
            ours.append(Claim(name, checkpoint, fault))
        leaves = StoredLeaves(self.views, self.stored_tree)
        return [leaves, Claims(ours, listed=False, damaged=spoiled)]

    nightly_audit = auto(NightlyAudit)

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

    # The only writer of wallets in this process.
    committer = part(lambda c: Committer(c.log, c.gate.refuse))
    currency = auto(Currency, code="settings.currency")
    prices = auto(Prices, setting_micros="settings.price_per_lookup_micros")
    accounts = auto(Accounts, moved_micros="_moved_micros")
    operators = auto(Operators)
    operators_lock = part(lambda c: c.persistence.lock("operators"))  # Of commands that write.
    catalogue = auto(Catalogue, known="_plans_by_key")
    link_import = auto(LinkImport, terms="_plan_terms", endpoints="_endpoints")

    def _moved_micros(self, actor: str | None, day: date) -> int:
        return self._of_newest(self.proposals, lambda it: self.proposals.moved(it, actor, day))

    def offer(self, organization_id: UUID, plan_id: UUID) -> PlanTerms | None:
        """Return the terms of a plan that an organization may buy now, by the database's time."""
        plan = self.plans.load_visible(self.views, organization_id, plan_id)
        return None if plan is None else plan.terms.at(self.clock())

    def _plan_terms(self) -> Mapping[UUID, PlanTerms]:
        return self._of_newest(
            self.plans, lambda it: {row.id: row.terms for row in self.plans.all(it)}
        )

    def _endpoints(self) -> Mapping[tuple[str, str], UUID]:
        """Return the links by network and endpoint, from the log: no read model knows them."""
        events = (each.event for each in read_events(self.log, (Link.Activated,)))
        active = (each for each in events if isinstance(each, Link.Activated))
        return {(it.plan.network or SIMULATED, it.endpoint_id): it.originator_id for it in active}

    def _plans_by_key(self) -> PlansByKey:
        return self._of_newest(self.plans, self.plans.keys)

    def _of_newest(self, model: ReadModel, read: Callable[[Connection], T]) -> T:
        """Read a read model once it is as new as the log."""
        goal = self.log.head()
        self.projector.catch_up(goal)
        with self.views.reading() as connection:
            position = self.positions.get(connection, model.name)
            if position is None or position.position < goal:
                message = f"read model {model.name} is behind the log; see: projections status"
                raise NotPossible(message)
            return read(connection)

    # Providers.

    def record_calls(self) -> list[dict[str, Any]]:
        """Record the calls of providers made from now on, redacted, in the list it returns."""
        exchanges: list[dict[str, Any]] = []
        self.record_call = lambda *call: exchanges.append(redacted(*call))
        return exchanges

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
                on_call=self.metrics.called,
                pace=partial(self.counters.reserve, name),
                record=self.record_call,
            )
        except ValueError as error:
            raise WrongSetting(f"the base URL of {name} {error}") from None
        self.remote_apis.append(api)
        return api

    # Lookups.

    # The providers of lookups that LOOKUP_PROVIDER names, without their circuits.
    bare_lookups = part(lambda c: [LOOKUPS[name](c) for name in c.settings.lookup_providers])

    @part
    def lookups(self) -> list[LookupProvider]:
        """The providers of lookups in the order in which they are asked, each with a circuit."""
        *others, last = self.bare_lookups
        return [*(self._guarded(each, PATIENCE_S) for each in others), self._guarded(last, inf)]

    def _guarded(self, bare: LookupProvider, patience_s: float) -> LookupProvider:
        circuit = CircuitBreaker(f"lookup provider {bare.name}", bare.probe, patience_s=patience_s)
        self.circuits.append(circuit)
        return GuardedLookup(bare, circuit, self.gate.spares)

    @part
    def provider(self) -> LookupProvider:
        """Answers lookups; the failures that a sandbox plays never open a circuit."""
        first, *others = self.lookups
        fell_over = partial(self.metrics.count, "lookup_fallovers")
        provider = ChainedLookup(self.lookups, fell_over) if others else first
        if not self.settings.sandbox:
            return provider
        counters = self.counters

        def scripted(owner: UUID, number: str) -> str | None:
            return counters.next_failure(owner, lambda of, _: is_of(of, LOOKUP, numbers=[number]))

        return SandboxLookup(provider, counters.count_attempt, sleep_s, scripted)

    def warm(self) -> None:
        """Connect to the provider or load its data, so that the first lookup need not wait."""
        try:
            if not self.gate.is_shut():
                self.provider.probe()
        except ProviderError:
            pass  # A provider that is down is noticed when it is asked.
        except Exception as error:  # noqa: BLE001  # Lookups go on. The text may hold a secret.
            logger.warning("the lookup provider could not be warmed: %s", type(error).__name__)

    def answer_rules(self) -> AnswerRules:
        """Return the settings about answers.

        Answers of a provider in this process are never kept. It stands in for a remote provider, so
        a kept answer would still be given after the remote provider is back.
        """
        settings = self.settings
        near = {each.name: timedelta(0) for each in self.bare_lookups if not each.remote}
        return AnswerRules(
            cache_ttl=timedelta(seconds=settings.lookup_cache_ttl_s),
            uncached=SANDBOX_NUMBERS if settings.sandbox else (),
            pause=sleep_s,
            on_answers=self.metrics.looked_up,
            costs=settings.lookup_costs,
            cache_ttls=settings.lookup_cache_ttls | near,
            concurrency=max(settings.lookups_at_once.values()),
            canonical_of=canonical_of,
        )

    answers = part(lambda c: Answers(c.provider, c.lookup_cache, c.clock, c.answer_rules()))

    single_lookup = auto(
        SingleLookup,
        leases=lambda c: c.counters if c.provider.remote or c.settings.sandbox else None,
        in_flight=lambda _: Limiter(
            HTTP_THREADS,
            IN_FLIGHT_MAX,
            places=2 * HTTP_THREADS,
            wait_s=IN_FLIGHT_WAIT_S,
            beyond_share=IN_FLIGHT,
        ),
    )

    def count_open_items(self, organization_id: UUID) -> tuple[int, int]:
        with self.views.reading() as connection:
            position = self.positions.get(connection, self.due_list.name)
            shown = self.due_list.items_of(connection, organization_id)
        return shown, position.position if position is not None else 0

    open_items = part(lambda c: OpenItems(c.count_open_items, c.settings.job_items_open_max))
    bulk_jobs = auto(BulkJobs)
    bulk_lookup = auto(BulkLookup)

    # Networks and links.

    def guard_network(self, bare: EsimNetwork) -> EsimNetwork:
        """Put a circuit breaker around a remote network; the simulated one fails on purpose."""
        if not bare.remote:
            return bare
        circuit = CircuitBreaker(
            f"eSIM network {bare.name}", lambda: bare.probe(timeout_s=NETWORK_PROBE_S)
        )
        self.circuits.append(circuit)
        return cast("EsimNetwork", GuardedNetwork(bare, circuit))

    # The network of imported plans that name none, which NETWORK_PROVIDER names first.
    bare_network = part(lambda c: NETWORKS[c.settings.networks[0]](c))
    network = part(lambda c: c.guard_network(c.bare_network))

    @part
    def networks(self) -> Networks:
        first, *others = self.settings.networks
        more = {name: self.guard_network(NETWORKS[name](self)) for name in others}
        return Networks({first: self.network, **more}, self.gate.is_drained, self.gate.is_shut)

    @property
    def network_names(self) -> Iterable[str]:
        """Every network that links may run on: the configured ones first, then all others."""
        return dict.fromkeys([*self.settings.networks, *NETWORKS])

    provisioning_rules = auto(
        ProvisioningRules,
        base_plan="settings.network_base_plan",
        product="settings.network_esim_product",
        currency="settings.currency",
        deadline=lambda c: timedelta(seconds=c.settings.provisioning_deadline_s),
    )
    # A gauge shows how many requests wait for a network.
    waiting = part(
        lambda c: limiters_of(
            WAITING_MAX // len(c.settings.networks), c.metrics.waiting.track_inprogress
        )
    )
    # The places of streamed replies, whose rows are still read while they are sent.
    downloads = part(
        lambda c: Limiter(
            DOWNLOADS_MAX,
            DOWNLOADS_OF_ONE_MAX,
            beyond_share=DOWNLOADS_SHARE,
            full="Too many downloads are under way; try again.",
            shown=c.metrics.downloads.track_inprogress,
        )
    )
    # Drawing takes the processor for long, so one picture of an organization at a time.
    pictures = part(
        lambda _: Limiter(
            HTTP_THREADS, 1, places=HTTP_THREADS, wait_s=PICTURE_WAIT_S, beyond_share=PICTURES
        )
    )
    link_ending = auto(
        EndLink,
        cancel_within=lambda c: timedelta(days=c.settings.link_cancel_days),
        clock="gate.now",
    )
    link_readings = auto(LinkReadings, notifies=lambda c: c.settings.readings_refresh_s > 0)

    # What partners play in a sandbox; in any other installation nobody asks for it.
    sandbox = auto(Sandbox, network=simulated)
    play = part(lambda c: c.sandbox.play if c.settings.sandbox else as_sold)
    failing = auto(Failing, clock="gate.now")
    link_create = auto(LinkCreate, offers="offer", rules="provisioning_rules", play="play")
    link_plans = auto(LinkPlans, offers="offer", rules="provisioning_rules", play="play")
    link_status = auto(SetStatus, clock="gate.now")
    # Keeps usage and status of links fresh even if nobody reads them.
    background_reading = auto(
        BackgroundReading,
        database="views",
        every=lambda c: timedelta(seconds=c.settings.readings_refresh_s),
        lanes=lambda c: {
            name: Lane(c.networks.of(name).background_reads_per_s) for name in c.networks.names
        },
    )

    # The queues, and what fills them.

    @part
    def broker(self) -> InProcessBroker | DurableBroker:
        """The queues, with every actor declared; nothing is connected before it is used."""
        settings = self.settings
        broker: InProcessBroker | DurableBroker = InProcessBroker()
        if not settings.has_own_broker:
            broker = DurableBroker(
                settings.broker_url.split(","),
                quorum=settings.quorum_queues,
                on_given_up=partial(self.metrics.count, "messages_given_up"),
            )
        actors.register(broker, self, self.gate.is_shut)
        broker.add_middleware(WorkLog(self.metrics.worked, tracing()))
        return broker

    publisher = auto(Publisher, backlog="broker.backlog")
    dispatcher = auto(Dispatcher, around=lambda _: tracing().dispatching)

    # What workers do.

    due_work = auto(
        Work,
        database="views",
        threads=lambda _: LOOKUP_THREADS,
        network_threads=lambda c: max(1, PROVISION_THREADS // len(c.settings.networks)),
    )

    create_endpoint = auto(CreateEndpoint, rules="provisioning_rules", clock="gate.now")
    place_order = auto(PlaceOrder, clock="gate.now")
    add_plan = auto(AddPlan, clock="gate.now")
    remove_plan = auto(RemovePlan, clock="gate.now")
    lost_order = auto(LostOrders, clock="gate.now")

    def drive(self, of: Any, *rows: Any) -> Driving:
        return Driving(self.log, self.due_work.in_turn, of, rows)

    # The last row of links is for whatever the others are not for.
    provisioning = part(
        lambda c: c.drive(Link, c.place_order, c.link_status, c.link_ending, c.create_endpoint)
    )
    plan_changes = part(lambda c: c.drive(PlanChange, c.remove_plan, c.add_plan))
    lost_orders = part(lambda c: c.drive(LostOrder, c.lost_order))

    # Monthly fees, and the end of a month.

    fee_billing = auto(MonthlyBilling)
    monthly_fees = auto(MonthlyFees, billing="fee_billing", database="views")
    month_end = auto(MonthEnd)

    # Webhooks.

    webhook_key = auto(  # The keys that secrets of webhooks are derived from.
        WebhookKey,
        directory="settings.signing_keys",
        recorded=lambda c: partial(c.notes.value, "webhook_key"),
    )
    webhooks = auto(Webhooks, key_id=lambda c: lambda: c.webhook_key.newest().id)
    webhook_planner = auto(WebhookPlanner)
    webhook_signer = auto(WebhookSigner, key="webhook_key.value")
    webhook_sender = auto(
        HttpSender,
        allow_private="settings.webhooks_allow_private",
        on_outcome=lambda c: partial(c.metrics.count, "webhook_attempts"),
    )
    webhook_work = auto(
        WebhookWork,
        send="webhook_sender.send",
        sign="webhook_signer.sign",
        can_sign="webhook_key.can_sign",
        threads=lambda _: WEBHOOK_THREADS,
        is_doubted="cut_off.is_doubted",
    )

    # Who may do what.

    keys = auto(
        KeyRing,
        directory="settings.signing_keys",
        algorithm="settings.token_algorithm",
        retire_after_s=lambda c: c.settings.token_ttl_s + LEEWAY_S,
    )
    issuer = auto(
        TokenIssuer,
        issuer="settings.iss",
        audience="settings.token_audience",
        ttl_s="settings.token_ttl_s",
    )
    verifier = auto(TokenVerifier, issuer="settings.iss", audience="settings.token_audience")
    pepper = auto(  # The peppers of client secrets and operator keys.
        Pepper,
        directory="settings.signing_keys",
        in_use=lambda c: partial(c.notes.value, "pepper"),
        setting=lambda c: c.settings.secret_pepper.encode(),
    )

    @property
    def key_stores(self) -> Mapping[Kind, KeyStore[Any]]:
        """The keys of each kind, as commands renew and revoke them."""
        return {
            "signing": self.keys,
            "pepper": self.pepper,
            "webhooks": self.webhook_key,
            "checkpoints": self.checkpoint_keys,
        }

    secret_hasher = auto(SecretHasher, peppers="pepper")
    rate_limits = auto(RateLimits)
    handover_limits = auto(RateLimits)  # Strangers open those, and must not make others forget.
    throttle = auto(Throttle)
    authorizer = auto(Authorizer, database="views", usual_limit="settings.rate_limit_per_minute")

    # Start and end.

    def use_recorded_settings(self) -> None:
        """Take what all processes share from the database, as commands do."""
        recorded = self.shared_settings.recorded()
        known: Any = {name.lower(): recorded[name] for name in NAMES if name in recorded}
        self.settings = replace(self.settings, **known)

    def check_settings(self) -> None:
        """Make the parts that check a setting themselves, such as a URL; raises WrongSetting."""
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
        self.is_closed, made = True, self.__dict__
        parts = [made.get(name) for name in ("broker", "committer", "waker", "log", "persistence")]
        for each in (*self.circuits, *self.remote_apis, *parts, *made.get("databases", ())):
            if each is not None:
                each.close()
