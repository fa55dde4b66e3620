"""An audit names an endpoint outside the list of its organization, and an eleventh one."""

from uuid import UUID, uuid4

import pytest

from domain.log.aggregate import Event
from domain.webhooks.commands import Draft
from domain.webhooks.endpoint import WebhookEndpoint, WebhookList, webhook_list_id
from projections.audit.auditor import check_log
from tests.golden.building import SEALED
from tests.installation import Process
from tests.projections.histories import forge


@pytest.fixture
def owner(process: Process) -> UUID:
    made = process.organization()
    for _ in range(10):
        register(process, made)
    return made


def register(process: Process, owner: UUID) -> UUID:
    draft = Draft(owner, "https://a.example", None, None, None)
    return process.webhooks.register(draft, process.cause())[0].id


def registered(process: Process, owner: UUID) -> WebhookEndpoint:
    facts = {"organization_id": owner, "personal": SEALED, "events": None, "key_id": "k"}
    return WebhookEndpoint.begin(WebhookEndpoint.Registered, process.cause(), uuid4(), **facts)


def listed(process: Process, owner: UUID) -> WebhookList:
    return process.log.get(WebhookList, webhook_list_id(owner))


def events_of(*aggregates: WebhookEndpoint | WebhookList) -> list[Event]:
    return [each for aggregate in aggregates for each in aggregate.collect_events()]  # type: ignore[misc]  # They are ours.


def found(process: Process) -> list[str]:
    return [each.reason for each in check_log(process.log).failures]


def test_endpoints_that_come_and_go_by_commands_are_right(process: Process, owner: UUID) -> None:
    process.webhooks.delete(owner, process.webhooks.all(owner)[3].id, process.cause())
    register(process, owner)
    assert found(process) == []


@pytest.mark.any_database
def test_an_endpoint_outside_the_list_is_named(process: Process, owner: UUID) -> None:
    new = registered(process, owner)
    forge(process, *events_of(new))
    assert found(process) == [f"the list of {owner} does not follow endpoint {new.id}"]


@pytest.mark.any_database
def test_a_deletion_that_leaves_the_list_is_named(process: Process, owner: UUID) -> None:
    first = process.webhooks.all(owner)[0]
    first.record(WebhookEndpoint.Deleted, process.cause())
    forge(process, *events_of(first))
    assert found(process) == [f"the list of {owner} does not follow endpoint {first.id}"]


@pytest.mark.any_database
def test_a_list_that_changes_alone_is_named(process: Process, owner: UUID) -> None:
    alone = listed(process, owner)
    alone.record(WebhookList.Removed, process.cause(), endpoint_id=alone.endpoint_ids[0])
    alone.add(uuid4(), process.cause())
    forge(process, *events_of(alone))
    assert found(process) == [f"the list of {owner} changes without its endpoint"] * 2


@pytest.mark.any_database
def test_an_eleventh_endpoint_is_named(
    process: Process, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.webhooks.endpoint.ENDPOINTS_MAX", 11)
    register(process, owner)
    assert found(process) == [f"organization {owner} has more than 10 webhook endpoints"]
