"""The contract of both ports about odd records: what one reply says of one number or one eSIM.

Such a record is no outage. It fails alone, or is answered as far as it is understood; it opens no
circuit, is not asked for again, and fails the work of nobody else.
"""

import dataclasses
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace
from prometheus_client import generate_latest

from app.adapters.circuit import CircuitBreaker, GuardedNetwork
from domain.catalogue.supplied import SuppliedPlan
from domain.links.network import EsimNetwork, Usage
from domain.provider_errors import NotAnswered, OutcomeNotStated, Rejected, Unavailable
from tests.contracts.esim_networks import (
    OTHER_PLAN,
    PLAN,
    SPONSOR,
    TIMEOUT_S,
    AiraloSide,
    BicsSide,
    EsimGoSide,
    FarSide,
    ScriptedSide,
    a_link,
)
from tests.contracts.network_calls import ready
from tests.contracts.odd_records import ODD, odd_record
from tests.contracts.scripted_lookup import VALID_MOBILE
from tests.contracts.test_number_lookup import assert_honest
from tests.support.providers.lookups import Lookups, ScriptedLookups
from tests.support.providers.server import Request
from tests.support.providers.telnyx import ScriptedTelnyx
from tests.support.providers.twilio import ScriptedTwilio

ONE, OTHER = (UUID(int=number) for number in (1, 2))
RECORDS = 50 if os.environ.get("SOAK") == "1" else len(ODD) + 1  # Each odd value once.
LOGINS = {"token", "log in"}
NO_REPLIES = (b"", b"<html></html>", b"{", b'"text"', b"null")  # No JSON object or list.
CHAINS = {
    "twilio": [ScriptedTwilio],
    "telnyx": [ScriptedTelnyx],
    "twilio, then telnyx": [ScriptedTwilio, ScriptedTelnyx],
}


@pytest.fixture(params=CHAINS)
def lookups(request: pytest.FixtureRequest) -> Iterator[Lookups]:
    with ExitStack() as stack:
        yield Lookups(stack, *CHAINS[request.param])


