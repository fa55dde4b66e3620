"""The one table from events to messages: ids only, and nothing for events without a route."""

from uuid import UUID

import pytest

from domain.log.aggregate import Event
from tests.installation import Process, numbers
from tests.projections.histories import Life
from workers.routes import messages_for


def recorded(process: Process) -> list[Event]:
    return [each.event for each in process.log.read(0, 10_000)]


@pytest.mark.any_database
def test_a_message_carries_ids_and_nothing_of_a_person(process: Process) -> None:
    life = Life(process, seed=31)
    life.go_on(60)
    life.finish()
    process.create_job(process.organization(), numbers(1))
    messages = [message for event in recorded(process) for message in messages_for(event)]
    assert messages
    for message in messages:
        for argument in message.arguments:
            assert isinstance(argument, int) or str(UUID(argument)) == argument
