"""`webhooks`: what operators see of endpoints, and telling again."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.bootstrap.container import Container
from domain.cause import Cause, utc_now
from domain.webhooks.commands import Changes, Draft
from domain.webhooks.deliveries import Delivery
from domain.webhooks.endpoint import WebhookRequest
from tests.app.cli.shell import Shell

URL = "https://hooks.example/told?token=hush"


class Partners:
    """Two organizations with an endpoint each, and deliveries as workers leave them."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.organizations = [shell.new_organization() for _ in range(2)]
        self.container = shell.container()
        self.container.webhook_key.ensure()  # As a start of `web` does.
        self.endpoints = [self._endpoint(each) for each in self.organizations]

    def _endpoint(self, organization_id: UUID) -> UUID:
        draft = Draft(organization_id, URL, None, None, None)
        return self.container.webhooks.register(draft, Cause(utc_now(), "r"))[0].id

    def plan(self, index: int, **facts: Any) -> UUID:
        """Plan a delivery to one of the endpoints."""
        its = {"endpoint_id": self.endpoints[index], "organization_id": self.organizations[index]}
        its |= {"id": uuid4(), "about": uuid4(), "position": 7, "body": b"{}"}
        its |= {"type": "link.activated", "created_at": utc_now(), "next_attempt_at": utc_now()}
        planned = Delivery(**{**its, **facts})
        with self.container.views.writing() as connection:
            self.container.webhook_deliveries.plan(connection, [planned])
        return planned.id


@pytest.fixture
def partners(shell: Shell) -> Any:
    made = Partners(shell)
    yield made
    made.container.close()


def test_those_that_fail_can_be_asked_for(shell: Shell, partners: Partners) -> None:
    assert shell.json("webhooks", "list", "--failing")["data"] == []
    webhooks, cause = partners.container.webhooks, Cause(utc_now(), "r")
    log = partners.container.log
    failing = webhooks.get(partners.organizations[0], partners.endpoints[0])
    failing.disable("failing", cause)
    log.append(failing)
    asked = Changes(enabled=False)
    webhooks.change(webhooks.get(partners.organizations[1], partners.endpoints[1]), asked, cause)
    (listed,) = shell.json("webhooks", "list", "--failing")["data"]
    assert UUID(listed["id"]) == partners.endpoints[0]
    assert (listed["enabled"], listed["disabled_reason"]) == (False, "failing")
    told = shell.json("doctor", status=1)["data"]
    (found,) = [each for each in told if each["check"] == "webhooks"]
    assert str(partners.endpoints[0]) in found["message"]


def test_deliveries_of_an_endpoint_are_listed(shell: Shell, partners: Partners) -> None:
    old = partners.plan(
        0, created_at=utc_now() - timedelta(days=1), status="failed", attempts=3, error="timeout"
    )
    new = partners.plan(0)
    partners.plan(1)
    endpoint = ("--endpoint", partners.endpoints[0])
    listed = shell.json("webhooks", "list", *endpoint)["data"]
    assert [UUID(each["id"]) for each in listed] == [new, old]
    (failing,) = shell.json("webhooks", "list", *endpoint, "--failing")["data"]
    assert (failing["id"], failing["error"], failing["attempts"]) == (str(old), "timeout", 3)
    assert "there is no endpoint" in shell.refusal("webhooks", "list", "--endpoint", uuid4())
    both = (*endpoint, "--org", partners.organizations[1])
    assert "only one of --org and --endpoint" in shell.refusal("webhooks", "list", *both, status=2)


def requests_of(container: Container) -> list[WebhookRequest.RedeliveryAsked]:
    return [
        each.event
        for each in container.log.read(0, 1_000)
        if isinstance(each.event, WebhookRequest.RedeliveryAsked)
    ]


def test_one_delivery_or_all_that_failed_are_told_again(shell: Shell, partners: Partners) -> None:
    failed = {partners.plan(0, status="failed") for _ in range(2)}
    done = partners.plan(0, status="delivered")
    endpoint = partners.endpoints[0]
    for count in (2, 0):  # What was asked for has not failed any more.
        assert shell.json("webhooks", "redeliver", endpoint)["asked"] == count
    assert shell.json("webhooks", "redeliver", endpoint, done)["asked"] == 1
    asked = requests_of(partners.container)
    assert {each.delivery_id for each in asked[:2]} == failed
    assert asked[2].delivery_id == done
    assert all((each.actor or "").startswith("os:") for each in asked)
    refused = shell.refusal("webhooks", "redeliver", partners.endpoints[1], done)
    assert "there is no delivery" in refused
    shell.run("installation", "hold")
    assert "is a held copy" in shell.refusal("webhooks", "redeliver", endpoint)


def test_the_metrics_tell_what_is_late_for_our_sake_and_what_is_disabled(
    partners: Partners,
) -> None:
    container, now = partners.container, utc_now()
    observed = container.observed
    container.projector.catch_up()
    assert observed.webhooks() == {
        "webhook_deliveries_pending": 0,
        "webhook_delivery_late_seconds": 0.0,
        "webhook_endpoints_disabled": {"asked": 0, "gone": 0, "failing": 0, "operator": 0},
    }

    def late_s() -> Any:
        return observed.webhooks()["webhook_delivery_late_seconds"]

    partners.plan(0, next_attempt_at=now - timedelta(minutes=10))
    partners.plan(1, next_attempt_at=now - timedelta(minutes=5))
    partners.plan(1, next_attempt_at=now - timedelta(days=3), status="delivered")
    assert observed.webhooks()["webhook_deliveries_pending"] == 2
    assert 600 <= late_s() < 700
    store = container.webhook_deliveries
    taken = store.claim(partners.endpoints[0], now, 1)
    assert taken is not None
    store.settle(taken, taken.delivery, taken.health.after(now, is_success=False), now)
    assert 300 <= late_s() < 400  # The first endpoint fails by itself.
    changes, cause = Changes(enabled=False), Cause(now, "r")
    endpoint = container.webhooks.get(partners.organizations[0], partners.endpoints[0])
    container.webhooks.change(endpoint, changes, cause)
    container.projector.catch_up()
    disabled = {"asked": 1, "gone": 0, "failing": 0, "operator": 0}
    assert observed.webhooks()["webhook_endpoints_disabled"] == disabled
