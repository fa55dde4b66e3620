"""Single lookups."""

import pytest

from tests.net.net import Net, Partner

pytestmark = pytest.mark.each_database

PATH = "/number-lookup"


def test_a_number_is_looked_up_and_charged(acme: Partner) -> None:
    reply = acme.post(f"{PATH}?phone_number=%2B14155552671")
    acme.post(f"{PATH}?phone_number=+447400123456")
    acme.post(PATH, {"phone_number": "+4915112345678"})
    acme.post(f"{PATH}?phone_number=%2B390612345678&max_age=0")
    acme.get(f"{PATH}/lookups/{reply.json['meta']['lookup_id']}")
    acme.get("/v1/wallet")
    acme.get("/v1/transactions")


def test_what_numbers_of_the_world_are(acme: Partner) -> None:
    for number in (
        "+33612345678",
        "+33142685300",
        "+18005551234",
        "+5511961234567",
        "+81312345678",
        "+919812345678",
        "+447911123456",
        "+441212345678",
        "+4407400123456",
        "+12",
        "+999123456789",
        "+61491570156",
        "+34900123456",
    ):
        acme.post(PATH, {"phone_number": number})


def test_inputs_that_are_refused(acme: Partner) -> None:
    acme.post(PATH)
    acme.post(f"{PATH}?phone_number=4155552671")
    acme.post(f"{PATH}?phone_number=%2B0155552671")
    acme.post(f"{PATH}?phone_number=%2B1415555267199999")
    acme.post(f"{PATH}?phone_number=")
    acme.post(f"{PATH}?phone_number=%2B14155552671&max_age=-1")
    acme.post(f"{PATH}?phone_number=%2B14155552671&dry_run=true")
    acme.post(f"{PATH}?phone_number=%2B14155552671&phone_number=%2B14155552672")
    acme.post(PATH, {"phone_number": 14155552671})
    acme.post(PATH, {"phone_number": "+14155552671", "country": "US"})
    acme.post(PATH, ["+14155552671"])
    acme.post(PATH, body="{", Content_Type="application/json")
    acme.post(PATH, body="+14155552671", Content_Type="text/plain")
    acme.post(PATH, body='\ufeff{"phone_number": "+14155552671"}', Content_Type="application/json")
    acme.post(f"{PATH}?phone_number=%2B14155552671", Idempotency_Key="a b\tc")
    acme.post(f"{PATH}?phone_number=%2B14155552671", Idempotency_Key="k-" * 128)
    acme.get(PATH)
    acme.get(f"{PATH}/lookups/nonsense")
    acme.get(f"{PATH}/lookups/8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11")
    acme.get("/v1/wallet")


def test_numbers_of_the_sandbox_fail_on_demand(acme: Partner) -> None:
    acme.post(PATH, {"phone_number": "+15005550001"})
    acme.post(PATH, {"phone_number": "+15005550003"})
    acme.post(PATH, {"phone_number": "+15005550004"})
    acme.post(PATH, {"phone_number": "+15005550004"})
    acme.post(PATH, {"phone_number": "+15005550002"})
    acme.get("/v1/transactions")


def test_what_money_decides(net: Net) -> None:
    acme = net.partner("0.01")
    acme.post(PATH, {"phone_number": "+14155552671"})
    acme.post(PATH, {"phone_number": "+14155552671"})
    acme.post(PATH, {"phone_number": "+14155552671"})
    net.partner("", name="Walletless").post(PATH, {"phone_number": "+14155552671"})
    free = net.partner("", "--price", "0", name="Free")
    free.post(PATH, {"phone_number": "+14155552671"})
    dear = net.partner("100.00", "--price", "1.25", name="Dear")
    dear.post(PATH, {"phone_number": "+14155552671"})
    dear.get("/v1/wallet")


def test_lookups_are_switched_off_for_one(net: Net, acme: Partner) -> None:
    job = acme.job("+14155552671")["job_id"]
    net.run("org", "set", acme.id, "--lookup", "off")
    net.until(lambda: acme.ask("POST", PATH).status == 403)
    acme.post(PATH)
    acme.post(f"{PATH}/bulk", {"phone_numbers": []})
    acme.get(f"{PATH}/bulk")
    acme.get(f"{PATH}/bulk/{job}")
    net.run("org", "set", acme.id, "--lookup", "on", "--price", "0.02")
    net.until(lambda: acme.ask("POST", PATH).status == 422)
    acme.post(PATH, {"phone_number": "+14155552671"})


def test_one_key_is_one_lookup(acme: Partner) -> None:
    first = {"phone_number": "+14155552671"}
    acme.post(PATH, first, Idempotency_Key="k-1")
    acme.post(PATH, first, Idempotency_Key="k-1")
    acme.post(f"{PATH}?phone_number=%2B14155552671", Idempotency_Key="k-1")
    acme.post(PATH, {"phone_number": "+447400123456"}, Idempotency_Key="k-1")
    acme.post(f"{PATH}/bulk", {"phone_numbers": ["+14155552671"]}, Idempotency_Key="k-1")
    acme.post(PATH, {"phone_number": "+15005550001"}, Idempotency_Key="k-2")
    acme.post(PATH, first, Idempotency_Key="k-2")
    acme.get("/v1/wallet")


def test_nobody_sees_the_lookup_of_another(acme: Partner, rival: Partner) -> None:
    found = acme.look_up()["meta"]
    rival.get(f"{PATH}/lookups/{found['lookup_id']}")
    rival.get(f"/v1/transactions/{found['charge']['transaction_id']}")
    acme.get(f"/v1/transactions/{found['charge']['transaction_id']}")


def test_what_is_erased_is_gone(net: Net, acme: Partner) -> None:
    lookup = acme.look_up()["meta"]["lookup_id"]
    job = acme.job("+14155552671", "+447400123456")["job_id"]
    link = acme.buy(name="Zoe's phone")["id"]
    found = acme.look_up("+447400123456")["meta"]["lookup_id"]
    erase = ("privacy", "erase")
    rival = net.partner(name="Rival").id
    for kind, each in (("--lookup", lookup), ("--job", job), ("--link", link)):
        net.run(*erase, kind, each, "--org", rival)
    net.run(*erase, "--lookup", lookup, "--dry-run")
    net.run(*erase, "--lookup", lookup)
    net.run(*erase, "--lookup", lookup)
    net.run(*erase, "--job", job)
    net.run(*erase, "--link", link)
    net.run(*erase, "--org", acme.id, "--number", "+447400123456", "--dry-run")
    net.run(*erase, "--org", acme.id, "--number", "+447400123456")
    gone = (f"{PATH}/lookups/{lookup}", f"{PATH}/lookups/{found}", f"{PATH}/bulk/{job}")
    for path in gone:
        net.until(lambda path=path: acme.ask("GET", path).status == 404)
        acme.get(path)
    acme.get(f"{PATH}/bulk/{job}/results")
    net.until(lambda: not acme.data("/v1/links")["data"][0]["name"])
    acme.get(f"/v1/links/{link}")
    acme.get("/v1/transactions")
