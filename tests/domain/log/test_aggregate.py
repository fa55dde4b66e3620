"""An event is made of all its facts, no more and no fewer, and assigns what its aggregate has."""

from dataclasses import fields, replace
from typing import Any

import pytest

from domain.accounts.wallet import Wallet
from tests.domain.build import ORGANIZATION, START, cause


def opened() -> Wallet:
    return Wallet.open(ORGANIZATION, "USD", cause())


@pytest.mark.parametrize(
    ("missing", "more"), [("description", {}), (None, {"colour": "red"}), ("description", {"a": 1})]
)
def test_an_event_without_a_fact_or_with_one_too_many_is_our_bug(
    missing: str | None, more: dict[str, Any]
) -> None:
    wallet = opened()
    facts: dict[str, Any] = {
        "organization_id": ORGANIZATION,
        "currency": "USD",
        "sequence": 1,
        "transaction_id": ORGANIZATION,
        "amount_micros": 1,
        "balance_micros": 1,
        "reference": None,
        "description": "",
        "metadata": {},
    }
    wallet.record(Wallet.Deposited, cause(), **facts)
    names = [each.name for each in fields(Wallet.Deposited)]
    assert [*vars(wallet.pending_events[1])] == names, "so it is stored"
    facts.pop(missing or "", None)
    with pytest.raises((AssertionError, KeyError)):
        wallet.record(Wallet.Deposited, cause(), **facts, **more)
    assert (wallet.version, len(wallet.pending_events)) == (2, 2)


def test_an_operator_is_kept_by_the_events_that_have_a_place_for_one() -> None:
    by_operator = replace(cause(), actor="os:alice")
    wallet = Wallet.open(ORGANIZATION, "USD", by_operator)
    [event] = wallet.collect_events()
    assert isinstance(event, Wallet.Opened)
    assert (event.actor, event.timestamp) == ("os:alice", START)
