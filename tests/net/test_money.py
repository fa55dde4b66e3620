"""Wallet, account, transactions, usage and statements as partners see them; deposits."""

import pytest

from tests.net.net import Net, Partner

pytestmark = pytest.mark.each_database

MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"


def shopping(net: Net) -> Partner:
    """Return somebody with one transaction of each kind but the fee."""
    acme = net.partner()
    acme.look_up()
    acme.job("+14155552671", "+15005550001")
    link = acme.buy("Germany 3 GB")
    acme.ask("PUT", f"/v1/links/{link['id']}/plans", {"add": [acme.plan("Germany 10 GB")]})
    acme.ask("POST", "/v1/links", {"plan_id": acme.plan("sandbox-no-endpoint")})
    net.quietly(
        "wallet", "adjust", acme.id, "-1.50", "--reference", "a-1", "--reason", "a correction"
    )
    acme.until_seen("a correction")
    return acme


def test_transactions_are_listed(net: Net) -> None:
    acme = shopping(net)
    net.masks.plain["2026-03-10T00:00:00Z"] = "now -10 h"  # However long the house has stood.
    everything = acme.get("/v1/transactions").data["data"]
    acme.get("/v1/transactions", Accept="text/csv")
    topup = next(each for each in everything if each["kind"] == "topup")
    for query in (
        "?kind=topup",
        "?kind=refund&per_page=1",
        "?kind=refund&per_page=1&page=2",
        "?per_page=3&page=3",
        "?per_page=3&page=4",
        f"?reference={topup['reference']['id']}",
        "?from=2026-03-10&to=2026-03-11&kind=deposit",
        "?from=2026-03-11",
        "?to=2026-03-10T00:00:00Z",
        "?kind=gift",
        "?from=yesterday&to=2026-13-01&per_page=1000",
        "?color=red&kind=adjustment",
    ):
        acme.get(f"/v1/transactions{query}")
    acme.get("/v1/transactions?kind=lookup", Accept="text/csv")
    acme.get("/v1/transactions?kind=refund", Accept="text/csv")
    acme.get("/v1/transactions", Accept="image/png")
    acme.get(f"/v1/transactions/{topup['id']}")
    acme.get(f"/v1/transactions/{MISSING}")
    acme.get("/v1/transactions/nonsense")


def test_usage_is_summed(net: Net) -> None:
    acme = shopping(net)
    net.until(lambda: "topup" in str(acme.data("/v1/usage?group_by=kind")))
    for query in (
        "",
        "?group_by=day",
        "?group_by=month",
        "?group_by=kind",
        "?group_by=plan",
        "?group_by=day,kind",
        "?group_by=kind,plan&from=2026-03-01&to=2026-04-01",
        "?from=2026-03-11",
        "?to=2026-03-10",
        "?to=2026-03-11",
        "?group_by=hour",
        "?group_by=day,kind,plan",
        "?from=x&to=y",
    ):
        acme.get(f"/v1/usage{query}")
    net.partner(name="Quiet").get("/v1/usage?group_by=kind")


def test_a_statement_of_the_present_month(net: Net) -> None:
    acme = shopping(net)
    net.until(lambda: acme.data("/v1/statements"))
    acme.get("/v1/statements")
    path = "/v1/statements/2026-03"
    acme.get(path)
    acme.get(path, Accept="text/csv")
    acme.get(path, Accept="text/html")
    acme.get(path, Accept="image/png")
    acme.get("/v1/statements/2026-02")
    acme.get("/v1/statements/2026-13")
    walletless = net.partner("", name="Walletless")
    walletless.get("/v1/statements")
    walletless.get(path)


def test_wallet_and_account(net: Net) -> None:
    acme = net.partner("12.50", "--price", "0.0123", "--monthly-link-fee", "0.75")
    acme.get("/v1/wallet")
    acme.get("/v1/account")
    for body in (
        {"low_balance_threshold": "20.00"},
        {"low_balance_threshold": "5"},
        {"low_balance_threshold": None},
        {"low_balance_threshold": "-1"},
        {"low_balance_threshold": 5},
        {"low_balance_threshold": "0.0000001", "name": "x"},
        {},
    ):
        acme.call("PATCH", "/v1/account", body)
    acme.get("/v1/account?currency=EUR")
    walletless = net.partner("", name="Walletless")
    walletless.get("/v1/wallet")
    walletless.get("/v1/account")
    walletless.get("/v1/transactions")


