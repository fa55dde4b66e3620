"""The view of costs counts what `audit margin` counts."""

from collections import Counter
from datetime import date, timedelta

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from app.books.margin import Earned, margin_of
from domain.cost import Cost
from projections.finance.figures import Figures
from projections.finance.views import COSTS
from tests.installation import Installation, Process, SetClock, numbers
from tests.projections.histories import DOWN, Life
from tests.projections.link_steps import LinkSteps, bought

FAR = replace(bought("Asia", "6.00"), cost=Cost(2_000_000, "EUR"), network="far")


def counted(process: Process) -> Earned:
    database = process.open_finance()
    with database.reading() as connection:
        rows = connection.execute(select(COSTS.table)).all()
    database.close()
    found = Earned()
    for each in rows:
        if each.cost_micros is None:
            found.unknown += each.count
        else:
            assert each.cost * 1_000_000 == each.cost_micros
            found.costs_micros[each.currency, each.estimated] += each.cost_micros
    return found


@pytest.mark.each_database
def test_the_view_and_the_report_agree(installation: Installation) -> None:
    installation.environment["COST_PER_LOOKUP"] = "offline=0.001"
    process = installation.process(clock := SetClock())
    acme = process.organization("100.00")
    process.look_up(acme)
    clock.forward(days=2)
    process.finish_job(process.create_job(acme, [*numbers(2), DOWN]))
    LinkSteps(process, acme, plan=FAR).activate()
    LinkSteps(process, acme).activate()
    LinkSteps(process, acme, plan=FAR).reserve().begin().fail()
    process.projector.catch_up()
    total, found = margin_of(process.log, "day").total, counted(process)
    assert (found.costs_micros, found.unknown) == (total.costs_micros, total.unknown)
    assert total.unknown == 1
    figures = Figures(process.open_finance())
    later = figures.costs(clock.now.date())
    told = {(each.provider, each.work): (each.times, each.cost_micros) for each in later}
    assert told == {
        ("far", "activation"): (1, 2_000_000),
        ("offline", "bulk_lookup"): (2, 2_000),
        ("simulated", "activation"): (1, 0),
    }
    assert len(figures.costs(date(2026, 1, 1))) == len(told) + 1
    assert figures.costs(clock.now.date() + timedelta(days=1)) == []
    figures.database.close()


def test_they_agree_on_a_long_history(process: Process) -> None:
    life = Life(process, 41)
    life.go_on(40)
    life.finish()
    total, found = margin_of(process.log, "day").total, counted(process)
    assert (Counter(found.costs_micros), found.unknown) == (total.costs_micros, total.unknown)
    assert total.unknown
