"""Webhooks: endpoints, and what is sent to them."""

import pytest

from tests.net.net import Net, Partner, Receiver
from tests.net.test_plans import own_plans
from tests.plan_files import plan

pytestmark = pytest.mark.each_database

PATH = "/v1/webhooks"
EVENTS = "/v1/events"
MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"


def test_an_endpoint_is_made_changed_and_deleted(acme: Partner, rival: Partner) -> None:
    made = acme.post(PATH, {"url": "https://hooks.example/a", "description": "the first"}).data
    acme.post(PATH, {"url": "https://hooks.example/b", "events": ["job.finished", "link.failed"]})
    acme.get(PATH)
    one = f"{PATH}/{made['id']}"
    acme.get(one)
    for body in (
        {"description": None, "events": ["wallet.deposited"]},
        {"enabled": False},
        {"enabled": True, "url": "https://hooks.example/c"},
        {"events": ["lost"]},
        {"url": "ftp://hooks.example"},
        {},
        {"enabled": "yes", "secret": "x"},
    ):
        acme.call("PATCH", one, body)
    acme.post(f"{one}/rotate-secret")
    acme.post(f"{one}/rotate-secret", Idempotency_Key="k-1")
    acme.post(f"{one}/rotate-secret", Idempotency_Key="k-1")
    rival.get(one)
    rival.call("DELETE", one)
    acme.call("DELETE", one)
    acme.call("DELETE", one)
    acme.get(one)
    acme.get(PATH)


def test_inputs_that_are_refused(acme: Partner) -> None:
    for body in (
        {},
        {"url": "hooks.example"},
        {"url": "https://user:pass@hooks.example/", "events": ["job.finished"] * 2},
        {"url": "https://hooks.example/", "events": []},
        {"url": "https://hooks.example/", "events": ["job.finished", "job.finished", "x"]},
        {"url": "https://hooks.example/", "description": 7, "secret": "mine"},
        {"url": "https://hooks.example/" + "x-" * 1_500},
    ):
        acme.post(PATH, body)
    for index in range(10):
        acme.ask("POST", PATH, {"url": f"https://hooks.example/{index}"})
    acme.post(PATH, {"url": "https://hooks.example/11"})
    for path in ("", "/deliveries", "/rotate-secret", "/test", f"/deliveries/{MISSING}/redeliver"):
        acme.call("GET" if path in {"", "/deliveries"} else "POST", f"{PATH}/{MISSING}{path}")


def test_one_key_is_one_endpoint(acme: Partner) -> None:
    body = {"url": "https://hooks.example/a"}
    acme.post(PATH, body, Idempotency_Key="k-1")
    acme.post(PATH, body, Idempotency_Key="k-1")
    acme.post(PATH, body | {"description": "x"}, Idempotency_Key="k-1")


def test_what_is_told_of_jobs_and_money(net: Net, receiver: Receiver) -> None:
    acme = net.partner("10.00")
    made = acme.post(PATH, {"url": f"{receiver.url}/all"}).data
    acme.call("PATCH", "/v1/account", {"low_balance_threshold": "9.995"})
    acme.job("+14155552671", "+15005550001")
    receiver.came("/all", 2)
    net.quietly("wallet", "deposit", acme.id, "5.00", "--reference", "bank-2")
    receiver.came("/all", 3)
    acme.ask("PATCH", "/v1/account", {"low_balance_threshold": "20.00"})
    receiver.record(net, "/all", 4, made["secret"])
    listed = f"{PATH}/{made['id']}/deliveries"
    net.until(lambda: {each["status"] for each in acme.data(listed)["data"]} == {"delivered"})
    acme.get(f"{PATH}/{made['id']}/deliveries")
    acme.get(f"{PATH}/{made['id']}/deliveries?per_page=3&page=2")
    acme.get(f"{PATH}/{made['id']}/deliveries?per_page=0")


