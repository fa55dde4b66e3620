"""The circuit breaker: when it opens, how it closes by itself, and what never escapes it."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from queue import Queue
from typing import Any
from uuid import UUID

import pytest

from app.adapters.circuit import CircuitBreaker, GuardedNetwork
from app.adapters.remote.exchange import Busy, OddRecord
from domain.links.network import Forged, NoSuchEndpoint, Notifying
from domain.lookups.ports import Found, NumberFacts
from domain.provider_errors import (
    OutcomeNotStated,
    OutcomeUnknown,
    ProviderError,
    Rejected,
    Unavailable,
)
from tests.contracts.scripted_lookup import (
    ORGANIZATION,
    VALID_MOBILE,
    Behind,
    Fault,
    ScriptedLookup,
)
from tests.installation import PATIENCE_S, wait_until
from tests.log_lines import said_by

AT_ONCE_S = 0.001  # Between opening and the first probe; tests wait for the probe, not for this.
NEVER_S = 3600.0
Make = Callable[..., Behind]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make providers behind circuits that are closed at the end of the test with their threads."""
    made: list[Behind] = []

    def make_one(*args: Any, **options: Any) -> Behind:
        made.append(Behind(*args, **options))
        return made[-1]

    yield make_one
    for each in made:
        each.close()
    wait_until(lambda: probers() == [])  # One that has closed its circuit still has to return.


@pytest.fixture
def provider() -> ScriptedLookup:
    return ScriptedLookup()


def probers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.endswith("scripted-probe")]


def fail(breaker: Behind, times: int) -> None:
    for _ in range(times):
        with pytest.raises(Unavailable):
            breaker.look_up(ORGANIZATION, VALID_MOBILE)


class ScriptedProbe:
    """A probe that raises until it is told to succeed, and tells when it ran."""

    def __init__(self) -> None:
        self.down = threading.Event()
        self.down.set()
        self.ran: Queue[bool] = Queue()

    def __call__(self) -> None:
        down = self.down.is_set()
        self.ran.put(not down)
        if down:
            message = f"no route to {VALID_MOBILE}"
            raise ConnectionError(message)


def test_an_answer_in_between_starts_the_count_anew(make: Make, provider: ScriptedLookup) -> None:
    breaker = make(provider, failures_max=2)
    for _ in range(3):
        provider.play(Fault.TIMES_OUT)
        fail(breaker, 1)
        assert breaker.look_up(ORGANIZATION, VALID_MOBILE).facts.valid
    assert breaker.is_up()


def test_a_probe_closes_the_circuit_without_traffic(make: Make, provider: ScriptedLookup) -> None:
    probe = ScriptedProbe()
    breaker = make(provider, failures_max=1, open_s=AT_ONCE_S, probe=probe)
    provider.play(Fault.TIMES_OUT)
    fail(breaker, 1)
    assert not probe.ran.get(timeout=PATIENCE_S)
    assert not probe.ran.get(timeout=PATIENCE_S)
    assert not breaker.is_up()
    probe.down.clear()
    wait_until(breaker.is_up)
    assert breaker.look_up(ORGANIZATION, VALID_MOBILE).facts.valid
    wait_until(lambda: probers() == [])


class Gate(ScriptedLookup):
    """Runs something within each call, and then refuses it unless that returns an answer."""

    def __init__(self, within: Callable[[], object]) -> None:
        super().__init__()
        self.within = within

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # The shape of the port.
        if not self.within():
            raise Unavailable
        return Found(NumberFacts(phone_number, valid=True), self.name)


def test_one_thread_probes_however_many_lookups_fail_at_once(make: Make) -> None:
    barrier = threading.Barrier(8, timeout=PATIENCE_S)
    breaker = make(Gate(lambda: barrier.wait() < 0), failures_max=1)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: fail(breaker, 1), range(8)))
    assert len(probers()) == 1


def test_a_late_answer_does_not_close_an_open_circuit(make: Make) -> None:
    entered, release = threading.Event(), threading.Event()

    def hold_the_first() -> bool:
        if entered.is_set():
            return False
        entered.set()
        return release.wait(PATIENCE_S)

    breaker = make(Gate(hold_the_first), failures_max=1)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(breaker.look_up, ORGANIZATION, VALID_MOBILE)
        assert entered.wait(PATIENCE_S)
        fail(breaker, 1)
        release.set()
        assert answer.result(PATIENCE_S).facts.valid
    assert not breaker.is_up()


