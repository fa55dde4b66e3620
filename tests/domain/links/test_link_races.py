"""Many ask at once, over the threads of a running service: nobody pays twice or for nothing."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from domain.errors import (
    Conflict,
    LinkBusy,
    ServiceUnavailable,
)
from domain.links import change_plans
from domain.links import create as link_create
from domain.links.link import Link
from domain.log.log import RACES_MAX
from tests.domain.buying import Buyer, NewBuyer

SHORT_S = 0.1


def beaten(counted: list[None]) -> Callable[..., None]:
    """Return a step that others are always first with."""

    def lose(aggregate: Link, *_: object, **__: object) -> None:
        counted.append(None)
        raise Conflict(aggregate.id)

    return lose


@pytest.mark.any_database
def test_a_request_that_others_always_beat_to_the_end_of_its_link_gives_up(
    new_buyer: NewBuyer,
) -> None:
    buyer, tries = new_buyer(), list[None]()
    hasty = buyer.open(SHORT_S)
    hasty.failing = SimpleNamespace(fail_link=beaten(tries))  # type: ignore[assignment]  # all it calls
    with pytest.raises(ServiceUnavailable, match=link_create.NOT_ENDED):
        buyer.create(buyer.sell(), process=hasty)
    assert len(tries) == RACES_MAX
    buyer.hire(after=0)
    buyer.check()


@pytest.mark.any_database
def test_a_request_that_others_always_beat_to_the_end_of_its_change_gives_up(buyer: Buyer) -> None:
    workers, tries = buyer.hire(), list[None]()
    link = buyer.own()
    workers.stop()
    hasty = buyer.open(SHORT_S)
    hasty.failing = SimpleNamespace(fail_change=beaten(tries))  # type: ignore[assignment]  # as above
    with pytest.raises(ServiceUnavailable, match=change_plans.NOT_ENDED):
        buyer.change(link.id, add=[buyer.sell("Asia", "1.00")], process=hasty)
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
