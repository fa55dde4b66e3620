"""What partners play in a sandbox: their own time, devices, failures and money."""

import pytest

from tests.net.house import shared_house
from tests.net.net import Net, Partner, Receiver

pytestmark = pytest.mark.each_database

LINKS, SANDBOX = "/v1/links", "/v1/sandbox"
NUMBER = "+14155552671"


# A house that reads links in the background, and tells what it sees.
told = shared_house("sandbox", READINGS_REFRESH_S="900", PROVISIONING_DEADLINE_S="4")


def test_what_happens_to_a_link(
    net: Net, receiver: Receiver, acme: Partner, rival: Partner
) -> None:
    hook = acme.ask("POST", "/v1/webhooks", {"url": f"{receiver.url}/link"}).data
    link, others = acme.buy(), rival.buy()
    one, play = f"{LINKS}/{link['id']}", f"{SANDBOX}/links/{link['id']}"
    acme.get(SANDBOX)
    acme.post(play, {"action": "install"})
    # Its traffic has begun, so how much of the plan is used is not the same at each playing.
    assert acme.ask("POST", play, {"action": "roam", "country_code": "de"}).status == 200
    acme.get(f"{one}/network-status?live=true")
    acme.post(play, {"action": "roam", "country_code": "US"})
    assert acme.ask("POST", play, {"action": "expire", "hours": 24}).status == 200
    acme.post(play, {"action": "use", "percent": 100})
    acme.post(play, {"action": "suspend"})
    acme.get(f"{one}/network-status?live=true")
    acme.post(f"{one}/cancel")
    acme.post(f"{one}/reactivate")
    acme.post(play, {"action": "deactivate"})
    acme.post(play, {"action": "expire", "activation_id": link["activations"][0]["id"]})
    acme.post(play, {"action": "expire"})
    acme.post(play, {"action": "use", "percent": 10})
    receiver.record(net, "/link", 7, hook["secret"])
    rival.post(play, {"action": "suspend"})
    rival.get(f"{LINKS}/{others['id']}")
    acme.post(play, {"action": "use", "hours": 1})
    acme.post(play, {"action": "explode"})
    acme.ask("DELETE", one)
    acme.post(play, {"action": "install"})


def test_time_passes_for_one_partner(
    net: Net, receiver: Receiver, acme: Partner, rival: Partner
) -> None:
    hook = acme.ask("POST", "/v1/webhooks", {"url": f"{receiver.url}/clock"}).data
    acme.buy(), rival.buy()
    acme.post(f"{SANDBOX}/clock", {"hours": 24 * 29 + 12})  # Used up; it ends within a day.
    receiver.record(net, "/clock", 6, hook["secret"])
    acme.get(LINKS)
    rival.get(LINKS)
    rival.get(SANDBOX)
    acme.post(f"{SANDBOX}/clock", {"hours": 8_761})
    acme.post(f"{SANDBOX}/clock", {"hours": 1, "link_id": "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"})
    acme.post(f"{SANDBOX}/clock?dry_run=true", {"hours": 1})
    acme.get(f"{SANDBOX}?link_id=1")


def test_what_is_scripted_fails_and_nothing_else(acme: Partner, rival: Partner) -> None:
    failures, lookup = f"{SANDBOX}/failures", f"/number-lookup?phone_number=%2B{NUMBER[1:]}"
    acme.call("PUT", failures, {"operation": "lookup", "failure": "unavailable"})
    rival.post(lookup)
    acme.post(lookup)
    acme.post(lookup)
    acme.ask("PUT", failures, {"operation": "lookup", "failure": "no_data", "minutes": 5})
    acme.post(lookup)
    job = acme.job(NUMBER)
    acme.get(f"/number-lookup/bulk/{job['job_id']}")
    acme.ask("PUT", failures, {"operation": "purchase", "failure": "no_endpoint", "attempts": 2})
    plan = acme.plan("Germany 3 GB")
    acme.post(LINKS, {"plan_id": plan}, Idempotency_Key="k-1")
    acme.get(SANDBOX)
    acme.post(LINKS, {"plan_id": plan}, Idempotency_Key="k-1")
    link = acme.ask("POST", LINKS, {"plan_id": plan}, Idempotency_Key="k-1").data
    acme.ask("PUT", failures, {"operation": "purchase", "failure": "provider_error"})
    acme.call("PUT", f"{LINKS}/{link['id']}/plans", {"add": [plan]})
    acme.ask("PUT", failures, {"operation": "lookup", "failure": None})
    acme.post(lookup)
    acme.get("/v1/transactions")
    for body in (
        {},
        {"operation": "refund", "failure": "slow"},
        {"operation": "lookup", "failure": "no_esim"},
        {"operation": "lookup", "failure": None, "attempts": 1},
        {"operation": "lookup", "failure": "slow", "minutes": 1},
        {"operation": "purchase", "failure": "slow", "attempts": 21, "minutes": 61},
        {"operation": "lookup", "failure": "slow", "key_prefix": "ci-"},
        {"operation": "request", "failure": "link_busy", "key_prefix": "ci-", "plan_id": plan},
        {"operation": "purchase", "failure": "slow", "key_prefix": "ci-42-"},
    ):
        acme.call("PUT", failures, body)


