"""Plan changes whose commit landed although its confirmation was lost: done and paid for once."""

from collections.abc import Callable
from typing import Any

import pytest

from domain.errors import ServiceUnavailable
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from tests.domain.buying import Buyer


@pytest.fixture
def link(buyer: Buyer) -> Link:
    buyer.hire()
    return buyer.own()


def unconfirmed(real: Callable[..., int], lost: list[PlanChange]) -> Callable[..., int]:
    """Let the first commit of a plan change land, and its confirmation get lost."""

    def commit(*arguments: Any) -> int:
        changes = [each for each in arguments if isinstance(each, PlanChange)]
        is_first = bool(changes) and not lost
        lost.extend(changes)  # Before it lands: workers commit as soon as they see it.
        position = real(*arguments)
        if is_first:
            raise ServiceUnavailable
        return position

    return commit


@pytest.mark.parametrize("price", ["1.00", "0.00"])
def test_without_a_key_it_is_waited_for_and_not_begun_again(
    buyer: Buyer, link: Link, price: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asia, before = buyer.sell("Asia", price), buyer.balance_micros
    lost: list[PlanChange] = []
    process = buyer.process
    monkeypatch.setattr(process.committer, "commit", unconfirmed(process.committer.commit, lost))
    monkeypatch.setattr(process.log, "append", unconfirmed(process.log.append, lost))
    change, replayed = buyer.change(link.id, add=[asia])
    assert not replayed
    assert before - buyer.balance_micros == change.kept_micros
    assert buyer.events()["plan_change.requested"] == 1
    assert len(buyer.link(link.id).current_activations) == 2
    buyer.check()
