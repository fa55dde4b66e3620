"""A read model is given the kinds of events that it names, and it needs no others."""

from typing import Any, NoReturn

import pytest

from app.bootstrap.container import Container
from app.settings import Settings
from domain.accounts.wallet import Wallet
from domain.links.link import Link
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.lookups.bulk_job import BulkJob
from projections.engine.read_model import Batch, ReadModel, Uses
from tests.golden.files import EVENTS

MODELS = Container(Settings.from_env({})).models
BATCH = [Recorded(position, event) for position, event in enumerate([*EVENTS, *EVENTS], 1)]


class Untouchable:
    """A connection that nobody has a reason to use."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(name)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_an_event_of_another_kind_writes_nothing(model: ReadModel) -> None:
    untouchable: Any = Untouchable()
    for event in EVENTS:
        if not isinstance(event, model.uses):
            model.project(untouchable, [Recorded(1, event)])


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_read_model_uses_something_but_not_everything(model: ReadModel) -> None:
    assert 0 < sum(isinstance(event, model.uses) for event in EVENTS) < len(EVENTS)


@pytest.mark.parametrize(
    "uses", [(Wallet.Charged,), (Wallet.Event,), (Link.Event, BulkJob.Event), (Event,), (int,)]
)
def test_the_events_of_some_kinds_come_in_the_order_of_the_log(uses: Any) -> None:
    kinds: Uses = uses
    assert [*Batch(BATCH).of(kinds)] == [each for each in BATCH if isinstance(each.event, kinds)]
