"""The fault programme of the real networks: each change against each fault of the wire.

What an adapter says of a change is true by the books of the network and holds no secret; what it
leaves open can be found out, and what may be repeated is.
"""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from domain.provider_errors import OutcomeUnknown, ProviderError, Unavailable
from tests.canaries import SOURCE, canaries_in
from tests.contracts.esim_networks import (
    BASE_PLAN,
    OTHER_PLAN,
    PLAN,
    TIMEOUT_S,
    AiraloSide,
    BicsSide,
    EsimGoSide,
    ScriptedSide,
    a_free_esim,
)
from tests.installation import wait_until
from tests.support.providers import airalo, bics, esimgo
from tests.support.providers.server import FaultKind

SHORT_S = 0.2
SLOW = {FaultKind.DELAY, FaultKind.LATE_REPLY, FaultKind.DRIBBLE}
HARMLESS = {FaultKind.DUPLICATE, FaultKind.EFFECT_TWICE}
IN_THE_LONG_RUN = {FaultKind.DRIBBLE, FaultKind.HUGE, FaultKind.HUGE_GZIP, FaultKind.HTML}
IN_THE_LONG_RUN |= {FaultKind.UNAVAILABLE, FaultKind.DUPLICATE}  # Their like is always run.
KINDS = [
    pytest.param(kind, marks=[pytest.mark.soak] if kind in IN_THE_LONG_RUN else [], id=kind.name)
    for kind in FaultKind
]
SECRETS = (bics.PASSWORD, "eyJ.token", esimgo.KEY, airalo.CLIENT_SECRET, "airalo-token-")


class Account:
    """An account with a link on it; `network` is the adapter that calls."""

    def __init__(self, side: Any) -> None:
        self.side, self.server, self.network = side, side.server, side.connect()
        self.free_iccid, self.order = "", None
        if self.network.shape == "order":
            self.order = self.network.order(PLAN, "link-1", timeout_s=TIMEOUT_S)
            self.endpoint_id = self.order.iccid
        else:
            made = self.network.create_endpoint(
                a_free_esim(self.network), PLAN, BASE_PLAN, "link-1", timeout_s=TIMEOUT_S
            )
            self.endpoint_id, self.free_iccid = made.endpoint_id, a_free_esim(self.network)
        (addon,) = self.network.usage(self.endpoint_id, timeout_s=TIMEOUT_S).addons
        self.addon_id = addon.addon_id

    def buy(self, timeout_s: float) -> object:
        if self.order is not None:
            return self.network.order(PLAN, "link-2", timeout_s=timeout_s)
        return self.network.create_endpoint(
            self.free_iccid, PLAN, BASE_PLAN, "link-2", timeout_s=timeout_s
        )

    def add(self, timeout_s: float) -> object:
        return self.network.add_plan(self.endpoint_id, OTHER_PLAN, "topup-1", timeout_s=timeout_s)

    def remove_plan(self, timeout_s: float) -> object:
        return self.network.remove_plan(self.endpoint_id, self.addon_id, timeout_s=timeout_s)

    def suspend(self, timeout_s: float) -> object:
        return self.network.suspend(self.endpoint_id, timeout_s=timeout_s)

    def give_back(self, timeout_s: float) -> object:
        if self.order is not None:
            return self.network.take_back(self.order, timeout_s=timeout_s)
        return self.network.remove_endpoint(self.endpoint_id, timeout_s=timeout_s)

    def books(self) -> list[object]:
        """Return all that a change could have moved at the network."""
        with self.server.lock:
            match self.side:
                case BicsSide():
                    held = [each.endpoint_id for each in self.server.sims.values()]
                    ends = [(each, it.life_cycle) for each, it in self.server.endpoints.items()]
                    return [len(self.server.bought), len(self.server.unpaid()), held, ends]
                case EsimGoSide():
                    esims = self.server.esims.values()
                    puts = [put.id for each in esims for put in each.present]
                    return [[(it.iccid, it.state, it.gone) for it in esims], puts]
                case _:
                    return [*self.server.sales]


