"""Many ask at once, over the threads of a running service: nobody pays twice or for nothing."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from domain.errors import Conflict, LinkBusy, ServiceUnavailable
from domain.links import change_plans, failing
from domain.links.link import Link
from domain.log.log import RACES_MAX
from tests.domain.buying import Buyer

SHORT_S = 0.1


def beaten(counted: list[None]) -> Callable[..., None]:
    """Return a step that others are always first with."""

    def lose(aggregate: Link, *_: object, **__: object) -> None:
        counted.append(None)
        raise Conflict(aggregate.id)

    return lose


@pytest.mark.any_database
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


@pytest.mark.any_database
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
