"""The service is killed while its providers fail: what they sold is delivered, or given back.

Lookups are Twilio's, and Telnyx's while Twilio fails; links are bought at eSIM Go, BICS and Airalo:
scripted servers with books of their own, which are compared with the log at the end.
"""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from domain.accounts.wallet import Wallet, wallet_id
from domain.cause import utc_now
from domain.links.link import Link, Stage
from domain.links.plan_change import PlanChange
from domain.lookups.bulk_job import BulkJob
from domain.lookups.number_lookup import NumberLookup
from domain.money import format_amount, parse_amount
from tests.app.adapters.networks.airalo import airalo_books
from tests.app.adapters.networks.bics.bics_lab import check_ledger, environment_of
from tests.app.adapters.networks.esimgo.esimgo_lab import check_sales, left_over
from tests.canaries import canaries_in
from tests.faults.ledger import Ledger, Promise
from tests.faults.partner import Partner
from tests.faults.service import NUMBER_PATH, Service, installation_for_serving, run
from tests.faults.test_kill import forget_leases
from tests.installation import PRICE_MICROS, Installation, numbers, wait_until
from tests.plan_files import import_plans, plan, profile
from tests.support.providers import airalo, bics, esimgo, telnyx, twilio
from tests.support.providers.airalo import AiraloServer
from tests.support.providers.bics import BicsServer
from tests.support.providers.esimgo import EsimGoServer
from tests.support.providers.lookups import check_charges
from tests.support.providers.server import FaultKind, ScriptedServer
from tests.support.providers.telnyx import ScriptedTelnyx, carrier
from tests.support.providers.twilio import ScriptedTwilio, line
from tests.workers.link_checks import Books

DEPOSIT = "100000.00"
COST = "0.10"  # Of a plan at eSIM Go and Airalo, and as the plan file has it.
SIMS = 4_000
ROUNDS = 14  # Kills of the long run.
SEED = 2_027
SETTLES_S = 8.0  # A late effect is at a network after 6 s at most, its list lags 1 s behind.
JOB = 25
LATE_S = (1.0, 3.0, 6.0)
LAGS = timedelta(seconds=1)
PULSE_S = 0.2
ENDS_S = 90.0
KNOWN = [f"+3461{index:07d}" for index in range(500)]
SCOPES = ["lookup", "links", "plans", "wallet"]
# A proxy that repeats a change has bought twice, and nobody here can know of it.
KINDS = [kind for kind in FaultKind if kind is not FaultKind.EFFECT_TWICE]
LATE = (FaultKind.DELAY, FaultKind.LATE_REPLY)
SECRETS = (
    *(twilio.TOKEN, telnyx.KEY, esimgo.KEY, bics.PASSWORD),
    *(airalo.CLIENT_SECRET, "airalo-token-", "LPA:1$"),
)
PLANS = {
    "esim_1": "esimgo",
    "esim_2": "esimgo",
    "eu-1": "bics",
    "eu-2": "bics",
    "brand-1": "airalo",
    "brand-2": "airalo",
}
SELLS = ("esim_1", "eu-1", "brand-1")
# Where a service is killed: a call of this route has come to the provider, and waits.
PLACES = [
    ("esimgo", "order"),
    ("bics", "create"),
    ("bics", "plans"),
    ("telnyx", "look up"),
    ("esimgo", "orders"),
    ("airalo", "order"),
    ("twilio", "look up"),
]
# A login that Airalo refuses is not tried again for a minute, so its logins are well.
TROUBLED = {
    "twilio": ("look up",),
    "telnyx": ("look up",),
    "airalo": ("order", "order", "orders", "packages", "esim"),
    "esimgo": ("order", "order", "orders", "revoke", "esim"),
    "bics": ("log in", "sims", "create", "activate", "plans", "profile", "delink", "delete"),
}


