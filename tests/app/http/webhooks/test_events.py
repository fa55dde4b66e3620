"""Events over HTTP: all that is told, in order, with the bodies and ids of webhooks."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from app.http.webhooks.events import cursor_at
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.app.http.webhooks.test_webhooks import WEBHOOKS, plan

pytestmark = pytest.mark.each_database

EVENTS = "/v1/events"
NUMBER = "+14155552671"


@pytest.fixture
def tenant(service: Service) -> Tenant:
    return service.tenant(balance="20.00")


def read(tenant: Tenant, **query: object) -> Any:
    tenant.service.container.projector.catch_up()
    reply = tenant.get(EVENTS, query_string=query)
    assert reply.status_code == 200, reply.text
    return reply.json["data"]


def pages(tenant: Tenant, **query: object) -> Iterator[Any]:
    page = read(tenant, **query)
    yield page
    while page["has_more"]:
        page = read(tenant, **query, after=page["next"])
        yield page


def types(page: Any) -> list[str]:
    return [each["body"]["type"] for each in page["data"]]


def test_an_event_has_the_body_and_the_id_that_an_endpoint_is_told(
    service: Service, tenant: Tenant
) -> None:
    parts, first = service.container, tenant.webhook()
    second = tenant.webhook()
    tenant.open("PATCH", "/v1/account", json={"low_balance_threshold": "10.00"})
    tenant.deposit("5.00")
    tenant.open("PATCH", "/v1/account", json={"low_balance_threshold": "100.00"})
    tenant.post(f"{WEBHOOKS}/{first}/test")
    plan(parts)
    for webhook_id, missing in ((first, 1), (second, 2)):  # The first deposit, and the test.
        told = {each["id"]: each for each in tenant.deliveries(webhook_id)}
        shown = {each["id"]: each["body"] for each in read(tenant, webhook_id=webhook_id)["data"]}
        assert told.keys() <= shown.keys()
        assert len(shown) == len(told) + missing
        for delivery_id in told:
            one = tenant.get(f"{WEBHOOKS}/{webhook_id}/deliveries/{delivery_id}").json["data"]
            kept = parts.webhook_deliveries.get(tenant.id, UUID(webhook_id), UUID(delivery_id))
            assert json.loads(kept.body) == one["body"] == shown[delivery_id]
    tenant.open("DELETE", f"{WEBHOOKS}/{second}")
    assert {each["id"] for each in read(tenant, webhook_id=second)["data"]} >= told.keys()


def test_a_cursor_is_of_one_organization_and_nobody_makes_one_up(
    service: Service, tenant: Tenant
) -> None:
    rival = service.tenant()
    cursor = read(tenant)["next"]
    swapped = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    hostile = ("0", "1", "null", "é" * 20, "A" * 20, "A" * 21, "%00", cursor + "=")
    for text in (*hostile, swapped, cursor.lower(), cursor_at(rival.id, 1)):
        reply = tenant.get(EVENTS, query_string={"after": text})
        assert [*fields_of(reply)] == ["after"], text
    assert [*fields_of(rival.get(EVENTS, query_string={"after": cursor}))] == ["after"]
    for position in (-(2**63), 2**63 - 1):  # Made up by one who has read this.
        assert read(tenant, after=cursor_at(tenant.id, position))["has_more"] is False
    twice = tenant.get(f"{EVENTS}?after={cursor}&after={cursor}")
    assert fields_of(twice) == {"after": ["Must be given once."]}


def test_until_the_log_was_read_once_nobody_is_told_that_nothing_happened(
    make_service: MakeService,
) -> None:
    service = make_service()
    tenant, parts = service.tenant(), service.container
    with parts.views.writing() as connection:
        mine = parts.positions.rows.c.name == parts.webhook_messages.name
        connection.execute(parts.positions.rows.delete().where(mine))
    reply = tenant.get(EVENTS)
    assert (reply.status_code, code_of(reply)) == (503, "SERVICE_UNAVAILABLE")


def test_entries_of_the_wallet_are_among_the_events_in_order_and_nothing_splits_a_position(
    tenant: Tenant,
) -> None:
    tenant.open("PATCH", "/v1/account", json={"low_balance_threshold": "19.999"})
    for _ in range(3):
        assert tenant.post("/number-lookup", json={"phone_number": NUMBER}).status_code == 200
    tenant.deposit("5.00")
    tenant.service.container.adjust(tenant.id, -1_000_000)
    every = read(tenant)
    assert types(every) == [
        *("wallet.deposited", "wallet.charged", "wallet.low_balance", "wallet.charged"),
        *("wallet.charged", "wallet.deposited", "wallet.adjusted"),
    ]
    entries = [each["body"]["data"] for each in every["data"] if "sequence" in each["body"]["data"]]
    assert [each["sequence"] for each in entries] == [1, 2, 3, 4, 5, 6]
    assert entries[-1]["direction"] == "debit"
    assert entries[-1]["balance"] == tenant.get("/v1/wallet").json["data"]["balance"]
    for limit in (1, 2, 3, 6):
        found = [*pages(tenant, limit=limit)]
        assert [each for page in found for each in page["data"]] == every["data"], limit
        assert max(len(page["data"]) for page in found) <= limit + 1
    assert len({each["id"] for each in every["data"]}) == len(every["data"])
    positions = [each["body"]["data"]["position"] for each in every["data"]]
    for after in (0, *positions):
        later = read(tenant, after=cursor_at(tenant.id, after), types="wallet.charged,link.ended")
        behind = [each for each in every["data"] if each["body"]["data"]["position"] > after]
        wanted = [each for each in behind if each["body"]["type"] == "wallet.charged"]
        assert later["data"] == wanted


def test_a_type_that_must_be_named_is_sent_with_the_id_of_its_event(
    service: Service, tenant: Tenant
) -> None:
    names, parts = ["wallet.charged", "wallet.low_balance"], service.container
    named = tenant.webhook(events=names)
    tenant.open("PATCH", "/v1/account", json={"low_balance_threshold": "20.00"})
    assert tenant.post("/number-lookup", json={"phone_number": NUMBER}).status_code == 200
    plan(parts)
    told = {each["id"]: each["type"] for each in tenant.deliveries(named)}
    shown = read(tenant, webhook_id=named, types=",".join(names))["data"]
    assert told == {each["id"]: each["body"]["type"] for each in shown}
    assert sorted(told.values()) == names


def test_what_one_table_knows_already_waits_for_the_other(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    tenant, parts = service.tenant(), service.container
    first = read(tenant)
    assert types(first) == ["wallet.deposited"]
    tenant.deposit("5.00")
    parts.projector.catch_up()
    known = parts.positions.all(parts.views)
    for name in (parts.webhook_messages.name, parts.transactions.name):
        behind = {**known, name: replace(known[name], position=0)}
        monkeypatch.setattr(parts.positions, "all", lambda _, behind=behind: behind)
        page = tenant.get(EVENTS, query_string={"after": first["next"]}).json["data"]
        assert page == {"data": [], "next": first["next"], "has_more": False}, name
