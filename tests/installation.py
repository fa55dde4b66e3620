"""A whole installation on either database: real tables and the real container, per process.

Only three parts are the test's own: the clock, the provider of lookups, and the pauses between its
retries, which take no time.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4

import pytest

from app.adapters.lookups.sandbox import NUMBERS
from app.bootstrap import providers
from app.bootstrap.container import Container, part
from app.processes import runtime
from app.processes.migrate import migrate
from app.settings import Settings
from domain.accounts import providers as drains
from domain.accounts.organization import Organization
from domain.cause import Cause, Clock, utc_now
from domain.log.aggregate import Event
from domain.lookups.answers import AnswerRules
from domain.lookups.bulk_job import BulkJob, BulkRequest, slice_count
from domain.lookups.ports import Found, LookupProvider, NumberFacts
from domain.lookups.single import LookupRequest, LookupResult
from domain.money import parse_amount
from domain.months import month_of
from domain.provider_errors import Unavailable
from domain.webhooks.commands import Webhooks
from projections.audit.auditor import verify
from projections.audit.report import Report
from projections.engine.read_model import ReadModel
from tests import compiled
from tests.seeds import PostgresSeed, Seed, sqlite_seed, url_in

T = TypeVar("T")
E = TypeVar("E", bound=Event)
EVENTS_MAX = 100_000
PRICE_MICROS = 5_000
PATIENCE_S = 20.0  # How long a test waits for what must happen, before it fails.
LOOK_S, LOOK_S_MAX = 0.002, 0.05

# Every process reads the same table of networks, which takes longer than most tests; so does a look
# for garbage among all that pytest has.
runtime.settle_memory = int
providers.load_networks = cache(providers.load_networks)
compiled.share()


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> datetime:
        """Move by so many `seconds`, `days` and so on."""
        self.now += timedelta(**by)
        return self.now


class CountingProvider:
    """Answers every number as not valid, except those that are down, and remembers its calls."""

    name = "counting"

    def __init__(
        self,
        down: Sequence[str] = (),
        meanwhile: Callable[[], object] = int,
        *,
        remote: bool = False,
    ) -> None:
        self.remote = remote
        self.asked: list[str] = []
        self.down = set(down)
        self.all_down = False
        self.bug: BaseException | None = None
        self.besides: tuple[Any, ...] = ()  # What else it tells.
        self.meanwhile = meanwhile  # What happens while a lookup is under way.
        self._happenings: dict[int, Callable[[], object]] = {}

    def on_call(self, count: int, happening: Callable[[], object]) -> None:
        """Call something during the call of this number, counted from 1."""
        self._happenings[count] = happening

    def is_up(self) -> bool:
        return not self.all_down

    def balance(self, *, timeout_s: float) -> None:
        """Tell nothing."""

    def probe(self) -> None:
        if self.all_down:
            raise Unavailable

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # Of the port.
        self.asked.append(phone_number)
        self.meanwhile()
        self._happenings.get(len(self.asked), int)()
        if self.bug is not None:
            raise self.bug
        if self.all_down or phone_number in self.down:
            message = "the provider is down"
            raise Unavailable(message)
        return Found(NumberFacts(phone_number, valid=False), self.name, *self.besides)


@cache
def read_models() -> Mapping[str, ReadModel]:
    """Return the read models that each process has a copy of, with the same tables.

    They know nothing of a database; to define their tables anew takes longer than most tests.
    """
    some = Container(Settings.from_env({}))
    assert some.models
    return {name: made for name, made in vars(some).items() if isinstance(made, ReadModel)}


class Parts(Container):
    """The parts of one process, and what its customers do with them.

    It is spared the definition of its read models: most of the time of most commands.
    """

    def __init__(self, settings: Settings, clock: Clock = utc_now) -> None:
        super().__init__(settings, clock)
        self.__dict__.update((name, copy(each)) for name, each in read_models().items())

    def cause(self, request_id: str = "request-1") -> Cause:
        return Cause(self.clock(), request_id)

    def organization(
        self, amount: str = "100.00", name: str = "Acme", *, price: str = "", fee: str = "0"
    ) -> UUID:
        """Register an organization and pay an amount into its wallet; "" for no wallet."""
        registered = self.accounts.register_organization(
            self.cause(),
            name=name,
            price_micros=parse_amount(price) if price else None,
            monthly_link_fee_micros=parse_amount(fee),
            with_wallet=bool(amount),
        )
        if amount and parse_amount(amount):
            self.deposit(registered.id, amount, "bank-1")
        return registered.id

    def client(
        self,
        organization_id: UUID | None,
        name: str = "",
        secret: str = "",
        scopes: Sequence[str] = (),
    ) -> str:
        """Register a client of an organization, or for None a machine-to-machine client."""
        client_id = name or f"cl_{uuid4().hex[:24]}"
        self.accounts.register_client(
            self.cause(),
            client_id=client_id,
            secret_hash=self.secret_hasher.hash(secret) if secret else "0" * 64,
            organization_id=organization_id,
            scopes=scopes,
        )
        return client_id

    def change(
        self, organization_id: UUID, change: Callable[[Organization, Cause], object]
    ) -> None:
        cause = self.cause()
        self.accounts.change_organization(organization_id, lambda it: change(it, cause))

    def read(self, question: Callable[..., T], *arguments: Any, **more: Any) -> T:
        """Ask a read model, which is given a connection first."""
        return self.views.read(question, *arguments, **more)

    def ask(self, question: Callable[..., T], *arguments: Any, **more: Any) -> T:
        """Project all that there is, then ask a read model."""
        self.projector.catch_up()
        return self.read(question, *arguments, **more)

    def events(self, kind: type[E]) -> list[E]:
        """Return the events of a kind, oldest first."""
        found = (each.event for each in self.log.read(0, EVENTS_MAX))
        return [each for each in found if isinstance(each, kind)]

    def audit(self) -> Report:
        """Audit the log and the read models as they are."""
        return verify(self.source, self.models)

    def deposit(self, organization_id: UUID, amount: str, reference: str = "") -> None:
        """Pay an amount in, under a reference of its own unless it is given one."""
        paid = parse_amount(amount), reference or str(uuid4())
        self.accounts.move("deposit", organization_id, *paid, self.cause())

    def adjust(
        self, organization_id: UUID, micros: int, reason: str = "a correction", reference: str = ""
    ) -> None:
        once = reference or str(uuid4())
        self.accounts.move("adjustment", organization_id, micros, once, self.cause(), reason=reason)

    def look_up(
        self,
        organization_id: UUID,
        number: str = "+14155550100",
        key: str | None = None,
        price_micros: int | None = None,
    ) -> LookupResult:
        """Buy one lookup."""
        price = self._price_of(organization_id) if price_micros is None else price_micros
        request = LookupRequest(organization_id, number, price, self.settings.currency, key)
        return self.single_lookup.run(request, self.cause())

    def ask_for_job(
        self,
        organization_id: UUID,
        wanted: Sequence[str],
        key: str | None = None,
        price_micros: int | None = None,
    ) -> tuple[BulkJob, bool]:
        """Return a job, and whether it was there before."""
        price = self._price_of(organization_id) if price_micros is None else price_micros
        request = BulkRequest(organization_id, wanted, price, self.settings.currency, key)
        return self.bulk_jobs.accept(request, self.cause())

    def create_job(
        self, organization_id: UUID, wanted: Sequence[str], price_micros: int | None = None
    ) -> UUID:
        return self.ask_for_job(organization_id, wanted, None, price_micros)[0].id

    def finish_job(self, job_id: UUID) -> None:
        for slice_index in range(slice_count(self.log.get(BulkJob, job_id).created)):
            self.bulk_lookup.work(job_id, slice_index)

    def cancel_job(self, job_id: UUID) -> BulkJob:
        return self.bulk_jobs.cancel(self.log.get(BulkJob, job_id), self.cause())

    def _price_of(self, organization_id: UUID) -> int:
        """Return what a lookup costs: the organization's own price, or that of all."""
        found = self.log.find(Organization, organization_id)
        own = None if found is None else found.price_micros
        return PRICE_MICROS if own is None else own


