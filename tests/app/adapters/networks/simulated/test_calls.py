"""Trouble with the database becomes an error of the port, and a failed call has no late effect."""

import logging
from datetime import datetime, timedelta
from typing import NoReturn

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from app.adapters.networks.simulated.inventory import Calls
from app.adapters.networks.simulated.network import SimulatedNetwork
from domain.provider_errors import OutcomeUnknown, Unavailable
from tests.app.adapters.networks.simulated.links import create
from tests.contracts.esim_networks import TIMEOUT_S, SimulatedSide, a_free_esim
from tests.log_lines import said_by

START = datetime.fromisoformat("2026-03-01T12:00:00+00:00")


class Ticking:
    """A clock that moves each time it is looked at."""

    def __init__(self, step_s: float) -> None:
        self._step = timedelta(seconds=step_s)
        self._now = START

    def __call__(self) -> datetime:
        self._now += self._step
        return self._now


def fail(*_: object) -> NoReturn:
    statement, message = "COMMIT", "disk I/O error"
    raise OperationalError(statement, {}, Exception(message))


def test_a_change_that_takes_longer_than_its_time_out_is_undone(
    side: SimulatedSide, network: SimulatedNetwork
) -> None:
    iccid = a_free_esim(network)
    with pytest.raises(OutcomeUnknown, match="time-out"):
        create(side.connect(clock=Ticking(TIMEOUT_S + 1)), iccid)
    assert network.find_endpoint(iccid, timeout_s=TIMEOUT_S) is None
    assert a_free_esim(network) == iccid


@pytest.mark.parametrize("kind", ["reading", "changing"])
def test_a_statement_that_fails_is_unavailable_and_a_commit_has_an_unknown_outcome(
    side: SimulatedSide, kind: str
) -> None:
    database = side.database()
    calls = Calls(database, side.clock)
    with pytest.raises(Unavailable), getattr(calls, kind)(TIMEOUT_S) as call:
        call.connection.exec_driver_sql("SELECT * FROM nowhere")
    event.listen(database.engine, "commit", fail)
    with pytest.raises(OutcomeUnknown, match="OperationalError"), calls.changing(TIMEOUT_S) as call:
        call.connection.exec_driver_sql("DELETE FROM simulated_esims")


def test_a_stock_that_cannot_be_filled_is_unavailable(side: SimulatedSide) -> None:
    """Looking at the stock changes nothing for its caller, whatever it writes."""
    database = side.database()
    network = SimulatedNetwork(database, side.clock, "seed", sandbox=False, wait=fail)
    event.listen(database.engine, "commit", fail)
    with pytest.raises(Unavailable):
        a_free_esim(network)


@pytest.mark.parametrize("table", ["simulated_esims", "simulated_endpoints"])
def test_no_error_and_no_log_line_names_an_esim(
    side: SimulatedSide, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    network = side.connect()
    iccid = a_free_esim(network)
    texts = []
    with caplog.at_level(logging.DEBUG):
        caplog.clear()
        create(network, iccid)
        network.lpa(iccid, timeout_s=TIMEOUT_S)
        with side.database().writing() as connection:
            connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO elsewhere")
        asks = (
            lambda: create(network, iccid),
            lambda: network.lpa(iccid, timeout_s=TIMEOUT_S),
            lambda: network.release_esim(iccid, timeout_s=TIMEOUT_S),
        )
        for ask in asks:
            with pytest.raises(Unavailable) as caught:
                ask()
            texts.append(str(caught.value))
    assert iccid[-10:] not in " ".join(texts) + caplog.text
    logged = said_by(caplog, "app.adapters.networks.simulated.inventory")
    assert logged == ["the tables of the simulated network: OperationalError"] * 3