def test_odd_records_of_numbers_open_no_circuit(
    lookups: Lookups, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first, *others = lookups.servers
    for number in range(RECORDS):
        first.mangle = partial(spoiled, number)
        caplog.clear()
        try:
            found = lookups.provider.look_up(ONE, VALID_MOBILE)
        except NotAnswered:
            assert not others
            assert " at $." in caplog.text
        else:
            known = found.facts.national_format or "not known"
            assert_honest(replace(found.facts, national_format=known))
        assert first.calls == number + 1
        assert VALID_MOBILE[1:] not in caplog.text
    first.mangle = as_it_is
    assert lookups.are_up == [True] * len(lookups.servers)
    clean = lookups.provider.look_up(OTHER, VALID_MOBILE)
    assert (clean.provider, clean.facts.country_code) == (first.name, "ES")


@pytest.mark.parametrize("body", NO_REPLIES)
def test_what_is_no_reply_is_an_outage_of_the_provider(lookups: Lookups, body: bytes) -> None:
    lookups.servers[0].mangle = lambda *_: body
    for _ in range(5):
        if len(lookups.servers) == 1:
            with pytest.raises(Unavailable) as caught:
                lookups.provider.look_up(ONE, VALID_MOBILE)
            assert not isinstance(caught.value, NotAnswered)
        else:
            assert lookups.provider.look_up(ONE, VALID_MOBILE).provider == "telnyx"
    assert lookups.are_up[0] is False
    shown = generate_latest(lookups.container.metrics.registry("worker")).decode()
    counted = 'lookup_fallovers_total{provider="twilio",reason="outage"} 5.0'
    assert (counted in shown) is (len(lookups.servers) > 1)


def test_odd_numbers_are_answered_by_the_numbering_plans() -> None:
    with ExitStack() as stack:
        lookups = Lookups(stack)
        for number in [*map(str, ODD), *(f"+{digit}" * 3 for digit in range(30))]:
            assert not lookups.provider.look_up(ONE, number[:40]).facts.valid
        assert lookups.are_up == [True]


# Those that read an odd record, of either shape.
CALLS = {
    "stock": ("usage", "status", "lpa", "find_endpoint", "create_endpoint"),
    "order": ("usage", "status", "lpa", "orders", "order"),
}
CHANGES = ("add_plan", "suspend", "resume")


def test_odd_records_of_esims_open_no_circuit(
    far_side: FarSide, network: EsimNetwork, caplog: pytest.LogCaptureFixture
) -> None:
    circuit = CircuitBreaker(f"eSIM network {network.name}", int, open_s=3600.0)
    guarded: Any = GuardedNetwork(network, circuit)
    with closing(circuit):
        for call in (*CALLS[network.shape], *CHANGES):
            link = ask = ready(guarded)
            for number in range(RECORDS):
                if isinstance(far_side, ScriptedSide):
                    far_side.server.mangle = partial(spoiled, number)
                else:  # What it says is its own; so an odd id has to do.
                    odd = str(ODD[number % len(ODD)])
                    ask = dataclasses.replace(ask, endpoint_id=odd, iccid=odd, free_iccid=odd)
                with suppress(NotAnswered, OutcomeNotStated, Rejected):
                    ask.call(call)
                assert circuit.is_up(), call
            if isinstance(far_side, ScriptedSide):
                far_side.server.mangle = as_it_is
            assert link.iccid not in caplog.text
        network.usage(ready(network).endpoint_id, timeout_s=TIMEOUT_S)


def test_an_odd_esim_of_the_stock_is_not_sold_and_the_others_are(tmp_path: Path) -> None:
    with closing(BicsSide(tmp_path)) as far_side:
        network = far_side.connect()
        far_side.server.mangle = lambda _, told: without_iccid(told)
        found = network.available_esims(PLAN, SPONSOR, "", page=0, timeout_s=TIMEOUT_S)
        far_side.server.mangle = as_it_is
        all_of_them = network.available_esims(PLAN, SPONSOR, "", page=0, timeout_s=TIMEOUT_S)
        assert [*found] == [*all_of_them[1:]]


def without_iccid(told: Any) -> Any:
    """Spoil the first eSIM of a page."""
    if "responseParam" in told.get("Response", {}):
        told["Response"]["responseParam"]["rows"][0]["iccid"] = None
    return told


def spoiled(number: int, request: Request, told: Any) -> Any:
    """Return an odd reply, but to a login: without one nobody is served."""
    return told if request.route in LOGINS else odd_record(told, number)


def as_it_is(_: Request, told: Any) -> Any:
    return told


def as_texts(told: Any) -> Any:
    """Return a reply with all of its numbers as texts."""
    if isinstance(told, dict):
        return {name: as_texts(value) for name, value in told.items()}
    if isinstance(told, list):
        return [as_texts(value) for value in told]
    return str(told) if isinstance(told, int | float) and not isinstance(told, bool) else told


@pytest.fixture(params=[AiraloSide, BicsSide, EsimGoSide])
def wired(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ScriptedSide]:
    """A network that is reached by a wire, each in turn."""
    with closing(request.param(tmp_path)) as made:
        yield made


def test_numbers_as_texts_are_read(wired: Any) -> None:
    far_side, network = wired, wired.connect()
    far_side.server.mangle = lambda _, told: as_texts(told)
    endpoint_id = a_link(network)
    added = network.add_plan(endpoint_id, OTHER_PLAN, "topup-1", timeout_s=TIMEOUT_S)
    far_side.install(endpoint_id)
    far_side.forward(timedelta(hours=1))
    as_text = told_of(network, endpoint_id)
    far_side.server.mangle = as_it_is
    assert as_text == told_of(network, endpoint_id)
    usage, _, balance, supplied = as_text
    assert len(usage.addons) == 2
    assert any(each.used_mb for each in usage.addons)
    if network.shape == "order":
        assert (added.cost is None, balance is None) == (False, False)
        assert all(isinstance(each, SuppliedPlan) for each in supplied)


def told_of(network: EsimNetwork, endpoint_id: str) -> tuple[Usage, Any, Any, list[Any]]:
    """Return what a network tells, without the moments of its answers."""
    usage = network.usage(endpoint_id, timeout_s=TIMEOUT_S)
    status = network.status(endpoint_id, timeout_s=TIMEOUT_S)
    balance = network.balance(timeout_s=TIMEOUT_S)
    supplied = [*network.supplied(timeout_s=TIMEOUT_S)]
    never = datetime.min.replace(tzinfo=UTC)
    return replace(usage, as_of=never), replace(status, as_of=never), balance, supplied


@pytest.mark.parametrize("kind", [ScriptedTwilio, ScriptedTelnyx])
def test_numbers_as_texts_of_a_balance_are_read(kind: type[ScriptedLookups]) -> None:
    with ExitStack() as stack:
        lookups = Lookups(stack, kind)
        lookups.servers[0].mangle = lambda _, told: as_texts(told)
        assert lookups.provider.look_up(ONE, VALID_MOBILE).facts.valid
        assert lookups.container.lookups[0].balance(timeout_s=TIMEOUT_S) is not None


@pytest.mark.parametrize("kind", [AiraloSide, BicsSide])
def test_a_login_without_a_token_is_an_outage(
    kind: Callable[[Path], ScriptedSide], tmp_path: Path
) -> None:
    with closing(kind(tmp_path)) as far_side:
        far_side.server.mangle = lambda *_: {"data": {}}
        network: EsimNetwork = far_side.connect()
        with pytest.raises(Unavailable) as caught:
            network.probe(timeout_s=TIMEOUT_S)
    assert not isinstance(caught.value, NotAnswered)