def test_what_is_told_of_links(net: Net, receiver: Receiver, acme: Partner) -> None:
    sponsor = [{"id": "sp-atlas", "name": "Atlas", "color": "#1F6FEB"}]
    own_plans(
        acme, plan("failing", provider_plan_id="sandbox-no-endpoint", sponsor_profiles=sponsor)
    )
    made = acme.ask("POST", PATH, {"url": f"{receiver.url}/links"}).data
    link = acme.buy(name="car 7")
    one = f"/v1/links/{link['id']}"
    steps = [
        ("POST", "/v1/links", {"plan_id": acme.plan("sandbox-no-endpoint")}),
        ("PUT", f"{one}/plans", {"add": [acme.plan("Germany 10 GB")]}),
        ("PUT", f"{one}/plans", {"add": [acme.plan("failing")]}),
        ("POST", f"{one}/suspend", None),
        ("POST", f"{one}/reactivate", None),
        ("DELETE", one, None),
    ]
    for method, path, body in steps:
        acme.ask(method, path, body)
    receiver.record(net, "/links", 7, made["secret"])
    cancelled = acme.buy()
    acme.ask("POST", f"/v1/links/{cancelled['id']}/cancel")
    net.until(lambda: len(receiver.requests) >= 9)
    net.note("webhooks in all", str(len(receiver.requests)))


def test_types_are_told_where_they_are_named(net: Net, receiver: Receiver) -> None:
    acme = net.partner("20.00")
    link = acme.buy(name="car 7")
    one = f"/v1/links/{link['id']}"
    named = ["link.status_changed", "link.renamed", "link.plan_removed"]
    named += ["wallet.charged", "wallet.refunded", "wallet.adjusted"]
    named += ["wallet.paid_out", "wallet.claim_changed", "wallet.reversed"]
    named += ["client.secret_rotated", "client.deleted"]
    made = acme.ask("POST", PATH, {"url": f"{receiver.url}/named", "events": named}).data
    steps = [
        ("PATCH", one, {"name": "car 8"}),
        ("POST", f"{one}/suspend", None),
        ("PUT", f"{one}/plans", {"remove": [link["activations"][0]["id"]]}),
        ("POST", "/v1/links", {"plan_id": acme.plan("sandbox-no-endpoint")}),
    ]
    for count, (method, path, body) in enumerate(steps, start=1):
        acme.ask(method, path, body)
        receiver.came("/named", count)
    net.quietly("wallet", "adjust", acme.id, "-1.00", "--reference", "a-1", "--reason", "a trial")
    receiver.came("/named", 6)
    day = ("--reason", "they leave", "--value-date", "2026-03-09", "--reference")
    net.quietly("wallet", "payout", acme.id, "1.00", *day, "out-1")
    receiver.came("/named", 7)
    net.quietly("wallet", "reverse", acme.id, "bank-1", *day, "back-1")
    receiver.came("/named", 9)
    net.quietly("links", "set", link["id"], "--status", "active")
    receiver.came("/named", 10)
    net.quietly("client", "rotate-secret", acme.client_id)
    receiver.came("/named", 11)
    net.quietly("client", "revoke", acme.client_id)
    receiver.record(net, "/named", 12, made["secret"])


def test_a_secret_is_rotated_and_both_sign(net: Net, receiver: Receiver, acme: Partner) -> None:
    made = acme.ask("POST", PATH, {"url": f"{receiver.url}/two"}).data
    newer = acme.post(f"{PATH}/{made['id']}/rotate-secret").data
    acme.post(f"{PATH}/{made['id']}/test")
    receiver.record(net, "/two", 1, made["secret"], newer["secret"])


def test_a_delivery_that_fails_is_repeated_and_sent_again_by_hand(
    net: Net, receiver: Receiver, acme: Partner
) -> None:
    made = acme.ask("POST", PATH, {"url": f"{receiver.url}/down"}).data
    one = f"{PATH}/{made['id']}"
    receiver.status = 500
    told = acme.post(f"{one}/test").data["delivery_id"]
    listed = f"{one}/deliveries"
    net.until(lambda: [each["response_status"] for each in acme.data(listed)["data"]] == [500])
    acme.get(f"{one}/deliveries")
    net.run("webhooks", "list", "--org", acme.id)
    receiver.status = 200
    acme.post(f"{one}/deliveries/{told}/redeliver", Idempotency_Key="k-1")
    net.until(lambda: acme.data(f"{one}/deliveries")["data"][0]["status"] == "delivered")
    acme.get(f"{one}/deliveries")
    acme.post(f"{one}/deliveries/{told}/redeliver", Idempotency_Key="k-1")
    acme.post(f"{one}/deliveries/{told}/redeliver", Idempotency_Key="k-1")
    acme.post(f"{one}/deliveries/{MISSING}/redeliver")
    net.run("webhooks", "redeliver", made["id"], told)
    receiver.record(net, "/down", 3, made["secret"])


