"""The sandbox numbers: each does what the contract says, and none of it reaches the provider."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from itertools import count
from uuid import UUID

import pytest

from app.adapters.lookups.sandbox import FAILURES, NUMBERS, SLOW_S, SandboxLookup
from domain.lookups.ports import Carrier, NumberFacts
from domain.provider_errors import NotAnswered, Unavailable
from tests.contracts.scripted_lookup import (
    ORGANIZATION,
    VALID_MOBILE,
    Behind,
    Fault,
    ScriptedLookup,
)

ANOTHER = UUID("00000000-0000-4000-8000-000000000002")


def attempts() -> Callable[[UUID, str], int]:
    """Return what counts attempts for one process, which is all that these tests have."""
    counters: defaultdict[tuple[UUID, str], count[int]] = defaultdict(lambda: count(1))
    return lambda *attempt: next(counters[attempt])


class Sandbox:
    """A sandbox around a scripted provider, with what can be seen of it from outside."""

    def __init__(self) -> None:
        self.provider = ScriptedLookup()
        self.slept_s: list[float] = []
        self.lookup = SandboxLookup(self.provider, attempts(), self.slept_s.append)

    def ask(self, phone_number: str, organization_id: UUID = ORGANIZATION) -> NumberFacts:
        return self.lookup.look_up(organization_id, phone_number).facts


@pytest.fixture
def sandbox() -> Sandbox:
    return Sandbox()


def test_the_slow_number_answers_after_three_seconds(sandbox: Sandbox) -> None:
    facts = sandbox.ask("+15005550002")
    assert sandbox.slept_s == [3.0] == [SLOW_S]
    assert facts == NumberFacts(
        "+15005550002",
        valid=True,
        country_code="US",
        national_format="(500) 555-0002",
        carrier=Carrier(name="Sandbox Mobile", type="mobile", mcc="001", mnc="01"),
    )
    asked = [sandbox.lookup.look_up(ORGANIZATION, each) for each in ("+15005550002", VALID_MOBILE)]
    assert [(each.provider, each.free) for each in asked] == [
        ("scripted", True),  # What is played costs nothing.
        ("scripted", False),
    ]


@pytest.mark.parametrize("how", FAILURES)
def test_an_organization_scripts_how_any_number_fails_but_not_for_another(how: str) -> None:
    provider, slept_s, scripted = ScriptedLookup(), list[float](), {ORGANIZATION: how}
    lookup = SandboxLookup(
        provider, attempts(), slept_s.append, lambda it, _: scripted.pop(it, None)
    )
    assert lookup.look_up(ANOTHER, VALID_MOBILE).facts.valid
    if how == "slow":
        assert lookup.look_up(ORGANIZATION, VALID_MOBILE).facts.valid
    else:
        with pytest.raises(Unavailable) as raised:
            lookup.look_up(ORGANIZATION, VALID_MOBILE)
        assert isinstance(raised.value, NotAnswered) is (how == "no_data")
    assert slept_s == ([SLOW_S] if how == "slow" else [])
    assert lookup.look_up(ORGANIZATION, VALID_MOBILE).facts.valid


def test_each_organization_has_a_first_attempt_of_its_own_and_none_reaches_the_provider(
    sandbox: Sandbox,
) -> None:
    for organization in (ORGANIZATION, ANOTHER):
        for phone_number in sorted(NUMBERS.keys() - {"+15005550002"}):
            with pytest.raises(Unavailable):
                sandbox.ask(phone_number, organization)
    assert sandbox.ask("+15005550004", ANOTHER).valid
    sandbox.ask("+15005550002")
    assert sandbox.provider.calls == 0


def test_sandbox_numbers_answer_while_the_circuit_is_open() -> None:
    provider = ScriptedLookup()
    provider.play(Fault.TIMES_OUT)
    breaker = Behind(provider, failures_max=1)
    lookup = SandboxLookup(breaker, attempts(), sleep=lambda _: None)
    with closing(breaker):
        with pytest.raises(Unavailable):
            lookup.look_up(ORGANIZATION, VALID_MOBILE)
        assert not lookup.is_up()
        assert lookup.look_up(ORGANIZATION, "+15005550002").facts.valid
