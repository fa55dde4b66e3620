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
    others = [event for event in EVENTS if not isinstance(event, model.uses)]
    assert 0 < len(others) < len(EVENTS), "it uses something, but not everything"
    for event in others:
        model.project(untouchable, [Recorded(1, event)])


def test_the_events_of_some_kinds_come_in_the_order_of_the_log() -> None:
    some: list[Uses] = [(Wallet.Charged,), (Wallet.Event,), (Link.Event, BulkJob.Event), (Event,)]
    for uses in some:
        expected = [each for each in BATCH if isinstance(each.event, uses)]
        assert [*Batch(BATCH, 0, len(BATCH)).of(uses)] == expected