class Providers:
    """The scripted providers of one installation."""

    def __init__(self, stack: ExitStack) -> None:
        self.twilio = stack.enter_context(ScriptedTwilio())
        self.telnyx = stack.enter_context(ScriptedTelnyx())
        self.esimgo = stack.enter_context(EsimGoServer(utc_now))
        self.bics = stack.enter_context(BicsServer(SIMS))
        self.airalo = stack.enter_context(AiraloServer(utc_now))
        self.by_name: dict[str, ScriptedServer] = {
            "twilio": self.twilio,
            "telnyx": self.telnyx,
            "esimgo": self.esimgo,
            "bics": self.bics,
            "airalo": self.airalo,
        }
        self.esimgo.shown_after = LAGS
        for name in PLANS:
            self.esimgo.offer(name, COST)
            self.airalo.offer(name, COST)
        for number in KNOWN:
            self.twilio.know(
                number, country_code="ES", line_type_intelligence=line("mobile", "Movistar")
            )
            self.telnyx.know(number, country_code="ES", carrier=carrier("mobile", "MOVISTAR"))

    @property
    def environment(self) -> dict[str, str]:
        return {
            **environment_of(self.bics),
            **airalo_books.environment_of(self.airalo),
            **self.twilio.settings,
            **self.telnyx.settings,
            "LOOKUP_PROVIDER": "twilio,telnyx",
            "NETWORK_PROVIDER": "esimgo,bics,airalo",
            "ESIMGO_URL": self.esimgo.url,
            "ESIMGO_API_KEY": esimgo.KEY,
            "ESIMGO_REFUNDS": "true",
            "SANDBOX": "false",
            "COST_PER_LOOKUP": ",".join(
                f"{each.name}={format_amount(each.price_micros)}"
                for each in (self.twilio, self.telnyx)
            ),
            "LOOKUP_CACHE_TTLS_S": "twilio=0,telnyx=0",
        }

    def heal(self) -> None:
        """End all trouble, and let late effects come."""
        for each in self.by_name.values():
            each.heal()
            wait_until(lambda each=each: each.is_idle)