def test_closing_ends_the_thread_and_may_be_repeated(make: Make, provider: ScriptedLookup) -> None:
    breaker = make(provider, failures_max=1, open_s=NEVER_S)
    provider.play(Fault.TIMES_OUT)
    fail(breaker, 1)
    assert len(probers()) == 1
    breaker.close()
    breaker.close()
    assert probers() == []


def test_no_number_reaches_a_log(
    make: Make, provider: ScriptedLookup, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    probe = ScriptedProbe()
    breaker = make(provider, failures_max=2, open_s=AT_ONCE_S, probe=probe)
    provider.play(Fault.CRASHES, Fault.TIMES_OUT)
    fail(breaker, 2)
    probe.ran.get(timeout=PATIENCE_S)
    probe.down.clear()
    wait_until(breaker.is_up)
    wait_until(lambda: "circuit closed" in caplog.text)
    assert "KeyError" in caplog.text
    assert "ConnectionError" in caplog.text
    assert VALID_MOBILE[1:] not in caplog.text


def test_the_circuit_stays_closed_when_no_thread_is_to_be_had(
    make: Make, provider: ScriptedLookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    breaker = make(provider, failures_max=1)
    provider.play(Fault.TIMES_OUT)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        fail(breaker, 1)
    assert breaker.look_up(ORGANIZATION, VALID_MOBILE).facts.valid


class ScriptedNetwork:
    """A network that answers each call by what the test says next."""

    name = "scripted"
    remote = True
    settles_after = timedelta(seconds=1)

    def __init__(self, *happenings: BaseException | str) -> None:
        self.happenings = list(happenings)

    def probe(self, *, timeout_s: float) -> None:
        """Find it up."""

    def notified(self, _: Mapping[str, str], body: bytes) -> str | None:
        raise Forged(len(body))

    def lpa(self, iccid: str, *, timeout_s: float) -> str:
        assert (iccid, timeout_s) == ("8900", 1.0)
        happening = self.happenings.pop(0)
        if isinstance(happening, BaseException):
            raise happening
        return happening


def networks_calls(*happenings: BaseException | str) -> tuple[list[object], bool]:
    """Return what the calls of a network gave, behind a circuit of two, and whether it is up."""
    circuit = CircuitBreaker("eSIM network scripted", int, failures_max=2, open_s=NEVER_S)
    network = GuardedNetwork(ScriptedNetwork(*happenings), circuit)
    seen: list[object] = []
    with closing(circuit):
        for _ in happenings:
            try:
                seen.append(network.lpa("8900", timeout_s=1.0))
            except Exception as error:  # noqa: BLE001  # The test compares them.
                seen.append(type(error))
        return seen, circuit.is_up()


def test_forged_notifications_open_no_circuit() -> None:
    circuit = CircuitBreaker("eSIM network scripted", int, failures_max=2, open_s=NEVER_S)
    network = GuardedNetwork(ScriptedNetwork(), circuit)
    with closing(circuit):
        assert isinstance(network, Notifying)
        for _ in range(5):
            with pytest.raises(Forged):
                network.notified({}, b"")
        assert circuit.is_up()


@pytest.mark.parametrize("answer", [Busy, Rejected, NoSuchEndpoint, OddRecord, OutcomeNotStated])
def test_a_network_that_answers_or_says_not_now_is_up(answer: type[ProviderError]) -> None:
    assert networks_calls(*[answer() for _ in range(3)]) == ([answer] * 3, True)


def test_the_place_in_an_odd_record_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    networks_calls(OddRecord("an odd reply at $.data"), OutcomeNotStated("of an order"))
    begins = "eSIM network scripted: an odd record: "
    lines = said_by(caplog, "app.providers.circuit")
    assert lines == [f"{begins}an odd reply at $.data", f"{begins}of an order"]


@pytest.mark.parametrize("failure", [Unavailable, OutcomeUnknown, KeyError])
def test_failures_of_a_network_open_its_circuit_unless_a_refusal_comes_between(
    failure: type[Exception],
) -> None:
    code = "LPA:1$h$m"
    assert networks_calls(failure(), failure(), code) == ([failure, failure, Unavailable], False)
    between = networks_calls(failure(), Rejected(), failure(), code)
    assert between == ([failure, Rejected, failure, code], True)
