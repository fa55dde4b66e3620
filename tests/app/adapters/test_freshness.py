"""Waiting for read models: no longer than they need, and never for ever."""

import time
from pathlib import Path

import pytest

from projections.engine.freshness import wait_until_projected
from tests.app.http.service import Service


@pytest.fixture
def service(tmp_path: Path) -> Service:
    made = Service(tmp_path)
    made.tenant()
    return made


def wait(service: Service, *names: str, wait_s: float = 0.25) -> bool:
    parts = service.container
    return wait_until_projected(parts.source, names, wait_s)


def test_who_stands_at_the_head_or_has_failed_is_not_waited_for_and_who_stands_still_a_little(
    service: Service,
) -> None:
    parts, started = service.container, time.monotonic()
    assert not wait(service, "wallets")
    assert time.monotonic() - started > 0.2
    with parts.views.writing() as connection:
        place = parts.positions.get(connection, "wallets")
        assert place is not None
        parts.positions.fail(connection, [place], "KeyError", parts.clock())
    started = time.monotonic()
    assert not wait(service, "wallets", wait_s=10)
    assert time.monotonic() - started < 5
    parts.projector.catch_up()
    assert wait(service, "transactions", "plans", wait_s=0)
    service.stop()
