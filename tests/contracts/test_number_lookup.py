"""The contract that every LookupProvider signs, whatever answers behind it."""

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from typing import get_args
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.adapters.lookups.mcc_mnc import load_networks
from app.adapters.lookups.offline import OfflineLookup
from app.adapters.lookups.sandbox import MALFORMED, UNAVAILABLE, SandboxLookup
from app.http.lookups.input import is_e164
from domain.lookups.ports import LineType, LookupProvider, NumberFacts
from domain.provider_errors import ProviderError, Unavailable
from tests.contracts.scripted_lookup import (
    NOT_VALID,
    ORGANIZATION,
    VALID_MOBILE,
    Behind,
    Fault,
    ScriptedLookup,
)
from tests.data.make_numbers import NUMBERS_FILE
from tests.support.providers.lookups import Lookups, ScriptedLookups
from tests.support.providers.telnyx import ScriptedTelnyx
from tests.support.providers.twilio import ScriptedTwilio

NETWORKS = load_networks(None)
TRIES = 300 if os.environ.get("SOAK") == "1" else 25

EXAMPLES = json.loads(NUMBERS_FILE.read_text(encoding="utf-8"))["phone_numbers"]

# Most strings of the pattern are nobody's; those that begin like a real number often are not.
e164_numbers = st.from_regex(r"\A\+[1-9][0-9]{1,14}\Z") | st.builds(
    lambda example, kept, digits: (example[:kept] + digits)[:16],
    st.sampled_from(EXAMPLES),
    st.integers(min_value=4, max_value=12),
    st.from_regex(r"\A[0-9]{4,10}\Z"),
)


def behind_circuit(inner: LookupProvider) -> AbstractContextManager[LookupProvider]:
    return closing(Behind(inner, failures_max=1_000))


def no_attempts(organization_id: UUID, phone_number: str) -> int:
    """Count nothing, for tests that play no number which is counted."""
    raise NotImplementedError


def in_sandbox(inner: LookupProvider) -> SandboxLookup:
    return SandboxLookup(inner, no_attempts, sleep=lambda _: None)


@contextmanager
def asking(*kinds: type[ScriptedLookups]) -> Iterator[LookupProvider]:
    """Ask scripted servers of providers, one after the other, over real sockets."""
    with ExitStack() as stack:
        yield Lookups(stack, *kinds).provider


LOOKUPS: dict[str, Callable[[], AbstractContextManager[LookupProvider]]] = {
    "offline": lambda: nullcontext(OfflineLookup(NETWORKS)),
    "offline behind a circuit": lambda: behind_circuit(OfflineLookup(NETWORKS)),
    "offline in the sandbox": lambda: nullcontext(in_sandbox(OfflineLookup(NETWORKS))),
    "twilio": lambda: asking(ScriptedTwilio),
    "telnyx": lambda: asking(ScriptedTelnyx),
    "twilio, then telnyx": lambda: asking(ScriptedTwilio, ScriptedTelnyx),
    "scripted": lambda: nullcontext(ScriptedLookup()),
    "scripted behind a circuit": lambda: behind_circuit(ScriptedLookup()),
}


@pytest.fixture(params=list(LOOKUPS))
def lookup(request: pytest.FixtureRequest) -> Iterator[LookupProvider]:
    with LOOKUPS[request.param]() as made:
        yield made


def assert_honest(facts: NumberFacts) -> None:
    """Fail when an answer breaks a promise that the port makes for every number."""
    if facts.country_code is not None:
        assert re.fullmatch(r"[A-Z]{2}", facts.country_code)
    if not facts.valid:
        assert facts.carrier is None
        return
    assert facts.carrier is not None
    assert facts.carrier.type in get_args(LineType)
    assert facts.national_format
    assert facts.carrier.name != ""
    mcc, mnc = facts.carrier.mcc, facts.carrier.mnc
    assert mcc is None or re.fullmatch(r"[0-9]{3}", mcc)
    assert mnc is None or re.fullmatch(r"[0-9]{2,3}", mnc)
    assert mcc is not None or mnc is None
    assert mcc is None or facts.carrier.type == "mobile"


@pytest.mark.slow
@pytest.mark.rounds
@settings(
    max_examples=TRIES, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(phone_number=e164_numbers)
def test_every_string_of_the_pattern_gets_an_honest_answer(
    lookup: LookupProvider, phone_number: str
) -> None:
    assert is_e164(phone_number)
    facts = lookup.look_up(ORGANIZATION, phone_number).facts
    assert facts.phone_number == phone_number
    assert_honest(facts)


def test_a_valid_mobile_number_has_country_format_and_carrier(lookup: LookupProvider) -> None:
    facts = lookup.look_up(ORGANIZATION, VALID_MOBILE).facts
    assert facts.valid
    assert facts.country_code == "ES"
    assert facts.national_format == "612 34 56 78"
    assert facts.carrier is not None
    assert facts.carrier.type == "mobile"


def test_a_number_that_does_not_exist_is_an_answer(lookup: LookupProvider) -> None:
    assert lookup.look_up(ORGANIZATION, NOT_VALID).facts == NumberFacts(NOT_VALID, valid=False)


def test_a_repeated_lookup_gives_the_same_answer(lookup: LookupProvider) -> None:
    first = lookup.look_up(ORGANIZATION, VALID_MOBILE)
    assert lookup.look_up(ORGANIZATION, VALID_MOBILE).facts == first.facts


def test_a_fresh_provider_has_a_name_says_whether_it_is_remote_and_is_up(
    lookup: LookupProvider,
) -> None:
    assert re.fullmatch(r"[a-z]+", lookup.name)
    assert lookup.remote is (lookup.name != "offline")
    assert lookup.is_up()


def test_threads_share_a_provider(lookup: LookupProvider) -> None:
    numbers = [VALID_MOBILE, NOT_VALID] * 50

    def valid(phone_number: str) -> bool:
        return lookup.look_up(ORGANIZATION, phone_number).facts.valid

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(valid, numbers)) == [True, False] * 50


def crashing() -> ScriptedLookup:
    scripted = ScriptedLookup()
    scripted.play(Fault.CRASHES)
    return scripted


TROUBLE: dict[str, Callable[[], tuple[AbstractContextManager[LookupProvider], str]]] = {
    "crashes behind a circuit": lambda: (behind_circuit(crashing()), VALID_MOBILE),
    "sandbox unavailable": lambda: (nullcontext(in_sandbox(ScriptedLookup())), UNAVAILABLE),
    "sandbox malformed": lambda: (nullcontext(in_sandbox(ScriptedLookup())), MALFORMED),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_every_trouble_is_unavailable_and_names_no_number(trouble: str) -> None:
    made, phone_number = TROUBLE[trouble]()
    with made as lookup, pytest.raises(ProviderError) as caught:
        lookup.look_up(ORGANIZATION, phone_number)
    assert caught.type is Unavailable
    assert phone_number[1:] not in str(caught.value)
    assert caught.value.__cause__ is None
