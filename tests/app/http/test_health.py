"""Health of the lookups, and the probes."""

import pytest

from app.adapters.circuit import FAILURES_MAX
from app.adapters.lookups.sandbox import UNAVAILABLE
from domain.provider_errors import Unavailable
from projections.models.transactions import Transactions
from tests.app.http.conftest import MakeService

HEALTH = "/number-lookup/health"


def test_an_open_circuit_of_a_remote_provider_is_unhealthy(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.adapters.lookups.offline.OfflineLookup.remote", True)
    service = make_service(SANDBOX="false")
    tenant = service.tenant()

    def fail(*_: object) -> None:
        raise Unavailable

    monkeypatch.setattr(service.container.bare_lookups[0], "look_up", fail)
    for n in range(FAILURES_MAX):
        assert service.client.get(HEALTH).status_code == 200
        assert tenant.look_up(f"+9715082459{n:02}").status_code == 503
    assert (service.client.get(HEALTH).status_code) == 503


def test_an_outage_of_the_sandbox_is_none_of_the_service(make_service: MakeService) -> None:
    service = make_service()
    tenant = service.tenant()
    for _ in range(2 * FAILURES_MAX):
        assert tenant.look_up(UNAVAILABLE).status_code == 503
    assert service.client.get(HEALTH).status_code == 200


def test_a_service_whose_tables_or_settings_are_not_its_own_is_not_ready(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    parts = service.container
    with parts.views.writing() as connection:
        place = parts.positions.get(connection, "jobs")
        parts.positions.fail(connection, [place], "KeyError", parts.clock())
    reply = service.client.get("/readyz")
    assert (reply.status_code, reply.json["failed_read_models"]) == (200, ["jobs"])
    with monkeypatch.context() as other:
        other.setattr(Transactions, "version", Transactions.version + 1)
        reply = service.client.get("/readyz")
        assert (reply.status_code, reply.json["database"]) == (503, True)
        assert reply.json["migrated"] is False
    with monkeypatch.context() as other:
        other.setattr(parts.shared_settings, "_is_alone", False)  # As beside a broker.
        parts.shared_settings.record({"CURRENCY": "EUR"}, parts.clock())
        reply = service.client.get("/readyz")
        assert "CURRENCY is USD here and EUR for all" in reply.json["missing"][0]
    with parts.views.writing() as connection:
        connection.exec_driver_sql("DROP TABLE follower_positions")
    reply = service.client.get("/readyz")
    assert (reply.status_code, reply.json["migrated"]) == (503, False)
