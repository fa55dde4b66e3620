"""A read model that fails stops alone, at exactly the event that it fails on, and says so."""

import pytest

from projections.engine.projector import Projector
from tests.installation import Process, sqlite_only
from tests.projections.histories import write_row
from tests.projections.looking import (
    FragileWallets,
    failures,
    place_of,
    places,
    projector_of,
    register,
    rows,
)


@pytest.fixture
def projector(process: Process) -> Projector:
    models = [model for model in process.models if model.name != "wallets"]
    return projector_of(process, *models, FragileWallets())


def project_all(projector: Projector) -> None:
    while projector.step():
        pass


@pytest.mark.each_database
def test_a_handler_that_raises_stops_its_model_at_exactly_that_position(
    process: Process, projector: Projector, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization_id = process.organization("1.00")
    process.look_up(organization_id)
    head = process.log.head()
    monkeypatch.setattr(FragileWallets, "broken_at", head - 1)
    project_all(projector)
    everywhere = dict.fromkeys((model.name for model in process.models), head)
    assert places(process) == {**everywhere, "wallets": head - 2}
    assert rows(process)["wallets"] == [(organization_id, "USD", 1_000_000, 1)]


def test_neither_the_log_lines_nor_the_report_show_what_was_being_written(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    canary = "what-somebody-has-paid-for"
    process.accounts.move("deposit", process.organization("1.00"), 1, canary, process.cause())
    with process.views.writing() as connection:
        process.transactions.project(connection, process.log.read(0, 100))
    project_all(process.projector)
    assert set(failures(process)) == {"transactions"}
    assert canary not in failures(process)["transactions"]
    assert "transactions stopped" in caplog.text
    assert canary not in caplog.text


@sqlite_only("PostgreSQL has a type for ids and takes nothing else")
def test_a_stream_id_that_is_none_is_no_place_to_stand_at(process: Process) -> None:
    register(process, 3)
    position = write_row(process, "no uuid", 1, "deposit.made", b"{}")
    project_all(process.projector)
    assert set(places(process).values()) == {position - 1}
    assert set(failures(process)) == {model.name for model in process.models}


def test_a_projector_leaves_a_model_of_another_version_alone(process: Process) -> None:
    # A process of the old release runs on while `migrate` of the new one has rebuilt a model.
    register(process, 1)
    (model,) = (each for each in process.models if each.name == "organizations")
    with process.views.writing() as connection:
        process.positions.start(connection, "organizations", model.version + 1, None)
    project_all(process.projector)
    assert place_of(process, "organizations").position == 0
    assert place_of(process, "wallets").position == 1