@dataclass
class Market:
    """An organization, its plans at all networks, and everybody who sells to it."""

    installation: Installation
    providers: Providers

    def __post_init__(self) -> None:
        self.ledger = Ledger()
        self.outside = outside = self.installation.process()
        outside.keys.ensure()
        self.organization_id = outside.organization(DEPOSIT)
        client_id = outside.client(self.organization_id)
        token = outside.issuer.issue(client_id, self.organization_id, SCOPES)
        self._partner = Partner(int(self.installation.environment["PORT"]), token, self.ledger)
        self.plans = {name: str(uuid4()) for name in PLANS}
        for name, plan_id in self.plans.items():
            network = PLANS[name]
            sponsors = [profile(bics.SPONSORS[0])] if network == "bics" else []
            terms = {"provider_plan_id": name, "network": network, "cost": COST}
            terms |= {"id": plan_id, "sponsor_profiles": sponsors}
            import_plans(outside, plan(name, **terms), request_id=name)

    def _live(self, stop: Event, work: Callable[[str], None]) -> None:
        """Do this again and again, each time with a key of its own, until told."""
        while not stop.is_set():
            try:
                work(str(uuid4()))
            except Exception as error:  # noqa: BLE001  # The test tells it at the end.
                self.ledger.surprise(f"{type(error).__name__}: {error}")
            stop.wait(PULSE_S)

    def _look(self, key: str) -> None:
        """Look a number up and send a job."""
        start = random.randrange(len(KNOWN) - JOB)
        reply = self._partner.ask("POST", NUMBER_PATH + quote(KNOWN[start]), key=key)
        if reply.status == 200:
            self.ledger.promise(Promise("lookup", reply.body["meta"]["lookup_id"], key, 0, 0.0))
        body = {"phone_numbers": [*KNOWN[start : start + JOB], *numbers(5)]}
        reply = self._partner.ask("POST", "/number-lookup/bulk", body, f"{key}-job")
        if reply.status == 202:
            self.ledger.promise(Promise("job", reply.body["data"]["job_id"], key, 0, 0.0))

    def _buy(self, name: str, key: str) -> None:
        """Buy a link and, where that is wanted, a plan more."""
        body = {"plan_id": self.plans[name]}
        reply = self._partner.ask("POST", "/v1/links", body, key)
        if reply.status != 201:
            return
        link = reply.body["data"]
        amount = parse_amount(link["amount_charged"])
        self.ledger.promise(Promise("link", link["id"], key, amount, 0.0, link["iccid"]))
        other = name[:-1] + "2"
        path, body = f"/v1/links/{link['id']}/plans", {"add": [self.plans[other]]}
        if self._partner.ask("PUT", path, body, f"{key}-add").status == 200:
            self.ledger.promise(Promise("topup", link["id"], key, amount, 0.0))

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have partners ask for everything meanwhile."""
        stop = Event()
        buying = [partial(self._buy, name) for name in SELLS] * 2
        threads = [Thread(target=self._live, args=(stop, work)) for work in (self._look, *buying)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            stop.set()
            for each in threads:
                each.join()

    def service(self) -> Service:
        """Begin the next life of the service."""
        forget_leases(self.outside)
        settles = str(SETTLES_S)
        return Service(self.installation, "tests.faults.provided", FAULTS_SETTLES_S=settles)

    def has_ended(self) -> bool:
        """Tell whether nothing is left to do, for anybody."""
        process = self.outside
        with process.views.reading() as connection:
            if connection.execute(process.unfinished.rows.select()).first() is not None:
                return False
        books = Books(process.log)
        links = books.every(Link)
        return all(
            link.stage in {Stage.ACTIVE, Stage.ENDED} and link.open_change is None for link in links
        ) and all(job.finished_at is not None for job in books.every(BulkJob))


@pytest.fixture
def market(tmp_path: Path) -> Iterator[Market]:
    with ExitStack() as stack:
        providers = Providers(stack)
        installation = installation_for_serving(tmp_path)
        installation.environment |= providers.environment
        stack.callback(installation.close)
        yield Market(installation, providers)


def trouble(providers: Providers, chance: random.Random) -> None:
    """Let one of the next requests fail in one of the ways."""
    name = chance.choice([*TROUBLED])
    route, kind = chance.choice(TROUBLED[name]), chance.choice(KINDS)
    providers.by_name[name].fault(
        kind, on=route, seconds=chance.choice(LATE_S), headers={"Retry-After": "1"}
    )


def live_and_die(market: Market, place: tuple[str, str], chance: random.Random) -> None:
    """Let a life fail in many ways, and kill it while a provider has a call of it in hand."""
    providers, (name, route), pulse = market.providers, place, Event()
    server = providers.by_name[name]
    if name == "telnyx":  # It is asked while Twilio fails.
        server.heal()
        providers.twilio.fault(FaultKind.SERVER_ERROR, on="look up", times=1_000)
    with market.service() as service:
        service.wait_until_it_listens()
        for _ in range(10):
            trouble(providers, chance)
            pulse.wait(PULSE_S)
        server.fault(kind := chance.choice(LATE), on=route, seconds=LATE_S[-1])
        before = len(server.asked(route))
        wait_until(
            lambda: kind in {each.fault for each in server.asked(route)[before:]}, timeout_s=ENDS_S
        )
        service.kill()
    if name == "telnyx":
        providers.twilio.heal()


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_kills_and_failing_providers_lose_and_double_nothing(
    market: Market, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    with market.open():
        for number in range(ROUNDS):
            live_and_die(market, PLACES[number % len(PLACES)], chance)
        market.providers.heal()
        last = market.service()
    with last:
        wait_until(market.has_ended, timeout_s=ENDS_S)
        check(market)
        status, report = run(market.installation, "audit", "verify")
        assert (status, report["failures"]) == (0, [])
        assert last.stop() == 0
    (tmp_path / "seen.json").write_text(json.dumps(seen(market), indent=1))


def check(market: Market) -> None:
    """Compare the books of everybody with the log, and read what was logged."""
    books, providers = Books(market.outside.log), market.providers
    assert market.ledger.surprises == []
    check_sales(providers.esimgo, books)
    check_ledger(providers.bics, books)
    airalo_books.check_sales(providers.airalo, books, failed_additions(books, "airalo"))
    check_lookups(market, books)
    check_money(market, books)
    check_promises(market, books)
    check_invoice(market)
    said = (market.installation.directory / "serve.log").read_text()
    assert canaries_in(said) == set()
    assert not [secret for secret in SECRETS if secret in said]
    sold = (*providers.esimgo.esims, *providers.bics.sims, *providers.airalo.esims)
    assert not [iccid for iccid in sold if iccid in said]


def check_lookups(market: Market, books: Books) -> None:
    """Twilio and Telnyx were paid for all that the log says."""
    assert check_charges(market.providers.twilio, books) > 0
    check_charges(market.providers.telnyx, books)


def failed_additions(books: Books, network: str) -> int:
    """Count the added plans that were paid back: a network that removes nothing may keep them."""
    links = {link.id: link.network for link in books.every(Link)}
    changes = books.every(PlanChange)
    return sum(each.failure is not None and links[each.link_id] == network for each in changes)


def check_money(market: Market, books: Books) -> None:
    """The organization has paid for what it got, and for nothing else."""
    links = sum(
        each.plan.price_micros for link in books.every(Link) for each in link.activations.values()
    )
    jobs = sum(len(job.completed) for job in books.every(BulkJob))
    lookups = sum(isinstance(each, NumberLookup.Answered) for each in books.events)
    wallet = books.get(Wallet, wallet_id(market.organization_id))
    spent = links + (jobs + lookups) * PRICE_MICROS
    assert wallet.balance_micros == parse_amount(DEPOSIT) - spent


def check_promises(market: Market, books: Books) -> None:
    """Every reply of success still stands."""
    for promise in market.ledger.of("link"):
        link = books.get(Link, UUID(promise.id))
        assert (link.stage, link.iccid) == (Stage.ACTIVE, promise.request)
    for promise in market.ledger.of("topup"):
        assert len(books.get(Link, UUID(promise.id)).current_activations) == 2
    jobs = {str(job.id): job for job in books.every(BulkJob)}
    assert {promise.id for promise in market.ledger.of("job")} <= {*jobs}


def check_invoice(market: Market) -> None:
    """What eSIM Go takes is what the log says, order by order."""
    lines = [
        f"{sale.reference},{sale.offer.price},USD"
        for sale in market.providers.esimgo.sales
        if not sale.given_back
    ]
    file = market.installation.directory / "invoice.csv"
    file.write_text("\n".join(["orderReference,total,currency", *lines]))
    _, found = run(market.installation, "audit", "reconcile", "--provider", "esimgo", str(file))
    wrong = [found[each] for each in ("missing_here", "missing_there", "different")]
    assert (wrong, found["matched"]) == ([[], [], []], len(lines))


def seen(market: Market) -> dict[str, object]:
    """Return what a long run has met."""
    providers, books = market.providers, Books(market.outside.log)
    sales, links = providers.esimgo.sales, books.every(Link)
    return {
        "eSIM Go sold": len(sales),
        "given back": sum(each.given_back for each in sales),
        "incidents": {each: len(left_over(books, each)) for each in ("esimgo", "airalo")},
        "BICS sold": len(providers.bics.bought),
        "taken off": len(providers.bics.taken_off),
        "Airalo sold": len(providers.airalo.sales),
        "Airalo's additions paid back": failed_additions(books, "airalo"),
        "Twilio charged": providers.twilio.charged,
        "Telnyx charged": providers.telnyx.charged,
        "Telnyx booked": check_charges(providers.telnyx, books),
        "faults": {
            name: sum(each.fault is not None for each in server.requests)
            for name, server in providers.by_name.items()
        },
        "links": {stage: sum(link.stage is stage for link in links) for stage in Stage},
        "promises": {k: len(market.ledger.of(k)) for k in ("link", "topup", "job", "lookup")},
        "refusals": market.ledger.refusals,
    }