def test_a_payment_service_deposits(net: Net) -> None:
    acme, walletless = net.partner("0.01"), net.partner("", name="Walletless")
    made = net.run("client", "create", "--m2m", "--scope", "deposits")
    bank = Partner(net, "bank", made, "")
    body = {"organization": acme.id, "amount": "25.00", "reference": "pay-1"}
    bank.post("/v1/deposits", body)
    bank.post("/v1/deposits", body)
    bank.post("/v1/deposits", body | {"amount": "26.00"})
    bank.post("/v1/deposits", body | {"amount": "0", "reference": ""})
    bank.post("/v1/deposits", body | {"amount": 1, "organization": "x", "by": "me"})
    bank.post("/v1/deposits", body | {"organization": MISSING, "reference": "pay-2"})
    bank.post("/v1/deposits", body | {"organization": walletless.id, "reference": "pay-3"})
    bank.post("/v1/deposits", {})
    bank.post("/v1/deposits", body="{", Content_Type="application/json")
    bank.post("/v1/deposits", body="x", Content_Type="text/plain")
    acme.post("/v1/deposits", body)
    acme.get("/v1/wallet")
    acme.get("/v1/transactions")
    bank.get("/v1/account", X_Organization_Id=acme.id)
    Partner(net, "everything", net.run("client", "create", "--m2m"), "").post("/v1/deposits", body)
    net.run("org", "set", acme.id, "--status", "suspended")
    net.until(lambda: acme.ask("GET", "/v1/wallet").status == 403)
    bank.post("/v1/deposits", body | {"reference": "pay-4"})
    net.run("client", "revoke", bank.client_id)
    net.until(lambda: bank.ask("GET", "/v1/wallet").status == 401)
    bank.post("/v1/deposits", body | {"reference": "pay-5"})


def test_operators_move_money(net: Net) -> None:
    acme = net.partner("10.00")
    charge = acme.look_up()["meta"]["charge"]["transaction_id"]
    net.run("wallet", "show", acme.id)
    net.run("wallet", "deposit", acme.id, "5.00", "--reference", "bank-2")
    net.run("wallet", "deposit", acme.id, "5.00", "--reference", "bank-2")
    net.run("wallet", "deposit", acme.id, "6.00", "--reference", "bank-2")
    net.run("wallet", "deposit", acme.id, "-6.00", "--reference", "bank-3")
    net.run("wallet", "deposit", MISSING, "6.00", "--reference", "bank-4")
    net.run("wallet", "adjust", acme.id, "-2.25", "--reference", "a-1", "--reason", "a fee")
    net.run("wallet", "adjust", acme.id, "-2.25", "--reference", "a-1", "--reason", "another")
    net.run("wallet", "adjust", acme.id, "-200", "--reference", "a-2", "--reason", "too much")
    net.run("wallet", "adjust", acme.id, "1.00", "--reference", "a-3", "--reason", "a gift")
    refund, wrong = ("wallet", "refund", charge, "--reference"), ("--reason", "wrong", "--amount")
    for reference, amount in (("r-1", "0.002"), ("r-1", "0.002"), ("r-2", "0.004")):
        net.run(*refund, reference, *wrong, amount)
    net.run(*refund, "r-3", "--reason", "the rest")
    net.run(*refund, "r-4", "--reason", "again")
    net.run("wallet", "refund", MISSING, "--reference", "r-5", "--reason", "nothing")
    acme.until_seen("the rest")
    acme.get("/v1/transactions")
    acme.get("/v1/wallet")
    walletless = net.partner("", name="Walletless")
    net.run("wallet", "show", walletless.id)
    net.run("wallet", "deposit", walletless.id, "6.00", "--reference", "bank-1")
    net.run("org", "set", walletless.id, "--wallet")
    net.run("wallet", "show", walletless.id)
    net.print("wallet", "show", acme.id)
    net.run("audit", "balance", acme.id)
    net.run("audit", "replay", "--org", acme.id)