class Process(Parts):
    """The parts of one process of an installation, some of them the test's own."""

    def __init__(
        self, settings: Settings, clock: Clock = utc_now, provider: LookupProvider | None = None
    ) -> None:
        super().__init__(settings, clock)
        self.monotonic = lambda: clock().timestamp()  # Time is what moves it.
        self.started = clock(), self.monotonic()
        if isinstance(clock, SetClock):  # Then the server's has nothing to do with it.
            self.shared_clock, self.gate.query = clock, lambda: None
        self._given = provider

    @property
    def time(self) -> SetClock:
        """Its clock, which a test moves."""
        assert isinstance(self.clock, SetClock)
        return self.clock

    def anew(self) -> Self:
        following = super().anew()
        following._given = self._given  # noqa: SLF001  # Of the same class.
        return following

    @part
    def provider(self) -> LookupProvider:
        return self._given or super().provider

    @part
    def webhooks(self) -> Webhooks:
        if not self.settings.signing_keys.exists():
            self.webhook_key.ensure()  # As a start of `web` does.
        return super().webhooks

    def answer_rules(self) -> AnswerRules:
        return replace(super().answer_rules(), uncached=NUMBERS, pause=lambda _: None)

    def drain(self, provider: str, *, end: bool = False) -> None:
        """Give a provider no new work, or work again, as this process has seen."""
        drains.switch_provider(self.log, provider, self.cause(), drained=not end)
        self.gate.refresh_drains()


