"""Many ask at once, over the threads of a running service: nobody pays twice or for nothing."""

from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from app.processes.runtime import Runtime
from domain.errors import (
    Conflict,
    InsufficientBalance,
    LinkBusy,
    ServiceUnavailable,
)
from domain.links import change_plans
from domain.links import create as link_create
from domain.links.link import Link, Stage
from domain.log.log import RACES_MAX
from tests.domain.asking import all_at_once
from tests.domain.buying import Buyer, NewBuyer
from tests.installation import Process, wait_until


@pytest.fixture
def running(new_buyer: NewBuyer) -> Iterator[Process]:
    """A second process of the same files that runs all that a service runs."""
    process = new_buyer("").process
    runtime = Runtime(process)
    runtime.start()
    yield process
    runtime.stop()


def made(outcomes: list[tuple[Link, bool] | Exception]) -> list[tuple[Link, bool]]:
    return [each for each in outcomes if isinstance(each, tuple)]


def test_links_that_race_for_the_last_money_are_made_while_it_lasts(
    running: Process, new_buyer: NewBuyer
) -> None:
    buyer = new_buyer("45.50")
    plan_id = buyer.sell()
    outcomes = all_at_once(20, lambda _: buyer.create(plan_id, process=running))
    kinds = Counter(type(each) for each in outcomes)
    assert kinds == {tuple: 11, InsufficientBalance: 9}, outcomes
    links = [link for link, _ in made(outcomes)]
    assert {link.stage for link in links} == {Stage.ACTIVE}
    assert len({link.iccid for link in links}) == 11
    assert buyer.balance_micros == 1_500_000
    buyer.check()


def test_changes_that_race_for_the_last_money_are_done_while_it_lasts(
    new_buyer: NewBuyer,
) -> None:
    buyer = new_buyer("10.00")
    buyer.hire()
    links = [buyer.own(f"Trial {number}") for number in range(3)]
    asia = buyer.sell("Asia", "3.00")
    outcomes = all_at_once(9, lambda each: buyer.change(links[each % 3].id, add=[asia]))
    refused = [each for each in outcomes if isinstance(each, InsufficientBalance)]
    assert len(refused) == 6, outcomes
    assert buyer.balance_micros == 1_000_000
    wait_until(lambda: all(buyer.link(link.id).open_change is None for link in links))
    assert sum(len(buyer.link(link.id).activations) for link in links) == 6
    buyer.check()


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
