"""A chain: the next provider is asked while one is unavailable, and never when it has answered."""

from collections.abc import Iterator
from contextlib import closing
from math import inf
from uuid import UUID

import pytest

from app.adapters.circuit import CircuitBreaker, GuardedLookup
from app.adapters.lookups.chain import ChainedLookup
from domain.lookups.ports import Found, LookupProvider
from domain.provider_errors import NotAnswered, NotNow, Unavailable
from tests.contracts.scripted_lookup import ORGANIZATION, VALID_MOBILE, Fault, ScriptedLookup
from tests.installation import CountingProvider
from tests.log_lines import said_by


class Rival(ScriptedLookup):
    name = "rival"


@pytest.fixture
def first() -> ScriptedLookup:
    return ScriptedLookup()


@pytest.fixture
def second() -> Rival:
    return Rival()


def ask(provider: LookupProvider, number: str = VALID_MOBILE) -> Found:
    return provider.look_up(ORGANIZATION, number)


def test_a_lookup_that_falls_over_is_counted_and_an_outage_is_logged_once_a_minute(
    first: ScriptedLookup, second: Rival, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[str, str]] = []
    first.play(Fault.TIMES_OUT, Fault.REFUSES)
    chain = ChainedLookup([Ignorant(), first, Busy(), second], lambda *why: told.append(why))
    for _ in range(3):
        assert ask(chain).provider in {"rival", "scripted"}
    ignorant, busy = ("scripted", "no_answer"), ("counting", "busy")
    down = ("scripted", "outage")
    assert told == [ignorant, down, busy, ignorant, down, busy, ignorant]
    assert said_by(caplog, "app.adapters.lookups.chain") == [
        "lookups fall over to the provider behind scripted: the scripted provider times out"
    ]


class Ignorant(ScriptedLookup):
    """One that is well and knows no number."""

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # Of the port.
        raise NotAnswered


class Busy(CountingProvider):
    """Says "not now"."""

    def look_up(self, organization_id: UUID, phone_number: str) -> Found:  # noqa: ARG002  # Of the port.
        raise NotNow


def test_one_that_is_only_busy_is_worth_waiting_for(first: ScriptedLookup) -> None:
    first.play(Fault.TIMES_OUT)
    with pytest.raises(NotNow):
        ask(ChainedLookup([Ignorant(), first, Busy()]))


@pytest.mark.parametrize("first_is_down", [True, False])
def test_nobody_has_an_answer_only_if_all_were_reached(
    first: ScriptedLookup, *, first_is_down: bool
) -> None:
    first.play(Fault.TIMES_OUT)
    reached = [Ignorant(), Ignorant()]
    chain = ChainedLookup([first, *reached] if first_is_down else reached)
    with pytest.raises(Unavailable) as caught:
        ask(chain)
    assert isinstance(caught.value, NotAnswered) is not first_is_down


def test_it_is_up_and_can_be_probed_while_one_is_up() -> None:
    down, up = CountingProvider(remote=True), CountingProvider()
    down.all_down = True
    chain = ChainedLookup([down, up])
    chain.probe()
    assert (chain.is_up(), chain.remote) == (True, True)
    up.all_down = True
    assert not chain.is_up()
    with pytest.raises(Unavailable):
        chain.probe()


@pytest.fixture(params=[0.0, inf])
def patience_s(request: pytest.FixtureRequest) -> float:
    return float(request.param)


@pytest.fixture
def circuit(first: ScriptedLookup, patience_s: float) -> Iterator[CircuitBreaker]:
    with closing(
        CircuitBreaker(f"lookup provider {first.name}", first.probe, patience_s=patience_s)
    ) as made:
        yield made


def test_one_that_lets_its_caller_wait_is_not_asked_again_until_a_probe_finds_it_up(
    first: ScriptedLookup, second: Rival, circuit: CircuitBreaker, patience_s: float
) -> None:
    chain = ChainedLookup([GuardedLookup(first, circuit), second])
    first.play(Fault.TIMES_OUT)
    said = [ask(chain).provider for _ in range(2)]
    assert said == ["rival", "scripted" if patience_s else "rival"]
