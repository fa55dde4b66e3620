"""The projector writes each event once into each read model, whoever else does so, too."""

import pytest
from sqlalchemy.exc import OperationalError

from projections.engine.read_model import BATCH_EVENTS_MAX
from tests.installation import Process
from tests.projections.looking import place_of, places, projector_of, register, rows, trouble_for


@pytest.mark.parametrize("times", [1, 3])
def test_catching_up_waits_out_what_passes(
    process: Process, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    register(process, 1)
    trouble_for(process, monkeypatch, times)
    process.projector.catch_up()
    assert set(places(process).values()) == {1}


def test_catching_up_ends_when_the_trouble_does_not(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(process, 1)
    trouble_for(process, monkeypatch, 1_000)
    with pytest.raises(OperationalError):
        process.projector.catch_up()


@pytest.mark.each_database
def test_a_model_that_is_behind_catches_up_while_the_others_stay_where_they_are(
    process: Process,
) -> None:
    process.organization()
    register(process, 2 * BATCH_EVENTS_MAX)
    projector = projector_of(process, process.wallets, process.clients)
    projector.catch_up()
    head, before = process.log.head(), rows(process, [process.wallets])
    with process.views.writing() as connection:
        process.positions.start(connection, "api_clients", process.clients.version, None)
    while projector.step():
        assert place_of(process, "wallets").position == head
    assert place_of(process, "api_clients").position == head
    assert rows(process, [process.wallets]) == before


def test_a_model_that_has_followed_what_a_failover_lost_is_rebuilt(process: Process) -> None:
    register(process, 2)
    models = process.wallets, process.organizations
    projector_of(process, *models).catch_up()
    right, places = rows(process, models), process.positions.rows
    with process.views.writing() as connection:
        at = places.update().where(places.c.name == "organizations")
        connection.execute(at.values(stream_version=9))
        connection.execute(process.organizations.tables[0].delete())
    projector_of(process, *models).step()
    assert rows(process, models) == right
    assert place_of(process, "organizations").position == process.log.head()
