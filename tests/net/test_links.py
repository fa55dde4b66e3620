"""Links: how one is bought, changed and ended, and how each of that fails."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.net.net import Net, Partner
from tests.net.recording import pretty
from tests.net.test_plans import own_plans
from tests.plan_files import covering, plan, profile

pytestmark = pytest.mark.each_database

PATH = "/v1/links"
MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"


def test_a_link_is_bought(net: Net, acme: Partner) -> None:
    body = {"plan_id": acme.plan("France 5 GB"), "name": "Trip to Paris"}
    acme.post(f"{PATH}?dry_run=true", body)
    acme.post(f"{PATH}?dry_run=1", body, Idempotency_Key="no key")
    link = acme.post(PATH, body).data
    acme.get(f"{PATH}/{link['id']}")
    acme.get(f"{PATH}/{link['iccid']}")
    acme.get(PATH)
    acme.get(f"{PATH}/{link['id']}/history")
    acme.get(f"{PATH}/{link['id']}/topup-plans")
    acme.get(f"{PATH}/{link['id']}/plans")
    acme.get("/v1/wallet")
    acme.get("/v1/transactions")
    net.run("links", "show", link["id"])


def test_inputs_that_are_refused(acme: Partner) -> None:
    own_plans(acme, plan("Unsold", provider_plan_id=None), plan("Off", enabled=False))
    france = acme.plan("France 5 GB")
    for body in (
        {},
        [],
        {"plan_id": "nonsense"},
        {"plan_id": MISSING},
        {"plan_id": acme.plan("Unsold")},
        {"plan_id": france, "name": "n" * 256},
        {"plan_id": france, "name": 7, "color": "red"},
        {str(index): index for index in range(101)},
    ):
        acme.post(PATH, body)
        if "plan_id" in body:
            acme.post(f"{PATH}?dry_run=true", body)
    acme.post(f"{PATH}?dry_run=perhaps", {"plan_id": france})
    acme.post(f"{PATH}?dry_run=", {"plan_id": france})
    acme.post(f"{PATH}?dry_run=false", {"plan_id": france}, Idempotency_Key="no key")
    acme.post(f"{PATH}?dryrun=true", {"plan_id": france})
    acme.post(PATH, body="{", Content_Type="application/json")
    acme.post(PATH, body="plan", Content_Type="text/plain")
    acme.post(PATH, {"plan_id": france}, Idempotency_Key="")
    acme.get("/v1/transactions")


def test_the_sandbox_plans_fail_on_demand(acme: Partner) -> None:
    for called in ("sandbox-no-endpoint", "sandbox-provider-error", "sandbox-no-esim"):
        acme.post(PATH, {"plan_id": acme.plan(called)})
        acme.get("/v1/wallet")
    link = acme.post(PATH, {"plan_id": acme.plan("sandbox-lost-reply")}).data
    acme.get(f"{PATH}/{link['id']}")
    acme.get(PATH)
    acme.get("/v1/transactions")
    acme.get("/v1/transactions?kind=refund")


def test_a_link_that_the_network_does_not_reach(acme: Partner) -> None:
    link = acme.post(PATH, {"plan_id": acme.plan("sandbox-unreachable")}).data
    one = f"{PATH}/{link['id']}"
    acme.get(one)
    acme.get(f"{one}/network-status")
    acme.get(f"{one}/network-status?live=true")
    acme.post(f"{one}/cancel")
    acme.post(f"{one}/suspend")
    acme.get(one)
    acme.call("DELETE", one)
    acme.get(one)


def test_what_money_decides(net: Net) -> None:
    acme = net.partner("8.00")
    france = acme.plan("France 5 GB")
    acme.post(PATH, {"plan_id": france})
    acme.post(PATH, {"plan_id": france})
    acme.post(f"{PATH}?dry_run=true", {"plan_id": france})
    link = acme.data(PATH)["data"][0]
    acme.call("PUT", f"{PATH}/{link['id']}/plans", {"add": [acme.plan("Germany 3 GB")]})
    acme.get("/v1/wallet")
    walletless = net.partner("", name="Walletless")
    walletless.post(PATH, {"plan_id": france})
    walletless.post(f"{PATH}?dry_run=true", {"plan_id": france})
    own_plans(acme, plan("Gift", retail_price="0.00"))
    acme.post(PATH, {"plan_id": acme.plan("Gift")})
    acme.get("/v1/wallet")


def test_one_key_is_one_link(acme: Partner) -> None:
    body = {"plan_id": acme.plan("France 5 GB"), "name": "one"}
    acme.post(PATH, body, Idempotency_Key="k-1")
    acme.post(PATH, body, Idempotency_Key="k-1")
    acme.post(PATH, body | {"name": "two"}, Idempotency_Key="k-1")
    acme.post(f"{PATH}?dry_run=true", body | {"name": "two"}, Idempotency_Key="k-1")
    acme.post(PATH, body, Idempotency_Key="k-1", Prefer="respond-async")
    failing = {"plan_id": acme.plan("sandbox-no-endpoint")}
    acme.post(PATH, failing, Idempotency_Key="k-2")
    acme.post(PATH, failing, Idempotency_Key="k-2")
    acme.post(PATH, body, Idempotency_Key="k-2")
    acme.get("/v1/transactions")
    acme.ask("PATCH", f"{PATH}/{acme.data(PATH)['data'][0]['id']}", {"name": "renamed"})
    acme.post(PATH, body, Idempotency_Key="k-1")
    acme.post(PATH, body | {"name": "renamed"}, Idempotency_Key="k-1")


def test_who_does_not_wait(net: Net, acme: Partner, rival: Partner) -> None:
    for called in ("France 5 GB", "sandbox-provider-error"):
        reply = acme.post(PATH, {"plan_id": acme.plan(called)}, Prefer="respond-async")
        path = reply.headers["location"].removeprefix("https://api.example")
        net.until(lambda path=path: acme.data(path)["status"] != "pending")
        acme.get(path)
        rival.get(path)
    acme.get(f"/v1/link-requests/{MISSING}")
    acme.get("/v1/link-requests/nonsense")
    acme.post(PATH, {"plan_id": acme.plan("France 5 GB")}, Prefer="wait=1")


def change(acme: Partner, link: dict[str, Any], *, key: str = "", **body: list[str]) -> Any:
    named = {
        name: [acme.plan(each) if name == "add" and each in PLANS else each for each in entries]
        for name, entries in body.items()
    }
    headers = {"Idempotency_Key": key} if key else {}
    return acme.call("PUT", f"{PATH}/{link['id']}/plans", named, **headers)


PLANS = {
    "Germany 3 GB",
    "Germany 10 GB",
    "Albania 1 GB",
    "sandbox-no-endpoint",
    "sandbox-provider-error",
    "sandbox-no-esim",
    "sandbox-lost-reply",
}


def test_plans_are_added_and_removed(acme: Partner) -> None:
    link = acme.buy()
    change(acme, link, add=["Germany 10 GB"])
    detail = acme.get(f"{PATH}/{link['id']}").data
    first, second = (each["id"] for each in detail["activations"])
    change(acme, link, remove=[first], add=["Germany 3 GB", "Germany 3 GB"])
    change(acme, link, remove=[first])
    change(acme, link, remove=[second])
    acme.get(f"{PATH}/{link['id']}/history")
    acme.get(f"{PATH}/{link['id']}/history?per_page=2&page=2")
    acme.get(f"{PATH}/{link['id']}/topup-plans")
    acme.get("/v1/wallet")


def test_plan_changes_that_are_refused(acme: Partner) -> None:
    own_plans(acme, plan("Elsewhere", sponsor_profiles=[profile("sp-9")]))
    link = acme.buy()
    one = acme.data(f"{PATH}/{link['id']}")["activations"][0]["id"]
    change(acme, link)
    change(acme, link, add=[])
    change(acme, link, add=[MISSING, "nonsense", acme.plan("Elsewhere")])
    change(acme, link, add=["Albania 1 GB"])
    change(acme, link, remove=[MISSING, one, one])
    change(acme, link, add=["Germany 3 GB"] * 11)
    change(acme, link, replace=[one])
    change(acme, {"id": MISSING}, add=["Germany 3 GB"])
    change(acme, {"id": "nonsense"}, add=["Germany 3 GB"])
    acme.call("PUT", f"{PATH}/{link['id']}/plans?dry_run=true", {"remove": [one]})
    acme.call("PUT", f"{PATH}/{link['id']}/plans", body="[", Content_Type="application/json")
    acme.get(f"{PATH}/{link['id']}/history")


def test_plan_changes_that_fail_give_the_money_back(acme: Partner) -> None:
    sponsor = [{"id": "sp-atlas", "name": "Atlas", "color": "#1F6FEB"}]
    failing = (
        "sandbox-no-endpoint",
        "sandbox-provider-error",
        "sandbox-no-esim",
        "sandbox-lost-reply",
    )
    own_plans(
        acme,
        *(
            plan(f"my {each}", provider_plan_id=each, retail_price="2.00", sponsor_profiles=sponsor)
            for each in failing
        ),
    )
    link = acme.buy()
    one = acme.data(f"{PATH}/{link['id']}")["activations"][0]["id"]
    change(acme, link, key="k-1", add=["sandbox-provider-error"])
    change(acme, link, key="k-1", add=["Germany 3 GB"])
    added = ["Germany 10 GB", "sandbox-no-endpoint", "Germany 3 GB"]
    for _ in range(2):
        change(acme, link, key="k-2", remove=[one], add=added)
    change(acme, link, key="k-2", add=["Germany 3 GB"])
    change(acme, link, add=["sandbox-no-esim"])
    change(acme, link, add=["sandbox-lost-reply"])
    acme.get(f"{PATH}/{link['id']}")
    acme.get(f"{PATH}/{link['id']}/history")
    acme.get("/v1/transactions")


def test_one_key_is_one_change(acme: Partner) -> None:
    link = acme.buy()
    change(acme, link, key="k-1", add=["Germany 3 GB"])
    change(acme, link, key="k-1", add=["Germany 3 GB"])
    change(acme, link, key="k-1", add=["Germany 10 GB"])
    acme.get("/v1/wallet")


def test_a_link_is_suspended_and_comes_back(net: Net, acme: Partner) -> None:
    one = f"{PATH}/{acme.buy()['id']}"
    for change in ("suspend", "suspend", "reactivate", "reactivate"):
        acme.post(f"{one}/{change}")
        acme.get(f"{one}/network-status?live=true")
    acme.post(f"{one}/suspend", {"why": "lost"})
    acme.post(f"{one}/suspend", body="x", Content_Type="text/plain")
    acme.post(f"{PATH}/{MISSING}/suspend")
    acme.post(f"{PATH}/nonsense/reactivate")
    net.run("links", "set", one.rpartition("/")[2], "--status", "suspended")
    net.run("links", "set", one.rpartition("/")[2], "--status", "active")
    acme.get(one)


def test_a_link_is_renamed(acme: Partner) -> None:
    one = f"{PATH}/{acme.buy(name='car 7')['id']}"
    for body in (
        {"name": "car 8 (Zoë)"},
        {"name": None},
        {},
        {"name": 8},
        {"name": "x" * 256, "status": "active"},
    ):
        acme.call("PATCH", one, body)
    acme.get(one)
    acme.call("PATCH", f"{PATH}/{MISSING}", {"name": "x"})


def test_a_link_ends(net: Net, acme: Partner) -> None:
    one = f"{PATH}/{acme.buy()['id']}"
    acme.call("DELETE", one)
    acme.call("DELETE", one)
    acme.get(one)
    for path in ("suspend", "reactivate", "cancel"):
        acme.post(f"{one}/{path}")
    acme.call("PUT", f"{one}/plans", {"add": [acme.plan("Germany 3 GB")]})
    acme.get(f"{one}/qr")
    acme.get(f"{one}/network-status")
    acme.get(f"{one}/topup-plans")
    acme.get(f"{one}/history")
    acme.get("/v1/wallet")
    acme.call("DELETE", f"{PATH}/{MISSING}")
    second = acme.buy()
    net.run("links", "set", second["id"], "--status", "ended")
    net.run("links", "set", second["id"], "--status", "ended")
    net.run("links", "show", second["id"])


def test_a_link_is_cancelled_for_its_money(acme: Partner) -> None:
    link = acme.buy()
    change(acme, link, add=["Germany 10 GB"])
    one = f"{PATH}/{link['id']}"
    acme.post(f"{one}/cancel")
    acme.post(f"{one}/cancel")
    acme.get(one)
    acme.get(f"{one}/history")
    acme.get("/v1/transactions")
    acme.get("/v1/wallet")
    acme.post(f"{PATH}/{MISSING}/cancel")
    acme.post(f"{one}/cancel", {"because": "of rain"})


def test_the_qr_code_of_a_link(net: Net) -> None:
    demo = net.demo()  # Its links have the same activation codes in every installation.
    body = {"plan_id": demo.plan("Egypt 3 GB")}
    link = demo.ask("POST", PATH, body, Idempotency_Key="qr").data
    one = f"{PATH}/{link['id']}/qr"
    demo.get(one, Accept="image/svg+xml")
    demo.get(one, Accept="image/png")
    demo.get(f"{one}?size=128", Accept="image/png")
    demo.get(f"{one}?size=2049")
    demo.get(f"{one}?size=big", Accept="image/png")
    demo.get(one, Accept="text/html")
    demo.get(f"{PATH}/{MISSING}/qr")


def test_a_traveller_gets_a_page(net: Net) -> None:
    demo, nobody = net.demo(), net.stranger()
    body = {"plan_id": demo.plan("Egypt 3 GB")}
    link = demo.ask("POST", PATH, body, Idempotency_Key="traveller").data
    one = f"{PATH}/{link['id']}/handover"
    asked = {"expires_in": 86_400, "top_up_url": "https://shop.example/more?a=1&b=2"}
    made = demo.post(one, asked, Idempotency_Key="page").data
    demo.post(one, asked, Idempotency_Key="page")
    demo.post(one, {**asked, "language": "de"}, Idempotency_Key="page")
    page = urlsplit(made["url"]).path
    nobody.get(page)
    nobody.get(f"{page}/qr.png")
    other = urlsplit(demo.post(one, {"picture": True, "language": "fr"}).data["url"]).path
    assert nobody.ask("GET", page).status == 404, "another one has taken its place"
    assert nobody.ask("GET", f"{other}/qr.png").status == 200
    nobody.call("POST", page)
    demo.call("DELETE", one)
    demo.call("DELETE", one)
    nobody.call("HEAD", page)
    for wrong in (
        {"expires_in": 299, "language": "tlh", "picture": 1},
        {"expires_in": "3600", "top_up_url": "javascript:alert(1)"},
        {"top_up_url": "https://user@shop.example/"},
        {"top_up_url": "https://münchen.example/"},
    ):
        demo.post(one, wrong)
    demo.ask("DELETE", f"{PATH}/{link['id']}")
    demo.post(one, {})
    demo.call("DELETE", one)
    demo.post(f"{PATH}/{MISSING}/handover", {})


def test_links_are_listed_and_found(net: Net, acme: Partner) -> None:
    own_plans(acme, plan("100% Greece", coverage=covering("GR"), retail_price="1.00"))
    links = [acme.buy("100% Greece", name=f"cär {index}") for index in range(5)]
    acme.ask("DELETE", f"{PATH}/{links[1]['id']}")
    acme.ask("POST", f"{PATH}/{links[2]['id']}/suspend")
    net.until(lambda: acme.data(f"{PATH}?status=ended")["meta"]["total"] == 1)
    net.until(lambda: acme.data(f"{PATH}?status=suspended")["meta"]["total"] == 1)
    for query in (
        "",
        "?per_page=2",
        "?per_page=2&page=2",
        "?per_page=2&page=3",
        "?per_page=2&page=4",
        "?status=ended",
        "?status=suspended",
        "?status=lost&sort=up&plan_id=x",
        "?search=C%C3%84R%203",
        "?search=100%25",
        "?search=_",
        f"?search={links[0]['iccid']}&order=up",
        f"?plan_id={links[0]['activations'][0]['plan_id']}&sort=created_at&per_page=1",
        "?created_from=2020-01-01&expires_before=2099-01-01&sort=-expires_at",
        f"?search={links[0]['id']}",
        "?page=0&per_page=x",
    ):
        reply = acme.ask("GET", f"{PATH}{query}")
        told = reply.json.get("data") or reply.json
        for each in told.get("data", []):
            for name in (
                "lpa_profile",
                "apple_activation_url",
                "android_activation_url",
                "capabilities",
                "sponsor_profile",
            ):
                assert each.pop(name)
        net.note(f"GET {PATH}{query}, in short", f"-> {reply.status}", pretty(net.masks.tree(told)))
    acme.get(f"{PATH}?status=lost&page=0")
    net.run("links", "list", "--org", acme.id)


def test_nobody_sees_the_link_of_another(acme: Partner, rival: Partner) -> None:
    bought = acme.buy()
    link = bought["id"]
    rival.get(PATH)
    rival.get(f"{PATH}/{bought['iccid']}")
    for path in ("", "/history", "/qr", "/network-status", "/topup-plans"):
        rival.get(f"{PATH}/{link}{path}")
        acme.get(f"{PATH}/89883999012345678901{path}")
    rival.call("PATCH", f"{PATH}/{link}", {"name": "mine"})
    rival.call("DELETE", f"{PATH}/{link}")


def test_the_network_status_of_a_link(acme: Partner) -> None:
    one = f"{PATH}/{acme.buy()['id']}"
    acme.get(f"{one}/network-status")
    acme.get(f"{one}/network-status")
    acme.get(f"{one}/network-status?live=true")
    acme.get(f"{one}/network-status?live=maybe")
    acme.get(f"{one}/history?per_page=0")
    acme.get(f"{one}/history?kind=topup")