def test_events_are_pulled(net: Net) -> None:
    acme, rival = net.partner("10.00"), net.partner(name="Rival")
    acme.ask("PATCH", "/v1/account", {"low_balance_threshold": "9.995"})
    acme.job("+14155552671", "+14155552672")
    net.until(lambda: len(acme.data(EVENTS)["data"]) == 4)
    first = acme.get(f"{EVENTS}?limit=2").data
    rest = acme.get(f"{EVENTS}?limit=2&after={first['next']}").data
    acme.get(f"{EVENTS}?after={rest['next']}")
    acme.get(f"{EVENTS}?after={rest['next']}&wait=1&more=1")
    acme.get(f"{EVENTS}?types=wallet.low_balance,job.finished,job.finished&limit=1")
    made = acme.ask("POST", PATH, {"url": "https://hooks.example/a"}).data
    acme.get(f"{EVENTS}?webhook_id={made['id']}&types=job.finished")
    rival.get(f"{EVENTS}?after={first['next']}")
    rival.get(f"{EVENTS}?webhook_id={made['id']}")
    for query in (
        "after=mine",
        "types=job.finished,lost",
        "limit=0",
        "limit=1001",
        "wait=31",
        "wait=a",
        "webhook_id=a",
        "after=&types=&limit=1",
        "limit=",
        "webhook_id=",
        f"after={first['next']}&after={first['next']}",
    ):
        acme.get(f"{EVENTS}?{query}")


def test_deliveries_are_read_and_sent_again(
    net: Net, receiver: Receiver, acme: Partner, rival: Partner
) -> None:
    made = acme.ask("POST", PATH, {"url": f"{receiver.url}/again"}).data
    one = f"{PATH}/{made['id']}"
    told = acme.ask("POST", f"{one}/test").data["delivery_id"]
    net.until(lambda: acme.data(f"{one}/deliveries?status=delivered")["data"])
    for status in ("delivered", "failed", "lost", ""):
        acme.get(f"{one}/deliveries?status={status}")
    acme.get(f"{one}/deliveries/{told}")
    acme.get(f"{one}/deliveries/{MISSING}")
    rival.get(f"{one}/deliveries/{told}")
    since = {"since": "2026-01-01"}
    acme.post(f"{one}/redeliver", since, Idempotency_Key="k-1")
    acme.post(f"{one}/redeliver", {"since": "2026-01-01T00:00:00Z"}, Idempotency_Key="k-1")
    acme.post(f"{one}/redeliver", {"since": "2026-01-02"}, Idempotency_Key="k-1")
    for body in ({}, {"since": "yesterday"}, {"since": 7}, {"since": "2026-01-01T00:00:00"}):
        acme.post(f"{one}/redeliver", body)
    rival.post(f"{one}/redeliver", since)
    acme.ask("PATCH", one, {"enabled": False})
    acme.post(f"{one}/redeliver", since)


def test_a_redirect_is_no_delivery(net: Net, receiver: Receiver, acme: Partner) -> None:
    made = acme.ask("POST", PATH, {"url": f"{receiver.url}/moved"}).data
    listed = f"{PATH}/{made['id']}/deliveries"
    receiver.status = 302
    acme.post(f"{PATH}/{made['id']}/test")
    net.until(lambda: [each["response_status"] for each in acme.data(listed)["data"]] == [302])
    acme.get(listed)


def test_an_endpoint_that_is_gone_is_disabled(net: Net, receiver: Receiver, acme: Partner) -> None:
    made = acme.ask("POST", PATH, {"url": f"{receiver.url}/gone"}).data
    one, listed = f"{PATH}/{made['id']}", f"{PATH}/{made['id']}/deliveries"
    receiver.status = 410
    acme.post(f"{one}/test")
    net.until(lambda: [each["status"] for each in acme.data(listed)["data"]] == ["failed"])
    acme.get(one)
    told = acme.get(listed).data["data"][0]["id"]
    acme.post(f"{one}/test")
    acme.post(f"{listed}/{told}/redeliver")
    acme.call("PATCH", one, {"enabled": True})
    net.run("webhooks", "disable", made["id"])
    net.run("webhooks", "disable", made["id"])
    net.run("webhooks", "disable", MISSING)
    net.until(lambda: not acme.data(one)["enabled"])
    acme.get(one)