def test_a_sandbox_begins_anew(net: Net) -> None:
    acme, failures = net.partner(), f"{SANDBOX}/failures"
    one, reset = f"{LINKS}/{acme.buy()['id']}", f"{SANDBOX}/reset"
    acme.job(NUMBER)
    acme.ask("PUT", failures, {"operation": "purchase", "failure": "slow", "key_prefix": "ci-"})
    acme.post(reset)
    acme.ask("DELETE", one)
    acme.ask("POST", f"{SANDBOX}/clock", {"hours": 24})  # A link that lives would be read anew.
    acme.post(reset, {})
    acme.post(reset, {"more": 1})
    acme.get(LINKS)
    acme.get("/number-lookup/bulk")
    acme.get(one)
    net.run("links", "list", "--org", acme.id)
    assert net.quietly("audit", "verify")["ok"]


def test_requests_are_refused_before_they_begin(acme: Partner, rival: Partner) -> None:
    failures, plan = f"{SANDBOX}/failures", acme.plan("Germany 3 GB")
    script = {"operation": "request", "failure": "rate_limited", "attempts": 2}
    acme.ask("PUT", failures, script)
    acme.post(LINKS, {"plan_id": plan}, Idempotency_Key="k-1")
    rival.get("/v1/wallet")
    acme.get("/v1/wallet")
    acme.get("/v1/wallet")
    for failure in ("unauthorized", "service_unavailable", "organization_suspended"):
        acme.ask("PUT", failures, {**script, "failure": failure, "attempts": 1})
        acme.get("/v1/plans/regions")
    for failure in ("insufficient_balance", "spending_limit"):
        acme.ask("PUT", failures, {**script, "failure": failure, "attempts": 1})
        acme.get("/v1/wallet")
        acme.post(LINKS, {"plan_id": plan}, Idempotency_Key="k-1")
    acme.call("PUT", failures, {**script, "failure": "no_esim"})


def test_a_network_refuses_to_change_a_link(acme: Partner) -> None:
    one, script = f"{LINKS}/{acme.buy()['id']}", {"operation": "change", "failure": "refused"}
    acme.ask("PUT", f"{SANDBOX}/failures", {**script, "attempts": 2})
    acme.post(f"{one}/suspend")
    acme.call("DELETE", one)
    acme.post(f"{one}/suspend")
    acme.ask("PUT", f"{SANDBOX}/failures", {**script, "failure": "unreachable"})
    acme.post(f"{one}/reactivate")
    acme.post(f"{one}/reactivate")


def test_play_money_is_kept_apart(net: Net, receiver: Receiver) -> None:
    acme, poor = net.partner(), net.partner("", name="Poor")
    hook = acme.ask("POST", "/v1/webhooks", {"url": f"{receiver.url}/money"}).data
    path, body = f"{SANDBOX}/deposits", {"amount": "50.00", "reference": "bank-1"}
    acme.post(path, body)
    acme.post(path, body)
    acme.post(path, {**body, "amount": "51.00"})
    acme.post(path, {"amount": "10000.01", "reference": ""})
    acme.post(path, [])
    poor.post(path, body)
    receiver.record(net, "/money", 1, hook["secret"])
    acme.get("/v1/transactions?kind=sandbox_deposit")
    acme.get("/v1/statements/2026-03")
    net.run("audit", "statement", acme.id, "2026-03")
    refused = acme.data("/v1/transactions")["data"][0]["id"]
    net.run("wallet", "refund", refused, "--reference", "r-1", "--reason", "a mistake")
    assert net.quietly("audit", "verify")["ok"]
    assert "Assets:Sandbox-deposits" in str(net.quietly("audit", "trial-balance"))