@dataclass(frozen=True)
class Change:
    """A change, the network that is asked for it, and the route that fails."""

    side: Callable[[Path], ScriptedSide]
    route: str
    make: Callable[[Account, float], object]


CHANGES = {
    "bics creates": Change(BicsSide, "create", Account.buy),
    "bics adds": Change(BicsSide, "plans", Account.add),
    "bics removes": Change(BicsSide, "plans", Account.remove_plan),
    "bics suspends": Change(BicsSide, "life cycle", Account.suspend),
    "bics delinks": Change(BicsSide, "delink", Account.give_back),
    "bics deletes": Change(BicsSide, "delete", Account.give_back),
    "esimgo sells": Change(EsimGoSide, "order", Account.buy),
    "esimgo adds": Change(EsimGoSide, "order", Account.add),
    "esimgo revokes": Change(EsimGoSide, "revoke", Account.remove_plan),
    "esimgo takes back": Change(EsimGoSide, "revoke", Account.give_back),
    "esimgo suspends": Change(EsimGoSide, "suspend", Account.suspend),
    "airalo sells": Change(AiraloSide, "order", Account.buy),
    "airalo adds": Change(AiraloSide, "order", Account.add),
}


@pytest.fixture
def account(name: str, tmp_path: Path) -> Iterator[Account]:
    with closing(CHANGES[name].side(tmp_path)) as side:
        made = Account(side)
        if name == "esimgo revokes":
            side.install(made.endpoint_id)
        yield made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_said_of_a_change_is_true_and_what_is_open_can_be_found_out(
    account: Account, name: str, kind: FaultKind, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    change, before, error = CHANGES[name], account.books(), None
    account.server.fault(kind, on=change.route, headers={"Retry-After": "0"})
    try:
        change.make(account, SHORT_S if kind in SLOW else TIMEOUT_S)
    except ProviderError as caught:
        error = caught
    account.server.heal()
    wait_until(lambda: account.server.is_idle)
    happened = account.books() != before
    assert error is None or isinstance(error, Unavailable | OutcomeUnknown)
    if isinstance(error, Unavailable):
        assert not happened
    assert happened or error is not None
    said = "".join(traceback.format_exception(error)) if error is not None else ""
    assert canaries_in(SOURCE.sub("", said) + caplog.text) == set()
    assert not [each for each in SECRETS if each in said + caplog.text]
    if name == "bics creates":
        found = account.network.find_endpoint(account.free_iccid, timeout_s=TIMEOUT_S)
        assert (found is not None and found.reference == "link-2") == happened
    elif change.make not in {Account.buy, Account.add}:  # A repeat is safe.
        change.make(account, TIMEOUT_S)
        assert account.books() != before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "route"), [("airalo sells", "token"), ("bics creates", "log in")])
def test_a_login_that_fails_is_an_outage_and_buys_nothing(
    account: Account, name: str, route: str, kind: FaultKind
) -> None:
    before, account.network = account.books(), account.side.connect()
    account.server.fault(kind, on=route, times=9, headers={"Retry-After": "0"})
    if kind in HARMLESS:
        CHANGES[name].make(account, TIMEOUT_S)
        return
    with pytest.raises(Unavailable):
        CHANGES[name].make(account, SHORT_S)
    assert account.books() == before


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("bics removes", "profile"),
        ("esimgo revokes", "bundles"),
        ("esimgo takes back", "bundles"),
        ("esimgo suspends", "esim"),
    ],
)
def test_a_change_that_was_sent_twice_is_unknown_where_nobody_can_look(
    account: Account, name: str, look: str
) -> None:
    before = account.books()
    account.server.fault(FaultKind.EFFECT_TWICE, on=CHANGES[name].route)
    if look == "bundles":  # It looks first, too.
        account.server.fault(FaultKind.DELAY, on=look, seconds=0.0)
    account.server.fault(FaultKind.HTML, on=look, times=9)
    with pytest.raises(OutcomeUnknown):
        CHANGES[name].make(account, TIMEOUT_S)
    assert account.books() != before
