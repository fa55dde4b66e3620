"""Lookups and jobs whole, against scripted providers that fail in every way.

Whatever a provider does: what was paid is what was answered, an event says who answered, and no
number and no secret stands in what others may see.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic

import pytest
from prometheus_client import generate_latest

from app.adapters.lookups import telnyx, twilio
from app.books.postings import Work, work_of
from app.bootstrap import container as bootstrap
from app.watch.logging import working
from domain.accounts.wallet import Wallet, wallet_id
from domain.errors import NumberLookupUnavailable
from domain.lookups.bulk_job import SLICE_ITEMS, STARTS_MAX, BulkJob
from domain.lookups.single import NumberLookup
from domain.provider_errors import NotNow
from projections.audit.auditor import check_log
from tests.canaries import canaries_in
from tests.installation import (
    PRICE_MICROS,
    Installation,
    Process,
    numbers,
    sqlite_only,
)
from tests.support.providers.lookups import ScriptedLookups
from tests.support.providers.server import FaultKind
from tests.support.providers.telnyx import ScriptedTelnyx, carrier
from tests.support.providers.twilio import ScriptedTwilio, line

ABOUT_THE_PROVIDER = "what is tried is the provider"
DEPOSIT_MICROS = 100_000_000
KINDS = (*FaultKind,)
VALID = [f"+3461234567{digit}" for digit in range(4)]
INVALID = numbers(2)
WANTED = [*VALID, *INVALID]
SECRETS = ("secret-of-an-account", "cls_")


def teach(server: ScriptedLookups) -> None:
    for number in VALID:
        facts = {"country_code": "ES", "national_format": number[3:]}
        told = {"mobile_country_code": "214", "mobile_network_code": "07"}
        if isinstance(server, ScriptedTwilio):
            server.know(number, **facts, line_type_intelligence=line("mobile", "Movistar", **told))
        elif isinstance(server, ScriptedTelnyx):
            server.know(number, **facts, carrier=carrier("mobile", "MOVISTAR", **told))


@pytest.fixture
def servers() -> Iterator[dict[str, ScriptedLookups]]:
    with ExitStack() as stack:
        made = [stack.enter_context(kind()) for kind in (ScriptedTwilio, ScriptedTelnyx)]
        for each in made:
            teach(each)
        yield {each.name: each for each in made}


def lookups_of(server: ScriptedLookups) -> int:
    """Count the lookups that a provider was asked for; a probe asks for less."""
    return sum(bool(each.query) for each in server.asked("look up"))


class Buyer:
    """An organization of a process that asks the providers of a list, in this order."""

    def __init__(
        self, installation: Installation, servers: dict[str, ScriptedLookups], providers: str
    ) -> None:
        for each in servers.values():
            installation.environment |= each.settings
        installation.environment |= {
            "LOOKUP_PROVIDER": providers,
            "SANDBOX": "false",
            "COST_PER_LOOKUP": "twilio=0.008,telnyx=0.0025 USD",
        }
        self.process: Process = installation.process()
        self.organization_id = self.process.organization("100.00")

    def ask(self, number: str) -> NumberLookup | None:
        """Look a number up; None if nobody answers."""
        try:
            result = self.process.look_up(self.organization_id, number)
        except NumberLookupUnavailable:
            return None
        assert result.facts.phone_number == number
        assert result.facts.valid is (number in VALID)
        return result.lookup

    def job(self, wanted: list[str]) -> BulkJob:
        """Have a job worked on to its end."""
        job_id = self.process.create_job(self.organization_id, wanted)
        for slice_index in range(-(-len(wanted) // SLICE_ITEMS)):
            for _ in range(STARTS_MAX):
                with suppress(NotNow):
                    self.process.bulk_lookup.work(job_id, slice_index)
                    break
        job = self.process.log.get(BulkJob, job_id)
        assert job.finished_at is not None
        return job

    @property
    def paid_micros(self) -> int:
        wallet = self.process.log.get(Wallet, wallet_id(self.organization_id))
        return DEPOSIT_MICROS - wallet.balance_micros

    def asked(self) -> Counter[str]:
        """Count the live answers of the log by provider."""
        found: Counter[str] = Counter()
        for each in self._work():
            assert each.provider is not None
            found[each.provider] += each.count
        return found

    @property
    def cost_micros(self) -> int:
        """What the log knows that providers take."""
        return sum(each.cost.amount_micros for each in self._work() if each.cost)

    def _work(self) -> list[Work]:
        events = (each.event for each in self.process.log.read(0, 10_000))
        return [each for event in events for each in work_of(event)]


def assert_nothing_is_told(process: Process, caplog: pytest.LogCaptureFixture) -> None:
    """Fail if a number or a secret is in the metrics, a log line or the log of events."""
    shown = generate_latest(process.metrics.registry("serve")).decode()
    said = "\n".join(each.getMessage() for each in caplog.records)
    path = Path(process.settings.database_path)
    stored = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    for text in (shown, said):
        assert canaries_in(text) == set()
    for word in [*(number[1:] for number in WANTED), *SECRETS]:
        assert word not in shown + said
        assert word.encode() not in stored


@pytest.mark.slow
@sqlite_only(ABOUT_THE_PROVIDER)
@pytest.mark.parametrize(
    "sweep",
    [
        pytest.param(("twilio", KINDS[::2]), id="twilio"),
        pytest.param(("telnyx", KINDS[1::2]), id="telnyx"),
        pytest.param(("twilio", KINDS[1::2]), id="twilio, the rest", marks=pytest.mark.soak),
        pytest.param(("telnyx", KINDS[::2]), id="telnyx, the rest", marks=pytest.mark.soak),
    ],
)
def test_whatever_a_provider_does_only_answers_are_paid(
    installation: Installation,
    servers: dict[str, ScriptedLookups],
    sweep: tuple[str, Sequence[FaultKind]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    for adapter in (twilio, telnyx):
        monkeypatch.setattr(adapter, "LOOKUP_S", 0.12)
    name, kinds = sweep
    server = servers[name]
    for kind in kinds:
        buyer = Buyer(installation, servers, name)
        server.fault(kind, times=3, seconds=0.3)
        answered = [each for each in map(buyer.ask, WANTED) if each is not None]
        job = buyer.job(numbers(3, 100))
        server.heal()
        paid = len(answered) + job.created.total_count - len(job.failed)
        assert buyer.paid_micros == paid * PRICE_MICROS, kind
        assert {each.answer.provider for each in answered} <= {name}
        assert check_log(buyer.process.log).failures == [], kind
        live = buyer.asked()
        assert live.keys() <= {name}
        assert len(server.requests) >= live[name]
        assert buyer.cost_micros % server.price_micros == 0
        assert buyer.cost_micros <= server.charged * server.price_micros, kind
        assert_nothing_is_told(buyer.process, caplog)
        buyer.process.close()


@sqlite_only(ABOUT_THE_PROVIDER)
def test_while_one_is_down_the_next_answers_and_the_events_say_so(
    installation: Installation, servers: dict[str, ScriptedLookups]
) -> None:
    servers["twilio"].fault(FaultKind.SERVER_ERROR, times=10_000)
    buyer = Buyer(installation, servers, "twilio,telnyx,offline")
    answers = [buyer.ask(number) for number in WANTED]
    assert [each.answer.provider for each in answers if each] == ["telnyx"] * len(WANTED)
    assert buyer.cost_micros == servers["telnyx"].charged * servers["telnyx"].price_micros > 0
    servers["telnyx"].fault(FaultKind.RESET_BEFORE, times=10_000)
    job = buyer.job(numbers(20, 100))
    assert (len(job.failed), buyer.asked()) == (0, Counter(telnyx=len(WANTED), offline=20))
    assert check_log(buyer.process.log).failures == []


@sqlite_only(ABOUT_THE_PROVIDER)
def test_a_dead_first_provider_costs_its_time_out_once_and_then_nothing(
    installation: Installation,
    servers: dict[str, ScriptedLookups],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(twilio, "LOOKUP_S", 0.12)
    monkeypatch.setattr(bootstrap, "PATIENCE_S", 0.1)
    servers["twilio"].fault(FaultKind.LATE_REPLY, times=10_000)
    buyer = Buyer(installation, servers, "twilio,telnyx")
    began_s = monotonic()
    first = buyer.ask(VALID[0])
    first_s = monotonic() - began_s
    dead = lookups_of(servers["twilio"])
    others = [buyer.ask(number) for number in [*VALID[1:], *INVALID]]
    assert {each.answer.provider for each in [first, *others] if each} == {"telnyx"}
    assert first_s >= 0.12
    assert lookups_of(servers["twilio"]) == dead


@sqlite_only(ABOUT_THE_PROVIDER)
def test_an_answer_of_number_ranges_does_not_stand_in_for_a_provider_that_is_back(
    installation: Installation, servers: dict[str, ScriptedLookups]
) -> None:
    buyer = Buyer(installation, servers, "twilio,offline")
    servers["twilio"].fault(FaultKind.RESET_BEFORE, times=3)
    answers = [buyer.ask(VALID[0]) for _ in range(3)]
    found = [(each.answer.provider, each.answer.source) for each in answers if each]
    assert found == [("offline", "live"), ("twilio", "live"), ("twilio", "cache")]


@sqlite_only(ABOUT_THE_PROVIDER)
def test_each_call_of_a_job_carries_the_id_of_the_request_that_made_it(
    installation: Installation, servers: dict[str, ScriptedLookups]
) -> None:
    buyer = Buyer(installation, servers, "telnyx")
    with working(request_id="request-7"):
        buyer.job(WANTED)
    buyer.job(numbers(2, 100))
    ids = [each.headers.get("x-request-id") for each in servers["telnyx"].requests]
    assert ids == ["request-7"] * len(WANTED) + [None] * 2
