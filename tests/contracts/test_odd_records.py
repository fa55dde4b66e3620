"""The contract of both ports about odd records: what one reply says of one number or one eSIM.

Such a record is no outage. It fails alone, or is answered as far as it is understood; it opens no
circuit, is not asked for again, and fails the work of nobody else.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace
from prometheus_client import generate_latest

from app.adapters.circuit import CircuitBreaker, GuardedNetwork
from app.bootstrap.container import Container
from app.settings import Settings
from domain.catalogue.supplied import SuppliedPlan
from domain.links.network import EsimNetwork, Usage
from domain.lookups.ports import LookupProvider
from domain.provider_errors import NotAnswered, OutcomeNotTold, Rejected, Unavailable
from tests.contracts.esim_networks import (
    BASE_PLAN,
    OTHER_PLAN,
    PLAN,
    SPONSOR,
    TIMEOUT_S,
    AiraloSide,
    BicsSide,
    EsimGoSide,
    FarSide,
    ScriptedSide,
    a_free_esim,
    a_link,
)
from tests.contracts.odd_records import ODD, odd_record
from tests.contracts.scripted_lookup import VALID_MOBILE
from tests.contracts.test_number_lookup import assert_honest
from tests.support.providers.lookups import ScriptedLookups
from tests.support.providers.server import Request
from tests.support.providers.telnyx import ScriptedTelnyx
from tests.support.providers.twilio import ScriptedTwilio

ONE, OTHER = (UUID(int=number) for number in (1, 2))
RECORDS = 50
LOGINS = {"token", "log in"}
NO_REPLIES = (b"", b"<html></html>", b"{", b'"text"', b"null")  # No JSON object or list.
CHAINS = {
    "twilio": [ScriptedTwilio],
    "telnyx": [ScriptedTelnyx],
    "twilio, then telnyx": [ScriptedTwilio, ScriptedTelnyx],
}


class Lookups:
    """The providers of a chain with their servers, behind their circuits."""

    def __init__(self, stack: ExitStack, *kinds: type[ScriptedLookups]) -> None:
        self.servers = [stack.enter_context(kind()) for kind in kinds]
        environment = {name: text for each in self.servers for name, text in each.settings.items()}
        environment["LOOKUP_PROVIDER"] = ",".join(
            [each.name for each in self.servers] or ["offline"]
        )
        self.container = stack.enter_context(closing(Container(Settings.from_env(environment))))
        self.container.hold.known = False  # There is no database that could say so.

    @property
    def provider(self) -> LookupProvider:
        return self.container.provider

    @property
    def are_up(self) -> list[bool]:
        return [each.is_up() for each in self.container.lookups]


@pytest.fixture(params=CHAINS)
def lookups(request: pytest.FixtureRequest) -> Iterator[Lookups]:
    with ExitStack() as stack:
        yield Lookups(stack, *CHAINS[request.param])


def test_fifty_odd_records_of_numbers_open_no_circuit(
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


@dataclass(frozen=True)
class Ask:
    """What a call needs: an endpoint with its eSIM, and a free eSIM where there is a stock."""

    network: EsimNetwork
    endpoint_id: str
    iccid: str
    free_iccid: str

    def find(self) -> object:
        """Look for what a lost reply has told."""
        if self.network.shape == "stock":
            return self.network.find_endpoint(self.iccid, timeout_s=TIMEOUT_S)
        now = datetime(2026, 1, 1, tzinfo=UTC)
        return self.network.orders(PLAN, now, now + timedelta(days=365), timeout_s=TIMEOUT_S)

    def create(self) -> object:
        """Buy a link."""
        if self.network.shape == "order":
            return self.network.order(PLAN, "link-2", timeout_s=TIMEOUT_S)
        return self.network.create_endpoint(
            self.free_iccid, PLAN, BASE_PLAN, "link-2", timeout_s=TIMEOUT_S
        )


CALLS: dict[str, Callable[[Ask], object]] = {
    "usage": lambda ask: ask.network.usage(ask.endpoint_id, timeout_s=TIMEOUT_S),
    "status": lambda ask: ask.network.status(ask.endpoint_id, timeout_s=TIMEOUT_S),
    "lpa": lambda ask: ask.network.lpa(ask.iccid, timeout_s=TIMEOUT_S),
    "find": Ask.find,
    "create": Ask.create,
    "add_plan": lambda ask: ask.network.add_plan(
        ask.endpoint_id, OTHER_PLAN, "topup-1", timeout_s=TIMEOUT_S
    ),
    "suspend": lambda ask: ask.network.suspend(ask.endpoint_id, timeout_s=TIMEOUT_S),
    "resume": lambda ask: ask.network.resume(ask.endpoint_id, timeout_s=TIMEOUT_S),
}


@pytest.fixture
def guarded(network: EsimNetwork) -> Iterator[tuple[EsimNetwork, CircuitBreaker]]:
    """The network behind a circuit of the usual rules."""
    circuit = CircuitBreaker("eSIM network", network.name, int, open_s=3600.0)
    made: Any = GuardedNetwork(network, circuit)
    with closing(circuit):
        yield made, circuit


def ready(network: EsimNetwork) -> Ask:
    if network.shape == "order":
        iccid = a_link(network)
        return Ask(network, iccid, iccid, "")
    iccid = a_free_esim(network)
    endpoint_id = a_link(network)
    return Ask(network, endpoint_id, iccid, a_free_esim(network))


@pytest.mark.parametrize("name", CALLS)
def test_fifty_odd_records_of_esims_open_no_circuit(
    far_side: FarSide,
    guarded: tuple[EsimNetwork, CircuitBreaker],
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    network, circuit = guarded
    ask = ready(network)
    for number in range(RECORDS):
        if isinstance(far_side, ScriptedSide):
            far_side.server.mangle = partial(spoiled, number)
        else:  # What it says is its own; so an odd id has to do.
            odd = str(ODD[number % len(ODD)])
            ask = Ask(network, odd, odd, odd)
        with suppress(NotAnswered, OutcomeNotTold, Rejected):
            CALLS[name](ask)
        assert circuit.is_up()
    if isinstance(far_side, ScriptedSide):
        far_side.server.mangle = as_it_is
    assert ready(network).iccid not in caplog.text
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
        network: EsimNetwork = far_side.connect()  # type: ignore[attr-defined]  # Each has it.
        with pytest.raises(Unavailable) as caught:
            network.probe(timeout_s=TIMEOUT_S)
    assert not isinstance(caught.value, NotAnswered)
