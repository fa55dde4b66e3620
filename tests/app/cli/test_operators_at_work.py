"""What an alert tells of is found by a command, and an operator can end it under a name."""

from typing import Any
from uuid import UUID

import pytest

from domain.log.aggregate import ByOperator
from domain.lookups.bulk_job import BulkJob
from domain.webhooks.endpoint import WebhookEndpoint
from tests.app.cli.shell import Shell
from tests.app.cli.test_jobs import accept_jobs
from tests.app.cli.test_links_retry import left_behind
from tests.app.cli.test_operator import created
from tests.app.cli.test_webhooks import Partners


@pytest.fixture
def anna(shell: Shell) -> Shell:
    boss = created(shell.having(NETWORK_BASE_PLAN="base-1"), "boss", "keys")[1]
    return created(boss, "anna", "money,keys")[1]


def newest(shell: Shell, stream_id: UUID) -> Any:
    container = shell.container()
    event = container.log.history(stream_id)[-1]
    container.close()
    return event


def by_anna(shell: Shell, event: Any) -> bool:
    assert isinstance(event, ByOperator)
    return event.actor == f"operator:{shell.json('operator', 'list')['data'][1]['id']}"


def test_a_job_that_is_stuck_is_found_and_cancelled(anna: Shell) -> None:
    accept_jobs(anna, ["+14155552671", "+14155552672"], ["+14155552673"], price_micros=1_000_000)
    oldest, newer = anna.json("jobs", "list", "--unfinished")["data"]
    assert (oldest["status"], oldest["total"], oldest["processed"]) == ("pending", 2, 0)
    assert oldest["age_s"] >= oldest["idle_s"] >= 0
    assert [each["id"] for each in anna.json("jobs", "list")["data"]] == [newer["id"], oldest["id"]]
    cancel = ("jobs", "cancel", oldest["id"])
    done = anna.json(*cancel)
    told = {"id": oldest["id"], "status": "cancelled", "cancelled": 2, "refunded": "2.00"}
    assert (done, anna.json(*cancel)) == (told, told)
    event = newest(anna, UUID(oldest["id"]))
    assert isinstance(event, BulkJob.Cancelled)
    assert by_anna(anna, event)
    assert [each["id"] for each in anna.json("jobs", "list", "--unfinished")["data"]] == [
        newer["id"]
    ]
    row = anna.json("jobs", "list", "--org", oldest["organization"])["data"][1]
    assert (row["status"], row["age_s"]) == ("cancelled", None)
    back = anna.json("audit", "replay")["data"][-1]
    assert (back["kind"], back["actor_name"]) == ("refund", "anna")
    assert "anna" in anna.run("audit", "replay").stdout.splitlines()[-1]
    anna.run("jobs", "retry")
    assert "has ended" in anna.refusal("jobs", "cancel", newer["id"])
    assert anna.refusal("jobs", "cancel", event.request_id, status=2)
    assert anna.json("audit", "verify")["ok"]


def test_a_link_that_is_stuck_is_found(anna: Shell) -> None:
    organization = anna.new_organization()
    link_id = left_behind(anna, organization)
    (stuck,) = anna.json("links", "list", "--unfinished")["data"]
    known = {"kind": "link", "id": str(link_id), "link": str(link_id), "stage": "requested"}
    assert known.items() <= stuck.items()
    assert (stuck["organization"], stuck["age_s"] >= 0) == (str(organization), True)
    other = anna.new_organization()
    assert anna.json("links", "list", "--unfinished", "--org", other) == {"data": []}
    anna.run("links", "retry")
    assert anna.json("links", "list", "--unfinished") == {"data": []}


def test_a_link_is_suspended_reactivated_and_ended_under_a_name(anna: Shell) -> None:
    organization = anna.new_organization()
    anna.run("wallet", "deposit", organization, "10", "--reference", "r")
    link_id = left_behind(anna, organization)
    anna.run("links", "retry")
    iccid = anna.json("links", "show", link_id)["iccid"]
    for change, status in (("suspend", "suspended"), ("reactivate", "active"), ("end", "ended")):
        told = {"id": str(link_id), "status": status}
        assert anna.json("links", change, link_id) == told
        if change != "end":
            assert anna.json("links", change, iccid) == told
    assert anna.json("links", "end", link_id) == told
    timeline = anna.json("links", "show", link_id)["timeline"]
    by = [each["what"] for each in timeline if each["facts"].get("actor_name") == "anna"]
    changes = ["status_requested", "suspended", "status_requested", "reactivated"]
    assert by == [f"link.{each}" for each in (*changes, "end_requested", "ended")]
    assert by_anna(anna, newest(anna, link_id))
    shown = anna.run("links", "show", link_id).stdout
    assert "operator:" not in shown
    assert "anna" in shown
    assert "has ended" in anna.refusal("links", "suspend", link_id)
    assert anna.json("audit", "verify")["ok"]


def test_an_endpoint_is_disabled_under_a_name(anna: Shell) -> None:
    partners = Partners(anna)
    endpoint = partners.endpoints[0]
    disable = ("webhooks", "disable", endpoint)
    told = {"endpoint": str(endpoint), "disabled_reason": "operator"}
    assert (anna.json(*disable), anna.json(*disable)) == (told, told)
    event = newest(anna, endpoint)
    assert isinstance(event, WebhookEndpoint.Disabled)
    assert by_anna(anna, event)
    shown = [each["disabled_reason"] for each in anna.json("webhooks", "list")["data"]]
    assert shown == ["operator", None]
    assert anna.json("audit", "verify")["ok"]
    partners.container.close()
