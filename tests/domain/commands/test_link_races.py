"""Many ask at once, over the threads of a running service: nobody pays twice or for nothing."""

from collections import Counter
from collections.abc import Iterator

import pytest

from app.runtime import Runtime
from domain.errors import IdempotencyKeyReused, InsufficientBalance
from domain.link import Link
from domain.link_events import Stage
from tests.domain.commands.asking import all_at_once
from tests.domain.commands.buying import NewBuyer
from tests.installation import Process


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


@pytest.mark.parametrize(
    ("amount", "price"), [("10.00", "4.00"), ("4.00", "4.00"), ("10.00", "0.00")]
)
def test_twelve_who_race_with_one_key_make_one_link_and_get_one_answer(
    running: Process, new_buyer: NewBuyer, amount: str, price: str
) -> None:
    buyer = new_buyer(amount)
    plan_id, processes = buyer.sell("Europe", price), (buyer.process, running)
    outcomes = all_at_once(
        12, lambda each: buyer.create(plan_id, "key-1", process=processes[each % 2])
    )
    assert len(made(outcomes)) == 12, outcomes
    assert len({link.id for link, _ in made(outcomes)}) == 1
    assert sum(not replayed for _, replayed in made(outcomes)) == 1
    counted = buyer.events()
    assert (counted["link.requested"], counted["link.activated"]) == (1, 1)
    assert counted["wallet.charged"] == (price != "0.00")
    buyer.check()


def test_of_two_requests_that_race_with_one_key_one_is_refused(
    running: Process, new_buyer: NewBuyer
) -> None:
    buyer = new_buyer()
    plan_id = buyer.sell("Europe", "1.00")
    outcomes = all_at_once(
        8, lambda each: buyer.create(plan_id, "key-1", str(each % 2), process=running)
    )
    refused = [each for each in outcomes if isinstance(each, IdempotencyKeyReused)]
    assert (len(made(outcomes)), len(refused)) == (4, 4), outcomes
    assert buyer.events()["wallet.charged"] == 1
    buyer.check()


def test_links_that_race_for_the_last_money_are_made_while_it_lasts(
    running: Process, new_buyer: NewBuyer
) -> None:
    buyer = new_buyer("85.50")
    plan_id = buyer.sell()
    outcomes = all_at_once(40, lambda _: buyer.create(plan_id, process=running))
    kinds = Counter(type(each) for each in outcomes)
    assert kinds == {tuple: 21, InsufficientBalance: 19}, outcomes
    links = [link for link, _ in made(outcomes)]
    assert {link.stage for link in links} == {Stage.ACTIVE}
    assert len({link.iccid for link in links}) == 21
    assert buyer.balance_micros == 1_500_000
    buyer.check()
