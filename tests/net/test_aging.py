"""What time does to links: use, expiry, and the end of what was allowed at first."""

from datetime import timedelta

from tests.net.house import shared_house
from tests.net.net import Net, Partner, Receiver

LINKS = "/v1/links"


# A house of these alone, because the network of the demo's devices gets older in it.
aging = shared_house("aging", READINGS_REFRESH_S="900", PROVISIONING_DEADLINE_S="4")


def test_plans_are_used_up_and_expire(net: Net, receiver: Receiver) -> None:
    demo = net.demo()  # What its devices do is drawn by ids that are always the same.
    hook = demo.ask("POST", "/v1/webhooks", {"url": f"{receiver.url}/aging"}).data
    plan = demo.plan("Germany 3 GB")
    body = {"plan_id": plan, "name": "car 7"}
    one = f"{LINKS}/{demo.ask('POST', LINKS, body, Idempotency_Key='k-1').data['id']}"
    told = ["link.activated", "link.installed", "link.usage", "link.usage", "link.usage"]
    # The plan is used up; it ends within a day.
    demo.ask("POST", "/v1/sandbox/clock", {"hours": 24 * 29 + 12})
    net.until(lambda: demo.data(one)["data_used_mb"] == 3_000)
    receiver.came("/aging", len(told))
    demo.get(one)
    demo.get(LINKS)
    demo.get(f"{one}/network-status?live=true")
    demo.post(f"{one}/cancel")
    demo.ask("POST", "/v1/sandbox/clock", {"hours": 24})
    net.until(lambda: demo.data(one)["activations"][0]["status"] == "expired")
    demo.get(one)
    receiver.record(net, "/aging", len(told), hook["secret"])
    demo.ask("POST", f"{one}/suspend")  # So nothing is used, however long it takes to look.
    demo.call("PUT", f"{one}/plans", {"add": [plan]})
    demo.get(one)


def test_a_creation_that_takes_too_long(net: Net, receiver: Receiver, acme: Partner) -> None:
    hook = acme.ask("POST", "/v1/webhooks", {"url": f"{receiver.url}/slow"}).data
    slow = {"plan_id": acme.plan("sandbox-slow")}
    asked = acme.post(LINKS, slow, Prefer="respond-async", Idempotency_Key="k-1")
    path = asked.headers["location"].removeprefix("https://api.example")
    acme.get(path)
    acme.post(LINKS, slow, Idempotency_Key="k-1")
    acme.get(path)
    acme.post(LINKS, slow, Idempotency_Key="k-2")
    acme.get("/v1/transactions")
    receiver.record(net, "/slow", 2, hook["secret"])
    net.until(lambda: not net.quietly("links", "list", "--unfinished")["data"])
    acme.get(LINKS)


def test_a_window_is_over(net: Net, acme: Partner) -> None:
    one = f"{LINKS}/{acme.buy()['id']}"
    acme.post(f"{one}/suspend")
    net.begin("two weeks later", net.house.clock.now + timedelta(days=15))
    acme.post(f"{one}/cancel")
    acme.get(one)
    acme.get("/v1/account")
