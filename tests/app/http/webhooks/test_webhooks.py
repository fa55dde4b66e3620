"""Webhooks over HTTP: endpoints, their secrets, tests and deliveries."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from app.bootstrap.container import Container
from app.bootstrap.known_keys import record_keys
from app.security import keys
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, fields_of

pytestmark = pytest.mark.each_database

URL = "https://hooks.example/told"
WEBHOOKS = "/v1/webhooks"


def create(tenant: Tenant, key: str = "", **body: Any) -> Any:
    return tenant.post(WEBHOOKS, json={"url": URL, **body}, key=key)


def test_a_repeat_shows_that_the_endpoint_was_deleted(tenant: Tenant) -> None:
    made = create(tenant, "a").json["data"]
    tenant.open("DELETE", f"{WEBHOOKS}/{made['id']}")
    reply = create(tenant, "a")
    assert reply.json["data"] == made | {"enabled": False, "disabled_reason": "asked"}


def due(tenant: Tenant) -> UUID:
    """Return an endpoint that has a delivery to be sent."""
    parts, webhook_id = tenant.service.container, tenant.webhook()
    plan(parts)
    tenant.post(f"{WEBHOOKS}/{webhook_id}/test")
    plan(parts)
    return UUID(webhook_id)


def plan(parts: Container) -> None:
    parts.projector.catch_up()
    while parts.webhook_planner.step():
        pass


def forget_key(parts: Container) -> None:
    """Be as a process that has not read it yet."""
    for name in ("webhook_key", "webhook_signer", "webhook_work", "webhooks"):
        parts.__dict__.pop(name, None)


def test_without_the_key_of_webhooks_nothing_is_registered_or_rotated(
    make_service: MakeService,
) -> None:
    service = make_service()
    tenant = service.tenant()
    webhook_id = tenant.webhook()
    (service.container.settings.signing_keys / "webhook-key").unlink()
    forget_key(service.container)
    assert create(tenant).status_code == 503
    assert tenant.post(f"{WEBHOOKS}/{webhook_id}/rotate-secret").status_code == 503
    assert [each["id"] for each in tenant.get(WEBHOOKS).json["data"]] == [webhook_id]
    endpoint = service.container.webhooks.get(tenant.id, UUID(webhook_id))
    assert [each.number for each in endpoint.secrets] == [1]


def test_a_worker_without_the_key_holds_nothing_back_from_one_that_has_it(
    make_service: MakeService, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service()
    tenant, parts = service.tenant(), service.container
    webhook_id, key = due(tenant), parts.settings.signing_keys / "webhook-key"
    value = key.read_bytes()
    key.unlink()
    forget_key(parts)
    for _ in range(5):
        parts.webhook_work.deliver(tenant.id, webhook_id)
    assert caplog.text.count("no webhook is sent") == 1
    assert service.sender.to("https://hooks.example/") == []
    key.write_bytes(value)
    parts.webhook_work.deliver(tenant.id, webhook_id)
    assert [each["status"] for each in tenant.deliveries(str(webhook_id))] == ["delivered"]


def test_a_process_with_another_key_signs_nothing_and_shows_no_secret(
    make_service: MakeService, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    tenant, parts = service.tenant(), service.container
    record_keys(parts)
    webhook_id, key = due(tenant), parts.settings.signing_keys / "webhook-key"
    value = key.read_bytes()
    key.write_bytes(b"0" * 64)
    forget_key(parts)
    for _ in range(3):
        parts.webhook_work.deliver(tenant.id, webhook_id)
        assert create(tenant).status_code == 503
        assert tenant.post(f"{WEBHOOKS}/{webhook_id}/rotate-secret").status_code == 503
    assert caplog.text.count("is not the one with which `web` began last; no webhook") == 1
    assert service.sender.to("https://hooks.example/") == []
    assert len(tenant.get(WEBHOOKS).json["data"]) == 1
    key.write_bytes(value)
    parts.webhook_work.deliver(tenant.id, webhook_id)
    assert service.sender.to("https://hooks.example/") == [], "a comparison is believed"
    monkeypatch.setattr(keys, "BELIEVED_S", 0)
    parts.webhook_work.deliver(tenant.id, webhook_id)
    assert [each["status"] for each in tenant.deliveries(str(webhook_id))] == ["delivered"]


def test_what_failed_since_a_moment_is_asked_for_in_any_zone(tenant: Tenant) -> None:
    path = f"{WEBHOOKS}/{tenant.webhook()}/redeliver"
    same = ("2026-01-01", "2026-01-01T02:00:00+02:00", "2025-12-31T22:57:57-01:02:03")
    for index, since in enumerate(same):
        reply = tenant.post(path, json={"since": since}, key="again")
        assert (reply.status_code, reply.json["data"]["delivery_ids"]) == (202, [])
        assert ("Idempotency-Replayed" in reply.headers) == bool(index), since
    for since in ("0001-01-01", "9999-12-31T23:59:59.999999Z"):
        assert tenant.post(path, json={"since": since}).status_code == 202
    for since in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-01", None):
        assert [*fields_of(tenant.post(path, json={"since": since}))] == ["since"]


def test_nothing_is_asked_for_again_while_the_planner_is_behind(still: Service) -> None:
    """It would seem to have failed, so who asks until nothing is left would ask without end."""
    parts, tenant, body = still.container, still.tenant(), {"since": "2026-01-01"}
    path = f"{WEBHOOKS}/{due(tenant)}/redeliver"
    asked = [tenant.post(path, json=body, key=key).status_code for key in ("a", "a", "b")]
    plan(parts)
    assert [*asked, tenant.post(path, json=body).status_code] == [202, 202, 503, 202]


def test_a_delivery_that_a_reply_has_named_is_not_called_unknown_before_it_is_planned(
    still: Service,
) -> None:
    parts, tenant = still.container, still.tenant()
    one = f"{WEBHOOKS}/{due(tenant)}"
    named = tenant.post(f"{one}/test").json["data"]["delivery_id"]
    paths = [f"{one}/deliveries/{each}" for each in (named, uuid4())]
    assert [tenant.get(each).status_code for each in paths] == [503, 503]
    plan(parts)
    assert [tenant.get(each).status_code for each in paths] == [200, 404]
