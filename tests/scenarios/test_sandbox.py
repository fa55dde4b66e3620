"""What a partner of a sandbox plays is written by `web`, and played by every other process."""

import json
from collections import Counter

import pytest

from tests.house.partner import Partner
from tests.house.running import COMES_UP_S
from tests.house.system import PROCESSES, System
from tests.installation import wait_until
from tests.net.net import Receiver
from tests.scenarios.conftest import partner_of

TOLD = {"link.activated": 1, "link.installed": 1, "link.usage": 3, "link.expiring": 1}

pytestmark = [pytest.mark.soak, pytest.mark.timeout(200)]


def buy(partner: Partner) -> str:
    plans = partner.ask("GET", "/v1/plans?per_page=100").data["data"]
    plan = next(each for each in plans if each["name"] == "Germany 3 GB")
    reply = partner.ask("POST", "/v1/links", {"plan_id": plan["id"]})
    assert reply.status in {201, 502}, reply.json
    return str(reply.data["id"]) if reply.status == 201 else str(reply.json["error"]["code"])


def test_every_process_plays_for_one_partner_what_it_has_asked_for(
    system: System, receiver: Receiver
) -> None:
    system.environment["WEBHOOKS_ALLOW_PRIVATE"] = "true"
    running = system.honcho()
    for name in PROCESSES[1:]:
        running.says(f"{name} is at work", COMES_UP_S)
    parts, acme = system.container, partner_of(system)
    rival = Partner(system.url, parts.client(parts.organization(), secret="secret"), "secret")
    for each, path in ((acme, "/acme"), (rival, "/rival")):
        wait_until(lambda each=each: each.authorize().status == 200, COMES_UP_S)  # type: ignore[misc]  # Bound at once.
        wait_until(lambda each=each: each.ask("GET", "/v1/wallet").status == 200, COMES_UP_S)  # type: ignore[misc]  # As above.
        assert each.ask("POST", "/v1/webhooks", {"url": receiver.url + path}).status == 201
        buy(each)

    scripted = {"operation": "purchase", "failure": "no_endpoint"}
    assert acme.ask("PUT", "/v1/sandbox/failures", scripted).status == 200
    assert [len(buy(rival)), buy(acme), len(buy(acme))] == [36, "PROVISIONING_FAILED", 36]

    scripted = {"operation": "lookup", "failure": "unavailable", "attempts": 3}
    assert acme.ask("PUT", "/v1/sandbox/failures", scripted).status == 200
    for each, failed in ((rival, 0), (acme, 1), (acme, 0)):
        sent = {"phone_numbers": ["+14155550100"]}
        job = each.ask("POST", "/number-lookup/bulk", sent).data["job_id"]
        path = f"/number-lookup/bulk/{job}"
        wait_until(lambda each=each, path=path: each.ask("GET", path).data["finished_at"])  # type: ignore[misc]  # As above.
        assert each.ask("GET", path).data["failed_count"] == failed

    def told(path: str) -> Counter[str]:
        return Counter(json.loads(body)["type"] for came, _, body in receiver.came if came == path)

    assert acme.ask("POST", "/v1/sandbox/clock", {"hours": 24 * 29 + 12}).status == 200
    twice = Counter({name: 2 * count for name, count in TOLD.items()})
    of_links = {"link.failed": 1, "job.finished": 2, **twice}
    wait_until(lambda: told("/acme") == of_links, COMES_UP_S)
    of_rival = {"link.activated": 2, "job.finished": 1}
    wait_until(lambda: told("/rival").total() >= sum(of_rival.values()))
    assert told("/rival") == of_rival
    running.stop()
    system.command("audit", "verify")