class Installation:
    """The tables of an installation and the processes that have them open.

    It is made by `migrate` as SQLite files in the directory, or as a copy of the seed that it
    should be `like`, on the database of that seed.
    """

    def __init__(self, directory: Path, like: Seed | None = None, **environment: str) -> None:
        self.directory = directory
        self._seed = like
        self._url = url_in(directory) if like is None else like.copy(directory)
        self.environment = {
            "DATABASE_URL": self._url,
            "SIGNING_KEYS": str(directory / "keys"),
            "TOKEN_ALGORITHM": "ES256",  # A key of it is made in no time.
            "PRICE_PER_LOOKUP": "0.005",
            "SANDBOX": "true",
            "NETWORK_BASE_PLAN": "base-1",
            **environment,
        }
        self._processes: list[Process] = []
        if like is None:
            migrate(self.process())

    def process(self, clock: Clock = utc_now, provider: LookupProvider | None = None) -> Process:
        """Open the files once more, as another process would."""
        opened = Process(Settings.from_env(self.environment), clock, provider)
        self._processes.append(opened)
        return opened

    @property
    def log_file(self) -> Path:
        """The file of the log, on SQLite only."""
        assert self._url.startswith("sqlite:"), "this test is for SQLite: mark it `sqlite_only`"
        return self.directory / "service.db"

    def close(self) -> None:
        for process in self._processes:
            process.close()
        if self._seed is not None:
            self._seed.drop(self._url)


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def migrated(request: pytest.FixtureRequest) -> Seed:
    """A new installation, on each database in turn."""
    if request.param == "sqlite":
        return sqlite_seed()
    return PostgresSeed(request.getfixturevalue("databases"))


def sqlite_only(reason: str) -> pytest.MarkDecorator:
    """Mark a test that is about SQLite's files; the reason is for the reader."""
    assert reason
    return pytest.mark.parametrize("migrated", ["sqlite"], indirect=True)


def postgresql_only(reason: str) -> pytest.MarkDecorator:
    """Mark a test that is about the PostgreSQL server."""
    assert reason
    it = pytest.param("postgresql", marks=pytest.mark.each_database)
    return pytest.mark.parametrize("migrated", [it], indirect=True)


def on_sqlite(*values: Any) -> Any:
    """A case that PostgreSQL sees only in `make soak`, for there another case of it is tried."""
    return pytest.param(*values, marks=pytest.mark.any_database)


@pytest.fixture
def installation(tmp_path: Path, migrated: Seed) -> Iterator[Installation]:
    made = Installation(tmp_path, like=migrated)
    yield made
    made.close()


@pytest.fixture
def timed(installation: Installation, clock: SetClock) -> Process:
    """A process whose time the test sets."""
    return installation.process(clock)


@pytest.fixture
def process(installation: Installation) -> Process:
    """The process through which a test sees the installation."""
    return installation.process()


def wait_until(
    condition: Callable[[], T],
    timeout_s: float = PATIENCE_S,
    what: str = "it",
    look_s_max: float = LOOK_S_MAX,
) -> T:
    """Wait for what other threads or processes do, and return what the condition has found.

    Fails when it does not happen in time.

    The longer it takes the more rarely it looks: a look may be a request, and takes time away from
    what it waits for. Whoever must not miss a moment looks each time after `LOOK_S`.
    """
    pulse = threading.Event()
    began = time.monotonic()
    while not (found := condition()):
        waited_s = time.monotonic() - began
        assert waited_s < timeout_s, f"{what} did not happen within {timeout_s:.0f} s"
        pulse.wait(min(max(LOOK_S, waited_s / 20), look_s_max))
    return found


def this_month(lasts: timedelta = timedelta(seconds=10)) -> str:
    """Return the present month; if it is about to end, wait for the next one."""
    wait_until(lambda: month_of(utc_now()) == month_of(utc_now() + lasts))
    return month_of(utc_now())


def numbers(count: int, start: int = 0) -> list[str]:
    """Return different numbers that have the pattern of E.164."""
    return [f"+1415{index:07d}" for index in range(start, start + count)]
