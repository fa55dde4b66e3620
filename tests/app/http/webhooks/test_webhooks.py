"""Webhooks over HTTP: endpoints, their secrets, tests and deliveries."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from standardwebhooks import Webhook

from app.bootstrap.known_keys import note_keys
from app.security import keys
from domain.webhooks.destination import NOT_HTTPS, NOT_PUBLIC, WITH_USER
from domain.webhooks.messages import TYPES
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.seeds import sqlite_seed
from tests.support.providers.server import FaultKind, ScriptedServer

URL = "https://hooks.example/told"
WEBHOOKS = "/v1/webhooks"
KEY = {"Idempotency-Key": "first"}


@pytest.fixture
def tenant(service: Service) -> Tenant:
    return service.tenant()


def create(tenant: Tenant, key: str = "", **body: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return tenant.post(WEBHOOKS, json={"url": URL, **body}, headers=headers)


def read(tenant: Tenant, webhook_id: str) -> Any:
    return tenant.get(f"{WEBHOOKS}/{webhook_id}").json["data"]


def deliveries(tenant: Tenant, webhook_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tenant.get(f"{WEBHOOKS}/{webhook_id}/deliveries").json["data"][
        "data"
    ]
    return found


def until_delivered(tenant: Tenant, webhook_id: str, count: int) -> None:
    """Wait until each delivery was accepted, and the sum of their attempts is right."""

    def is_so() -> bool:
        found = deliveries(tenant, webhook_id)
        done = all(each["status"] == "delivered" for each in found)
        return done and sum(each["attempts"] for each in found) == count

    tenant.service.until(is_so)


@pytest.mark.any_database
def test_an_endpoint_is_registered_and_its_secret_shown_once(tenant: Tenant) -> None:
    reply = create(tenant, events=["link.activated"], description="Production")
    assert reply.status_code == 201
    made = reply.json["data"]
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert reply.headers["Location"].endswith(f"{WEBHOOKS}/{made['id']}")
    assert {name: made[name] for name in ("url", "events", "description", "enabled")} == {
        "url": URL,
        "events": ["link.activated"],
        "description": "Production",
        "enabled": True,
    }
    assert read(tenant, made["id"]) == made
    assert tenant.get(WEBHOOKS).json["data"] == [made]
    assert secret not in tenant.get(WEBHOOKS).text


@pytest.mark.any_database
def test_without_types_it_is_told_all(tenant: Tenant) -> None:
    for body in ({}, {"events": None}):
        assert create(tenant, **body).json["data"]["events"] is None


@pytest.mark.any_database
def test_an_organization_has_ten_endpoints(tenant: Tenant) -> None:
    made = [tenant.webhook(f"{URL}/{each}") for each in range(10)]
    refused = create(tenant)
    assert (refused.status_code, code_of(refused)) == (409, "WEBHOOK_LIMIT")
    assert refused.json["error"]["details"] == {"retryable": False}
    assert [each["id"] for each in tenant.get(WEBHOOKS).json["data"]] == made
    assert tenant.open("DELETE", f"{WEBHOOKS}/{made[3]}").status_code == 200
    assert create(tenant).status_code == 201


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("body", "field", "why"),
    [
        ({"url": "http://hooks.example/"}, "url", NOT_HTTPS),
        ({"url": "https://user:pw@hooks.example/"}, "url", WITH_USER),
        ({"url": "https://169.254.169.254/latest"}, "url", NOT_PUBLIC),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "url", NOT_PUBLIC),
        ({"url": None}, "url", "Field may not be null."),
        ({"url": 7}, "url", "Not a valid string."),
        ({"events": []}, "events", "at least one"),
        ({"events": "link.activated"}, "events", "Not a valid list."),
        ({"events": ["link.activated", "link.flown"]}, "events.1", "no type"),
        ({"events": ["webhook.test"]}, "events.0", "no type"),
        ({"events": ["link.ended", "link.ended"]}, "events.1", "already"),
        ({"events": ["link.activated"] * 99}, "events.", "already"),
        ({"description": "x" * 256}, "description", "255"),
        ({"description": "a\nb"}, "description", "control"),
        ({"colour": "red"}, "colour", "Unknown field."),
    ],
)
def test_bad_input_names_the_field(
    tenant: Tenant, body: dict[str, Any], field: str, why: str
) -> None:
    webhook_id = tenant.webhook()
    for reply in (
        create(tenant, **body),
        tenant.open("PATCH", f"{WEBHOOKS}/{webhook_id}", json=body),
    ):
        told = fields_of(reply)
        (name,) = told
        assert name.startswith(field)
        assert why in told[name][0]
        assert "user:pw" not in reply.text
    assert len(tenant.get(WEBHOOKS).json["data"]) == 1


@pytest.mark.any_database
def test_a_missing_url_is_named(tenant: Tenant) -> None:
    assert [*fields_of(tenant.post(WEBHOOKS, json={}))] == ["url"]


@pytest.mark.any_database
@pytest.mark.parametrize("value", ["true", 1, None])
def test_enabled_is_true_or_false(tenant: Tenant, value: object) -> None:
    path = f"{WEBHOOKS}/{tenant.webhook()}"
    assert [*fields_of(tenant.open("PATCH", path, json={"enabled": value}))] == ["enabled"]


@pytest.mark.any_database
def test_a_change_leaves_the_rest_as_it_is(tenant: Tenant) -> None:
    webhook_id = tenant.webhook(events=["job.finished"], description="one")
    path = f"{WEBHOOKS}/{webhook_id}"
    first = read(tenant, webhook_id)
    for change in (
        {},
        {"url": f"{URL}/new"},
        {"events": None},
        {"description": None},
        {"enabled": False},
        {"enabled": True},
    ):
        first |= change
        first["disabled_reason"] = None if first["enabled"] else "asked"
        changed = tenant.open("PATCH", path, json=change)
        assert (changed.status_code, changed.json["data"]) == (200, first)
        assert read(tenant, webhook_id) == first


@pytest.mark.any_database
def test_a_deleted_endpoint_is_gone_and_may_be_deleted_again(tenant: Tenant) -> None:
    webhook_id = tenant.webhook()
    path = f"{WEBHOOKS}/{webhook_id}"
    for _ in range(2):
        reply = tenant.open("DELETE", path)
        assert (reply.status_code, reply.json["data"]) == (200, {"id": webhook_id, "deleted": True})
    assert tenant.get(WEBHOOKS).json["data"] == []
    for method, more in (
        ("GET", ""),
        ("PATCH", ""),
        ("POST", "/rotate-secret"),
        ("POST", "/test"),
        ("GET", "/deliveries"),
    ):
        assert tenant.open(method, f"{path}{more}").status_code == 404, more


@pytest.mark.any_database
def test_a_body_that_cannot_be_read_deletes_nothing(tenant: Tenant) -> None:
    webhook_id = tenant.webhook()
    path = f"{WEBHOOKS}/{webhook_id}"
    reply = tenant.open("DELETE", path, data=b"{", content_type="application/json")
    assert reply.status_code == 400
    assert read(tenant, webhook_id)["enabled"]


@pytest.mark.any_database
def test_a_lost_reply_of_a_creation_is_told_again_with_its_secret(tenant: Tenant) -> None:
    first = create(tenant, key="k-1")
    again = create(tenant, key="k-1")
    assert "Idempotency-Replayed" not in first.headers
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert again.json["data"] == first.json["data"]
    assert len(tenant.get(WEBHOOKS).json["data"]) == 1
    other = create(tenant, key="k-1", description="other")
    assert (other.status_code, code_of(other)) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert create(tenant, key="\u00e4").status_code == 422


def test_twelve_twins_register_one_endpoint_and_rotate_once(tenant: Tenant) -> None:
    with ThreadPoolExecutor(12) as threads:
        made = [*threads.map(lambda _: create(tenant, key="twins"), range(12))]
        assert {reply.status_code for reply in made} == {201}
        (first, *others) = (reply.json["data"] for reply in made)
        assert others == [first] * 11
        assert sum("Idempotency-Replayed" not in reply.headers for reply in made) == 1
        path = f"{WEBHOOKS}/{first['id']}/rotate-secret"
        rotated = [*threads.map(lambda _: tenant.post(path, headers=KEY), range(12))]
    assert len({reply.json["data"]["secret"] for reply in rotated}) == 1
    assert len(tenant.get(WEBHOOKS).json["data"]) == 1


def test_of_many_at_once_ten_are_registered(tenant: Tenant) -> None:
    with ThreadPoolExecutor(15) as threads:
        made = [*threads.map(lambda number: create(tenant, url=f"{URL}/{number}"), range(15))]
    statuses = Counter(reply.status_code for reply in made)
    assert statuses[201] == len(tenant.get(WEBHOOKS).json["data"]) == 10
    assert statuses[409] == 5


@pytest.mark.any_database
def test_a_rotation_gives_another_secret_once_for_a_key(tenant: Tenant) -> None:
    made = create(tenant).json["data"]
    path = f"{WEBHOOKS}/{made['id']}/rotate-secret"
    first = tenant.post(path, headers=KEY)
    again = tenant.post(path, headers=KEY)
    later = tenant.post(path)
    assert first.json["data"]["secret"] == again.json["data"]["secret"]
    assert again.headers["Idempotency-Replayed"] == "true"
    secrets = {made["secret"], first.json["data"]["secret"], later.json["data"]["secret"]}
    assert len(secrets) == 3
    # What was said under a key stays said, whatever came later.
    assert tenant.post(path, headers=KEY).json["data"] == first.json["data"]
    other = tenant.webhook(f"{URL}/other")
    reused = tenant.post(f"{WEBHOOKS}/{other}/rotate-secret", headers=KEY)
    assert code_of(reused) == "IDEMPOTENCY_KEY_REUSED"


@pytest.mark.any_database
def test_a_test_is_told_signed_and_listed(tenant: Tenant) -> None:
    url = f"{URL}/{tenant.id}"
    made = create(tenant, url=url, events=["job.finished"]).json["data"]
    reply = tenant.post(f"{WEBHOOKS}/{made['id']}/test")
    assert reply.status_code == 202
    assert reply.headers["Location"].endswith(f"{made['id']}/deliveries")
    until_delivered(tenant, made["id"], 1)
    (told,) = tenant.service.sender.to(url)
    body = Webhook(made["secret"]).verify(told.body, dict(told.headers))
    assert (body["type"], body["data"]["webhook_id"]) == ("webhook.test", made["id"])
    (listed,) = deliveries(tenant, made["id"])
    assert listed["id"] == told.headers["webhook-id"] == reply.json["data"]["delivery_id"]
    assert listed["type"] == "webhook.test"
    assert listed["position"] == body["data"]["position"]
    assert (listed["attempts"], listed["response_status"], listed["error"]) == (1, 200, None)
    assert listed["next_attempt_at"] is None
    assert listed["attempted_at"] >= listed["created_at"]


@pytest.mark.any_database
def test_after_a_rotation_both_secrets_verify(tenant: Tenant) -> None:
    url = f"{URL}/{tenant.id}"
    made = create(tenant, url=url).json["data"]
    rotated = tenant.post(f"{WEBHOOKS}/{made['id']}/rotate-secret").json["data"]
    tenant.test_delivery(made["id"])
    until_delivered(tenant, made["id"], 1)
    (told,) = tenant.service.sender.to(url)
    for secret in (made["secret"], rotated["secret"]):
        assert Webhook(secret).verify(told.body, dict(told.headers))


def test_what_was_told_is_told_again_under_its_id_once_for_a_key(tenant: Tenant) -> None:
    url = f"{URL}/{tenant.id}"
    webhook_id = tenant.webhook(url)
    told = tenant.test_delivery(webhook_id)
    until_delivered(tenant, webhook_id, 1)
    path = f"{WEBHOOKS}/{webhook_id}/deliveries/{told}/redeliver"
    first, again = tenant.post(path, headers=KEY), tenant.post(path, headers=KEY)
    assert first.status_code == again.status_code == 202
    assert again.headers["Idempotency-Replayed"] == "true"
    until_delivered(tenant, webhook_id, 2)
    one, two = tenant.service.sender.to(url)
    assert one.headers["webhook-id"] == two.headers["webhook-id"] == told
    assert one.body == two.body
    missing = path.replace(told, webhook_id)
    assert tenant.post(missing).status_code == 404


@pytest.mark.any_database
def test_a_disabled_endpoint_is_told_nothing_when_asked(tenant: Tenant) -> None:
    webhook_id = tenant.webhook()
    told = tenant.test_delivery(webhook_id)
    until_delivered(tenant, webhook_id, 1)
    path = f"{WEBHOOKS}/{webhook_id}"
    tenant.open("PATCH", path, json={"enabled": False})
    for more in ("test", f"deliveries/{told}/redeliver"):
        reply = tenant.post(f"{path}/{more}")
        assert (reply.status_code, code_of(reply)) == (409, "WEBHOOK_DISABLED")


def test_what_happens_is_told_to_those_who_asked_for_it(tenant: Tenant) -> None:
    url = f"{URL}/{tenant.id}"
    webhook_id = tenant.webhook(url, events=["wallet.deposited", "job.finished"])
    silent = tenant.webhook(f"{url}/silent", events=["link.activated"])
    tenant.deposit("3.00")
    job = tenant.finished_job(["+4915112345678"])
    until_delivered(tenant, webhook_id, 2)
    told = {json.loads(each.body)["type"]: each for each in tenant.service.sender.to(url)}
    deposited, finished = told["wallet.deposited"], told["job.finished"]
    assert b'"amount":"3.00"' in deposited.body
    assert job["job_id"].encode() in finished.body
    assert b"4915112345678" not in finished.body
    assert deliveries(tenant, silent) == []
    page = tenant.get(f"{WEBHOOKS}/{webhook_id}/deliveries", query_string={"per_page": 1})
    assert page.json["data"]["meta"]["total"] == 2
    assert len(page.json["data"]["data"]) == 1


@pytest.mark.any_database
def test_every_type_can_be_asked_for(tenant: Tenant) -> None:
    assert create(tenant, events=[*TYPES]).json["data"]["events"] == [*TYPES]


@pytest.mark.any_database
def test_the_scope_is_needed(service: Service) -> None:
    without = service.tenant(scopes=["links", "wallet"])
    assert code_of(without.get(WEBHOOKS)) == "INSUFFICIENT_SCOPE"
    assert service.tenant(scopes=["webhooks"]).get(WEBHOOKS).status_code == 200


def test_for_development_this_machine_may_be_told(make_service: MakeService) -> None:
    tenant = make_service(WEBHOOKS_ALLOW_PRIVATE="true").tenant()
    assert create(tenant, url="http://127.0.0.1:9000/told").status_code == 201
    assert [*fields_of(create(tenant, url="http://user@127.0.0.1/"))] == ["url"]


def test_without_the_key_of_webhooks_nothing_is_registered_or_rotated(
    make_service: MakeService,
) -> None:
    service = make_service()
    tenant = service.tenant()
    webhook_id = tenant.webhook()
    (service.container.settings.signing_keys / "webhook-key").unlink()
    for name in ("webhook_key", "webhook_signer", "webhooks"):
        del service.container.__dict__[name]  # As in a process that has not read it yet.
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
    webhook_id = UUID(tenant.webhook())
    parts.projector.catch_up()
    parts.webhook_planner.step()
    tenant.post(f"{WEBHOOKS}/{webhook_id}/test")
    parts.projector.catch_up()
    while parts.webhook_planner.step():
        pass
    key = parts.settings.signing_keys / "webhook-key"
    value = key.read_bytes()
    key.unlink()
    for name in ("webhook_key", "webhook_signer", "webhooks"):
        del parts.__dict__[name]  # As in a process that has not read it yet.
    for _ in range(5):
        parts.webhook_work.tell(tenant.id, webhook_id)
    assert caplog.text.count("no webhook is sent") == 1
    assert service.sender.to("https://hooks.example/") == []
    key.write_bytes(value)
    parts.webhook_work.tell(tenant.id, webhook_id)
    assert [each["status"] for each in deliveries(tenant, str(webhook_id))] == ["delivered"]


def test_a_process_with_another_key_signs_nothing_and_shows_no_secret(
    make_service: MakeService, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    tenant, parts = service.tenant(), service.container
    note_keys(parts)
    webhook_id = UUID(tenant.webhook())
    parts.projector.catch_up()
    parts.webhook_planner.step()
    tenant.post(f"{WEBHOOKS}/{webhook_id}/test")
    parts.projector.catch_up()
    while parts.webhook_planner.step():
        pass
    key = parts.settings.signing_keys / "webhook-key"
    value = key.read_bytes()
    key.write_bytes(b"0" * 64)
    for name in ("webhook_key", "webhook_signer", "webhook_work", "webhooks"):
        parts.__dict__.pop(name, None)  # As in a process with a directory of its own.
    for _ in range(3):
        parts.webhook_work.tell(tenant.id, webhook_id)
        assert create(tenant).status_code == 503
        assert tenant.post(f"{WEBHOOKS}/{webhook_id}/rotate-secret").status_code == 503
    assert caplog.text.count("is not the one with which `web` began last; no webhook") == 1
    assert service.sender.to("https://hooks.example/") == []
    assert len(tenant.get(WEBHOOKS).json["data"]) == 1
    key.write_bytes(value)
    parts.webhook_work.tell(tenant.id, webhook_id)
    assert service.sender.to("https://hooks.example/") == [], "a comparison is believed"
    monkeypatch.setattr(keys, "BELIEVED_S", 0)
    parts.webhook_work.tell(tenant.id, webhook_id)
    assert [each["status"] for each in deliveries(tenant, str(webhook_id))] == ["delivered"]


class Receiver(ScriptedServer):
    """Takes webhooks over a real socket."""

    def __init__(self) -> None:
        super().__init__()
        self.route("take", "POST", "/told", lambda _: (200, None, {}))


def test_a_receiver_verifies_what_comes_over_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the sender, planner and workers of the product, and a fault of the receiver."""
    sqlite_seed().copy(tmp_path)
    service = Service(tmp_path, WEBHOOKS_ALLOW_PRIVATE="true")
    monkeypatch.delattr(service.container, "webhook_sender")  # The one of tests sends nothing.
    service.start()
    try:
        with Receiver() as receiver:
            tenant = service.tenant()
            made = create(tenant, url=f"{receiver.url}/told").json["data"]
            receiver.fault(FaultKind.RESET_AFTER)  # It has taken it, and nobody knows.
            tenant.test_delivery(made["id"])
            service.until(lambda: bool(deliveries(tenant, made["id"])[0]["error"]))
            (lost,) = deliveries(tenant, made["id"])
            assert (lost["status"], lost["error"]) == ("failed", "connection_lost")
            path = f"{WEBHOOKS}/{made['id']}/deliveries/{lost['id']}/redeliver"
            assert tenant.post(path).status_code == 202
            until_delivered(tenant, made["id"], 2)
            first, again = receiver.asked("take")
            assert first.headers["webhook-id"] == again.headers["webhook-id"] == lost["id"]
            for each in (first, again):
                told = Webhook(made["secret"]).verify(each.body, each.headers)
                assert told["data"]["webhook_id"] == made["id"]
    finally:
        service.stop()