def test_limits_of_an_organization(net: Net, acme: Partner) -> None:
    net.run("org", "set", acme.id, "--spending-limit", "5.51")
    net.until(lambda: acme.data("/v1/account")["limits"]["spending"])
    acme.get("/v1/account")
    acme.post("/v1/links", {"plan_id": acme.plan("Germany 3 GB")})
    acme.post("/v1/links", {"plan_id": acme.plan("Germany 3 GB")})
    acme.post("/number-lookup/bulk", {"phone_numbers": [f"+1415{n:07}" for n in range(110)]})
    acme.job("+15005550001", "+14155552671")
    acme.get("/v1/account")
    acme.post("/number-lookup", {"phone_number": "+14155552671"})
    link = acme.data("/v1/links")["data"][0]
    acme.call("PUT", f"/v1/links/{link['id']}/plans", {"add": [acme.plan("Germany 3 GB")]})
    net.run("org", "set", acme.id, "--spending-limit", "1.00")
    acme.get("/v1/account")
    net.run("org", "set", acme.id, "--spending-limit", "none")
    acme.call("PUT", f"/v1/links/{link['id']}/plans", {"add": [acme.plan("Germany 3 GB")]})
    net.run("org", "set", acme.id)
    net.run("org", "set", MISSING, "--price", "1")
    net.run("org", "set", acme.id, "--price", "x")


def test_the_rate_of_an_organization_is_limited(net: Net, acme: Partner) -> None:
    net.quietly("org", "set", acme.id, "--rate-limit", "3")
    net.until(lambda: early(acme.ask("GET", "/v1/account").headers.get("ratelimit", "")))
    acme.get("/v1/account")
    net.until(lambda: acme.ask("GET", "/v1/account").status == 429)
    acme.get("/v1/account")
    acme.post("/number-lookup", {"phone_number": "+14155552671"})
    acme.post("/v1/links", {"plan_id": MISSING})
    acme.get("/v1/nowhere")


def early(limit: str) -> bool:
    """Tell whether the first request of a minute was counted, and the minute will not end soon."""
    return "r=2;" in limit and int(limit.rpartition("t=")[2]) >= 15


def test_operators_reverse_deposits_and_pay_out(net: Net) -> None:
    acme = net.partner("100.00")
    acme.look_up()
    net.quietly("wallet", "deposit", acme.id, "40", "--reference", "bank-2")
    facts = ("--reason", "a charge-back", "--value-date", "2026-03-09")
    reverse = ("wallet", "reverse", acme.id)
    net.run("wallet", "payout", acme.id, "90", "--reference", "out-1", *facts)
    net.run("wallet", "payout", acme.id, "90", "--reference", "out-1", *facts)
    net.run("wallet", "payout", acme.id, "90.01", "--reference", "out-1", *facts)
    net.run("wallet", "payout", acme.id, "50", "--reference", "out-2", *facts)
    net.run("wallet", "payout", acme.id, "-1", "--reference", "out-2", *facts)
    net.run("wallet", "payout", acme.id, "1", "--reference", "out-2", "--reason", "no day")
    net.run(*reverse, "bank-2", "--reference", "back-1", "--amount", "40.01", *facts)
    net.run(*reverse, "bank-9", "--reference", "back-1", *facts)
    net.run(*reverse, "bank-1", "--reference", "back-1", "--reason", "x", "--value-date", "9.3.26")
    net.run(*reverse, "bank-1", "--reference", "back-1", *facts)
    net.run(*reverse, "bank-1", "--reference", "back-1", *facts)
    net.run(*reverse, "bank-1", "--reference", "back-2", *facts)
    net.run("wallet", "reverse", MISSING, "bank-1", "--reference", "back-1", *facts)
    net.print("wallet", "reverse", "--help")
    net.run("wallet", "payout", acme.id, "0.01", "--reference", "out-2", *facts)
    acme.get("/v1/wallet")
    acme.post("/number-lookup", {"phone_number": "+14155552671"})
    acme.post("/v1/links", {"plan_id": acme.plan("Germany 3 GB")})
    net.run("wallet", "deposit", acme.id, "20", "--reference", "bank-3")
    net.run("wallet", "deposit", acme.id, "40", "--reference", "bank-4")
    acme.until_seen("Claim settled")
    acme.get("/v1/transactions", Accept="text/csv")
    acme.get("/v1/statements/2026-03")
    acme.get("/v1/events?types=wallet.reversed,wallet.claim_changed,wallet.paid_out")
    net.run("audit", "balance", acme.id)
