"""A small installation with a history, and a browser's session on its pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import NamedTuple
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.finance.access import Access
from app.finance.application import create_application
from projections.finance.figures import Figures
from tests.installation import Installation, Process, SetClock
from tests.projections.histories import DOWN
from tests.seeds import sqlite_seed

TODAY = date(2026, 3, 10)
NASTY = "=<b>Acme</b> & Sons"


class Shop(NamedTuple):
    """An installation whose history is known, and a session that has opened the pages."""

    process: Process
    acme: UUID
    other: UUID
    job: UUID
    browser: FlaskClient

    def get(self, path: str, status: int = 200) -> str:
        reply = self.browser.get(path, buffered=True)
        assert reply.status_code == status, reply.text
        return reply.text


def live(process: Process) -> tuple[UUID, UUID, UUID]:
    """Ten days of two organizations: deposits, lookups, a job with a refund, a correction."""
    clock = process.clock = SetClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    acme = process.organization("100.00", NASTY)
    other = process.organization("5.00", "Other")
    for number in range(8):
        clock.forward(days=1)
        process.look_up(acme, f"+1415555010{number}")
        process.look_up(other, f"+1415555020{number}")
    job = process.create_job(acme, ["+14155550109", DOWN])
    process.finish_job(job)
    process.accounts.move("adjustment", acme, -250_000, "c-1", process.cause(), reason="=1+1")
    process.projector.catch_up()
    return acme, other, job


@contextmanager
def pages_of(process: Process, access: Access) -> Iterator[Flask]:
    """The pages of an installation, whose address nobody has opened yet."""
    figures = Figures(process.open_finance())
    yield create_application(figures, access, lambda: TODAY, "USD")
    figures.database.close()


@contextmanager
def browsing(process: Process) -> Iterator[FlaskClient]:
    """A session with the address opened."""
    access = Access(8090)
    with pages_of(process, access) as app:
        browser = app.test_client()
        assert browser.get(f"/open/{access.token}").status_code == 303
        yield browser


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    cost = {"COST_PER_LOOKUP": "offline=0.001"}
    installed = Installation(tmp_path_factory.mktemp("shop"), like=sqlite_seed(), **cost)
    process = installed.process()
    lived = live(process)
    with browsing(process) as browser:
        yield Shop(process, *lived, browser)
    installed.close()
