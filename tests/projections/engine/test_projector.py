"""The projector writes each event once into each read model, whoever else does so, too."""

import subprocess
import sys
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from projections.audit.auditor import verify
from projections.engine.projector import BATCH_EVENTS_MAX
from tests.installation import Installation, Process
from tests.projections.histories import look_up
from tests.projections.looking import (
    after_reading,
    failures,
    place_of,
    places,
    projector_of,
    register,
    rows,
)


@pytest.mark.any_database
def test_the_log_is_projected_in_batches(process: Process) -> None:
    register(process, 2 * BATCH_EVENTS_MAX + 1)
    reached = []
    while process.projector.step():
        reached.append(set(places(process).values()))
    assert reached == [{BATCH_EVENTS_MAX}, {2 * BATCH_EVENTS_MAX}, {2 * BATCH_EVENTS_MAX + 1}]
    assert len(rows(process)["organizations"]) == 2 * BATCH_EVENTS_MAX + 1


@pytest.mark.any_database
@pytest.mark.parametrize("times", [1, 3])
def test_catching_up_waits_out_what_passes(
    process: Process, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    register(process, 1)
    trouble_for(process, monkeypatch, times)
    process.projector.catch_up()
    assert set(places(process).values()) == {1}


@pytest.mark.any_database
def test_catching_up_ends_when_the_trouble_does_not(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(process, 1)
    trouble_for(process, monkeypatch, 1_000)
    with pytest.raises(OperationalError):
        process.projector.catch_up()


def trouble_for(process: Process, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the database end the next transactions in a deadlock."""
    advance, left = process.positions.advance, [OperationalError("", {}, Exception())] * times

    def deadlocked(*args: Any) -> None:
        if left:
            raise left.pop()
        advance(*args)

    monkeypatch.setattr(process.positions, "advance", deadlocked)
    monkeypatch.setattr("projections.engine.projector.CATCH_UP_PAUSES_S", (0.0, 0.0, 0.0))


def test_a_model_that_is_behind_catches_up_while_the_others_stay_where_they_are(
    process: Process,
) -> None:
    process.organization()
    register(process, 2 * BATCH_EVENTS_MAX)
    projector = projector_of(process, process.wallets, process.clients)
    projector.catch_up()
    head, before = process.log.head(), rows(process, [process.wallets])
    with process.views.writing() as connection:
        process.positions.begin(connection, "api_clients", process.clients.version, None)
    while projector.step():
        assert place_of(process, "wallets").position == head
    assert place_of(process, "api_clients").position == head
    assert rows(process, [process.wallets]) == before


def test_a_projector_that_lost_a_race_stands_down_and_stops_nothing(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = installation.process(), installation.process()
    organization_id = slow.organization()
    look_up(slow, organization_id)
    slow.client(organization_id)
    after_reading(monkeypatch, slow.log, fast.projector.catch_up)
    assert slow.projector.step()
    assert failures(slow) == {}
    assert len(rows(slow)["transactions"]) == 2


def test_a_loser_does_not_undo_what_the_winner_has_written_since(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = installation.process(), installation.process()
    organization_id = slow.organization("1.00")

    def win() -> None:
        fast.projector.catch_up()
        look_up(fast, organization_id)
        fast.projector.catch_up()

    after_reading(monkeypatch, slow.log, win)
    slow.projector.step()
    assert set(places(slow).values()) == {slow.log.head()}
    with slow.views.reading() as connection:
        wallet = slow.wallets.get(connection, organization_id)
    assert wallet is not None
    assert wallet.balance_micros == 995_000


@pytest.mark.slow
def test_a_process_that_dies_between_rows_and_position_has_written_neither(
    installation: Installation, process: Process
) -> None:
    process.organization()
    url = installation.environment["DATABASE_URL"]
    command = [sys.executable, "-m", "tests.projections.dying_projector", url]
    died = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    assert (died.returncode, died.stdout) == (9, "rows are written\n"), died.stderr
    assert set(places(process).values()) == {0}
    assert set(map(len, rows(process).values())) == {0}
    process.projector.catch_up()
    assert verify(process.log, process.views, process.positions, process.models).ok
