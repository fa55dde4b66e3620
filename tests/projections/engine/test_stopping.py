"""A read model that fails stops alone, at exactly the event that it fails on, and says so."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from domain.accounts.wallet import Wallet, wallet_id
from projections.audit.auditor import check_log
from projections.engine.positions import belongs
from projections.engine.projector import Projector
from tests.installation import Installation, Process, sqlite_only, wait_until
from tests.projections.histories import look_up, run_on_log, write_row
from tests.projections.looking import (
    FragileWallets,
    after_reading,
    failures,
    place_of,
    places,
    projector_of,
    register,
    rows,
)


@pytest.fixture
def fragile() -> Iterator[FragileWallets]:
    yield FragileWallets()
    FragileWallets.broken_at = 0


@pytest.fixture
def projector(process: Process, fragile: FragileWallets) -> Projector:
    models = [model for model in process.models if model.name != "wallets"]
    return projector_of(process, *models, fragile)


def project_all(projector: Projector) -> None:
    while projector.step():
        pass


def test_a_handler_that_raises_stops_its_model_at_exactly_that_position(
    process: Process, projector: Projector
) -> None:
    organization_id = process.organization("1.00")
    look_up(process, organization_id)
    head = process.log.head()
    FragileWallets.broken_at = head - 1
    project_all(projector)
    everywhere = dict.fromkeys((model.name for model in process.models), head)
    assert places(process) == {**everywhere, "wallets": head - 2}
    assert rows(process)["wallets"] == [(organization_id, "USD", 1_000_000, 1)]


def test_a_stopped_model_is_tried_again_and_goes_on_when_it_is_mended(
    process: Process, projector: Projector
) -> None:
    organization_id = process.organization("1.00")
    FragileWallets.broken_at = 2
    project_all(projector)
    project_all(projector)
    assert place_of(process, "wallets").position == 1
    FragileWallets.broken_at = 0

    def mended() -> bool:
        projector.step()
        return failures(process) == {}

    wait_until(mended)
    assert rows(process)["wallets"] == [(organization_id, "USD", 1_000_000, 1)]


def test_a_failure_that_another_projector_has_overcome_is_not_reported(
    process: Process,
    installation: Installation,
    projector: Projector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process.organization("1.00")
    FragileWallets.broken_at = 2
    after_reading(monkeypatch, process.log, installation.process().projector.catch_up)
    projector.step()
    assert failures(process) == {}
    assert set(places(process).values()) == {process.log.head()}


@pytest.mark.any_database
def test_neither_the_log_lines_nor_the_report_show_what_was_being_written(
    process: Process, caplog: pytest.LogCaptureFixture
) -> None:
    canary = "what-somebody-has-paid-for"
    process.accounts.deposit(process.organization("1.00"), 1, canary, process.cause())
    with process.views.writing() as connection:
        process.transactions.project(connection, process.log.read(0, 100))
    project_all(process.projector)
    assert set(failures(process)) == {"transactions"}
    assert canary not in failures(process)["transactions"]
    assert "transactions stopped" in caplog.text
    assert canary not in caplog.text


UNREADABLE = {
    "an unknown topic": ("nobody.knows", b"{}"),
    "no topic": ("", b"{}"),
    "the topic of an aggregate": ("bulk_job", b"{}"),
    "a topic that is no event": ("builtins:dict", b"{}"),
    "broken JSON": ("wallet.opened", b'{"timestamp":'),
    "a missing field": ("wallet.opened", b"{}"),
    "bytes that are no text": ("wallet.opened", b'{"reference": "\xff"}'),
    "lists without end": ("wallet.opened", b"[" * 5_000),
}


@pytest.mark.any_database
@pytest.mark.parametrize("row", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_event_that_cannot_be_decoded_stops_every_model_before_it(
    process: Process, row: tuple[str, bytes]
) -> None:
    register(process, 3)
    position = write_row(process, uuid4().hex, 1, *row)
    register(process, 3)
    project_all(process.projector)
    assert set(places(process).values()) == {position - 1}
    assert set(failures(process)) == {model.name for model in process.models}
    assert all(f"position {position}" in reason for reason in failures(process).values())
    assert len(rows(process)["organizations"]) == 3


@pytest.mark.any_database
def test_what_no_model_uses_is_passed_unread_and_found_by_the_auditor(process: Process) -> None:
    register(process, 3)
    position = write_row(process, uuid4().hex, 1, "deposit.made", b"{}")
    project_all(process.projector)
    assert set(places(process).values()) == {position}
    assert failures(process) == {}
    assert belongs(process.log, place_of(process, "wallets"))
    (failure,) = check_log(process.log).failures
    assert failure.position == position


@sqlite_only("PostgreSQL has a type for ids and takes nothing else")
def test_a_stream_id_that_is_none_is_no_place_to_stand_at(process: Process) -> None:
    register(process, 3)
    position = write_row(process, "no uuid", 1, "deposit.made", b"{}")
    project_all(process.projector)
    assert set(places(process).values()) == {position - 1}
    assert set(failures(process)) == {model.name for model in process.models}


@pytest.mark.any_database
def test_all_models_go_on_when_an_event_can_be_decoded_again(process: Process) -> None:
    organization_id = process.organization("")
    (opened,) = Wallet.open(organization_id, "USD", process.cause()).collect_events()
    right = process.log.mapper.to_stored_event(opened)
    stream = wallet_id(organization_id).hex
    position = write_row(process, stream, 1, right.topic, right.state[:-1])
    project_all(process.projector)
    assert len(failures(process)) == len(process.models)
    mend = "UPDATE {table} SET state = ? WHERE {position} = ? RETURNING {position}"
    assert run_on_log(process, mend, (right.state, position)) == position

    def mended() -> bool:
        process.projector.step()
        return failures(process) == {}

    wait_until(mended)
    assert set(places(process).values()) == {position}
    assert rows(process)["wallets"] == [(organization_id, "USD", 0, 0)]


@pytest.mark.any_database
def test_a_projector_leaves_a_model_of_another_version_alone(process: Process) -> None:
    # A process of the old release runs on while `migrate` of the new one has rebuilt a model.
    register(process, 1)
    (model,) = (each for each in process.models if each.name == "organizations")
    with process.views.writing() as connection:
        process.positions.begin(connection, "organizations", model.version + 1, None)
    project_all(process.projector)
    assert place_of(process, "organizations").position == 0
    assert place_of(process, "wallets").position == 1
