"""Others are always first, or a confirmation is lost: nobody pays twice or for nothing."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from domain.errors import Conflict, LinkBusy, ServiceUnavailable
from domain.links import change_plans, failing
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.log import RACES_MAX
from tests.domain.buying import Buyer

SHORT_S = 0.1


def beaten(counted: list[None]) -> Callable[..., None]:
    """Return a step that others are always first with."""

    def lose(aggregate: Link, *_: object, **__: object) -> None:
        counted.append(None)
        raise Conflict(aggregate.id)

    return lose


@pytest.mark.parametrize("what", ["link", "change"])
def test_a_request_that_others_always_beat_to_the_end_of_what_it_began_gives_up(
    buyer: Buyer, what: str
) -> None:
    workers, tries = buyer.hire(), list[None]()
    plan_id, link = buyer.sell("Asia", "1.00"), buyer.own()
    workers.stop()
    change = partial(buyer.change, link.id, add=[plan_id])
    ask = change if what == "change" else partial(buyer.create, plan_id)
    hasty = buyer.open(SHORT_S)
    hasty.failing = replace(hasty.failing)
    object.__setattr__(hasty.failing, "fail", beaten(tries))
    with pytest.raises(ServiceUnavailable, match=failing.NOT_ENDED.format(what)):
        ask(process=hasty)
    assert len(tries) == RACES_MAX


def test_a_change_that_always_comes_second_gives_up_long_before_its_deadline(
    buyer: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    buyer.hire()
    link = buyer.own()
    tries = list[None]()
    lose = beaten(tries)
    monkeypatch.setattr(change_plans.LinkPlans, "_try", lambda *_: lose(link))
    with pytest.raises(LinkBusy):
        buyer.change(link.id, add=[buyer.sell("Asia", "1.00")])
    assert len(tries) == RACES_MAX


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
