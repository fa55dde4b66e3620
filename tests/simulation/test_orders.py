"""The simulation on a network that sells by order: nothing is bought twice, nothing is lost."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.links import lost_order
from domain.links.lost_order import LostOrder
from domain.links.saga import Step
from projections.models import due
from tests.simulation.conftest import Run, fails, running
from tests.simulation.mutants import an_esim_keeps_no_record_of_who_holds_it
from tests.simulation.order_world import OrderWorld
from tests.simulation.template import Template
from workers import links, lost_orders

SEEDS = int(os.environ.get("SIMULATION_SEEDS") or (500 if os.environ.get("SOAK") == "1" else 8))
GROUP = 4
TRIES_MAX = 20
Plant = Callable[[pytest.MonkeyPatch], None]


def few(template: Template) -> Template:
    """Sell one plan only, so that customers often order the same at once."""
    plan_id, item = next(iter(template.plans.items()))
    return replace(template, plans={plan_id: item})


@pytest.fixture
def run_orders(run: Any, template: Template, tmp_path: Path) -> Run:
    """Run a seed to its end; `run` keeps the log lines quiet."""
    del run
    return running(few(template), tmp_path, OrderWorld)


@pytest.mark.rounds
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_whatever_goes_wrong_each_order_ends_in_one_place(run_orders: Run, first: int) -> None:
    for seed in range(first, first + GROUP):
        assert run_orders(seed).ended_well


def an_order_is_adopted_though_it_is_older_than_the_intent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lost_order, "APART", timedelta(days=1))


def an_order_is_placed_again_as_soon_as_none_is_seen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(links, "after_nothing", lambda *_, **__: Step.START)


def a_lost_order_is_settled_before_the_network_shows_it(patch: pytest.MonkeyPatch) -> None:
    steps = {Step.WAIT: Step.LOOK_UP}

    def at_once(lost: LostOrder, now: datetime) -> Step:
        step = lost_order.next_step(lost, now)
        return steps.get(step, step)

    patch.setattr(lost_orders, "next_step", at_once)
    at_once = {**due.DUE, LostOrder.Opened: lambda event: event.timestamp}
    patch.setattr(due, "DUE", at_once)


# Each with seeds that have found it.
PLANTS: Mapping[Plant, Sequence[int]] = {
    an_esim_keeps_no_record_of_who_holds_it: (0,),
    an_order_is_adopted_though_it_is_older_than_the_intent: (1,),
    an_order_is_placed_again_as_soon_as_none_is_seen: (14,),
    a_lost_order_is_settled_before_the_network_shows_it: (6,),
}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_makes_a_seed_fail(
    run_orders: Run, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert fails(run_orders, (*PLANTS[plant], *range(TRIES_MAX)))
