"""Health of the lookups, and the probes."""

from pathlib import Path

import pytest

from app.adapters.circuit import FAILURES_MAX
from app.adapters.postgres import database as postgres_database
from app.adapters.postgres import log as postgres_log
from domain.lookups.ports import NumberFacts
from domain.provider_errors import Unavailable
from projections.models.transactions import Transactions
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service

HEALTH = "/number-lookup/health"


def test_lookups_that_can_be_served_are_healthy(service: Service) -> None:
    reply = service.client.get(HEALTH)
    assert reply.status_code == 200
    assert reply.json.keys() == {"ok", "timestamp"}
    assert reply.json["ok"] is True
    assert reply.json["timestamp"].endswith("Z")


def test_lookups_that_are_off_for_everybody_are_not(make_service: MakeService) -> None:
    reply = make_service(NUMBER_LOOKUP_ENABLED="false").client.get(HEALTH)
    assert (reply.status_code, reply.json["ok"]) == (503, False)


def test_without_its_log_nothing_is_healthy_but_the_process_lives(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pool in (postgres_log, postgres_database):
        monkeypatch.setattr(pool, "POOL_WAIT_S", 0.1)
    away = service.without_its_database(tmp_path).client
    reply = away.get(HEALTH)
    assert (reply.status_code, reply.json["ok"]) == (503, False)
    ready = away.get("/readyz")
    assert ready.status_code == 503
    assert ready.json == {
        "ok": False,
        "database": False,
        "migrated": False,
        "missing": ready.json["missing"],
        "failed_read_models": [],
        "signing_keys": True,
        "clock_offset_seconds": 0.0,
    }
    assert len(ready.json["missing"]) == 1
    assert away.get("/livez").status_code == 200


def test_an_open_circuit_is_unhealthy(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service(SANDBOX="false")
    tenant = service.tenant()

    def fail(*_: object) -> NumberFacts:
        raise Unavailable

    monkeypatch.setattr(service.container.bare_lookups[0], "look_up", fail)
    for n in range(FAILURES_MAX):
        assert service.client.get(HEALTH).status_code == 200
        assert tenant.look_up(f"+9715082459{n:02}").status_code == 503
    assert (service.client.get(HEALTH).status_code) == 503


def test_a_running_service_is_live_and_ready(service: Service) -> None:
    assert service.client.get("/livez").json == {"ok": True}
    reply = service.client.get("/readyz")
    assert reply.status_code == 200
    assert reply.json == {
        "ok": True,
        "database": True,
        "migrated": True,
        "missing": [],
        "failed_read_models": [],
        "signing_keys": True,
        "clock_offset_seconds": 0.0,
    }


def test_tables_of_another_version_are_not_ready(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    monkeypatch.setattr(Transactions, "version", Transactions.version + 1)
    reply = service.client.get("/readyz")
    assert (reply.status_code, reply.json["database"]) == (503, True)
    assert reply.json["migrated"] is False


def test_tables_that_are_missing_are_not_ready(make_service: MakeService) -> None:
    service = make_service()
    with service.container.views.writing() as connection:
        connection.exec_driver_sql("DROP TABLE follower_positions")
    reply = service.client.get("/readyz")
    assert (reply.status_code, reply.json["migrated"]) == (503, False)


def test_a_read_model_that_has_failed_is_named(make_service: MakeService) -> None:
    service = make_service()
    parts = service.container
    with parts.views.writing() as connection:
        place = parts.positions.get(connection, "jobs")
        assert place is not None
        parts.positions.fail(connection, place, "KeyError", parts.clock())
    reply = service.client.get("/readyz")
    assert (reply.status_code, reply.json["failed_read_models"]) == (200, ["jobs"])


@pytest.mark.parametrize("path", [HEALTH, "/livez", "/readyz"])
def test_probes_need_no_token_and_carry_an_id(service: Service, path: str) -> None:
    reply = service.client.get(path, headers={"Authorization": "Bearer nonsense"})
    assert reply.status_code == 200
    assert reply.headers["X-Request-Id"]
