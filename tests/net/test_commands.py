"""The commands of operators, each on an installation of its own that does not serve."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.installation import sqlite_only
from tests.net.house import House, house
from tests.net.net import Net
from tests.plan_files import plan
from tests.seeds import Seed
from tests.support.providers.esimgo import KEY, EsimGoServer

pytestmark = pytest.mark.each_database

MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"


@pytest.fixture(name="house")
def desk(tmp_path: Path, migrated: Seed) -> Iterator[House]:
    with house(tmp_path / "desk", migrated) as made:
        yield made


def test_organizations_and_clients(net: Net) -> None:
    made = net.run(
        "org", "create", "--name", "Acme", "--price", "0.01", "--monthly-link-fee", "1.5"
    )
    net.run("org", "create", "--name", "Walletless", "--no-wallet")
    net.run("org", "list")
    net.print("org", "list")
    net.run("org", "set", made["id"], "--status", "suspended")
    net.run("org", "set", made["id"], "--status", "inactive")
    net.run("org", "set", made["id"], "--status", "active")
    net.run("org", "set", MISSING, "--status", "suspended")
    net.run("org", "set", "nonsense", "--status", "active")
    net.run("org", "set", made["id"], "--price", "default", "--rate-limit", "60", "--lookup", "off")
    net.run("org", "set", made["id"])
    net.run("org", "create")
    net.run("org", "create", "--name", "Bad", "--price", "-1")
    client = net.run("client", "create", "--org", made["id"], "--scope", "wallet")
    net.run("client", "create", "--m2m")
    net.run("client", "create")
    net.run("client", "create", "--org", MISSING)
    net.run("client", "create", "--org", made["id"], "--scope", "everything")
    net.run("client", "rotate-secret", client["client_id"])
    net.run("client", "list")
    net.run("client", "revoke", client["client_id"])
    net.run("client", "revoke", client["client_id"])
    net.run("client", "rotate-secret", client["client_id"])
    net.run("client", "revoke", "cl_nobody")
    net.print("client", "list")
    net.run("wallet", "show", made["id"])
    net.run("nonsense")
    net.print("org", "--help")
    net.print("--help")


def test_operators_and_what_another_must_approve(net: Net) -> None:
    acme = net.quietly("org", "create", "--name", "Acme")["id"]
    ann = net.run("operator", "create", "ann", "--may", "money,approve,catalogue,keys,audit")
    key = {"OPERATOR_KEY": ann["key"]}
    net.run("operator", "list")
    net.run("wallet", "deposit", acme, "50", "--reference", "bank-1")
    net.run("wallet", "deposit", acme, "50", "--reference", "bank-1", OPERATOR_KEY="opk_wrong")
    net.run("wallet", "deposit", acme, "50", "--reference", "bank-1", **key)
    bob = net.run("operator", "create", "bob", "--may", "approve", **key)
    bob = net.run("operator", "rotate-key", bob["id"], OPERATOR_KEY=bob["key"])
    eve = net.run("operator", "create", "eve", "--may", "money", **key)
    net.run("wallet", "deposit", acme, "5", "--reference", "bank-2", OPERATOR_KEY=bob["key"])
    net.run("operator", "approvals", "20.00", **key)
    end = net.run("operator", "approvals", "none", **key)
    net.run("wallet", "adjustments", "approve", end["proposal"], **key)
    asked = {"OPERATOR_KEY": eve["key"]}
    net.run("wallet", "adjust", acme, "-25", "--reference", "a-1", "--reason", "a fine", **asked)
    net.run("wallet", "adjust", acme, "30", "--reference", "a-2", "--reason", "a gift", **asked)
    net.run("wallet", "deposit", acme, "21", "--reference", "bank-3", **asked)
    net.run("wallet", "adjust", acme, "-2", "--reference", "a-3", "--reason", "small", **asked)
    listed = net.run("wallet", "adjustments", "list")
    ids = [each.get("id") or each.get("adjustment_id") for each in listed["data"]]
    net.run("wallet", "adjustments", "approve", ids[0], **asked)
    net.run("wallet", "adjustments", "approve", ids[0], OPERATOR_KEY=bob["key"])
    net.run("wallet", "adjustments", "reject", ids[1], **key)
    net.run("wallet", "adjustments", "approve", ids[1], **key)
    net.run("wallet", "adjustments", "reject", MISSING, **key)
    net.print("wallet", "adjustments", "list")
    for month in ("2026-03", "2026-02", "2026-04", "2026-3"):
        net.run("wallet", "adjustments", "list", "--month", month)
    net.run("wallet", "show", acme)
    newer = net.run("operator", "rotate-key", bob["id"], OPERATOR_KEY=bob["key"])
    net.run("operator", "rotate-key", MISSING, **key)
    net.run("operator", "revoke", bob["id"], **key)
    net.run("operator", "revoke", bob["id"], **key)
    net.print("operator", "list", OPERATOR_KEY=newer["key"])
    net.run("operator", "list", "--acts")
    net.run("audit", "replay", "--org", acme)
    net.run("audit", "verify")
    net.run("operator", "create", "", "--may", "fly", **key)


def test_people_and_prices_that_another_must_approve(net: Net) -> None:
    acme = net.quietly("org", "create", "--name", "Acme")["id"]
    ann = net.quietly("operator", "create", "ann", "--may", "money,approve,catalogue,keys,audit")
    key = {"OPERATOR_KEY": ann["key"]}
    net.quietly("operator", "approvals", "20.00", **key)
    bob = net.quietly("operator", "create", "bob", "--may", "approve", **key)
    eve = net.quietly("operator", "create", "eve", "--may", "money", **key)
    bob = net.quietly("operator", "rotate-key", bob["id"], OPERATOR_KEY=bob["key"])
    zoe = ("operator", "create", "zoe", "--may", "money")
    waits = net.run(*zoe, **key)
    net.print(*zoe, **key)
    net.run("wallet", "adjustments", "approve", waits["id"], OPERATOR_KEY=bob["key"])
    net.run(*zoe, **key)
    net.run("operator", "rotate-key", eve["id"], **key)
    net.run("client", "create", "--m2m", "--scope", "deposits", **key)
    net.run("org", "create", "--name", "Dear", "--price", "0.02", "--monthly-link-fee", "1", **key)
    net.run("org", "set", acme, "--price", "0.01", **key)
    net.run("prices", "lookup", "0.01", **key)
    net.print("wallet", "adjustments", "list")
    net.run("wallet", "adjustments", "list", "--month", "2026-03")
    net.run("operator", "revoke", eve["id"], **key)
    net.run("audit", "verify")


def test_keys(net: Net) -> None:
    net.masks.fleeting[r"^checkpoints [0-9a-f]{8}$"] = "checkpoints <key>"
    net.run("keys", "list")
    net.quietly("keys", "rotate")
    for kind in ("signing", "pepper", "webhooks", "checkpoints"):
        net.run("keys", "rotate", kind)
    net.run("keys", "rotate", "front-door")
    listed = net.run("keys", "list")["data"]
    first = next(iter(each for each in listed if "signing" in str(each.values())), listed[0])
    name = next(
        str(value) for key, value in first.items() if key in {"key", "id", "kid", "key_id", "name"}
    )
    net.run("keys", "revoke", name)
    net.run("keys", "revoke", name, "--yes")
    net.run("keys", "revoke", "nonsense", "--yes")
    net.run("operator", "list", "--acts")


def test_the_catalogue(net: Net) -> None:
    acme = net.quietly("org", "create", "--name", "Acme")["id"]
    plans = [plan("One"), plan("Two", cost="9.00"), plan("Three", organization_id=acme)]
    file = net.file("plans.json", json.dumps({"plans": plans}))
    net.run("plans", "import", file)
    net.run("plans", "import", file, "--below-cost")
    listed = net.run("plans", "list")
    net.print("plans", "list")
    one = listed["data"][0]["id"]
    net.run("plans", "set", one, "--disable")
    net.run("plans", "set", one, "--disable")
    net.run("plans", "set", one, "--enable", "--exclude", acme, "--price", "6.00")
    net.run("plans", "set", one, "--price", "7.00", "--exclude", MISSING)
    net.run("plans", "set", one, "--include", acme, "--price", "5.00", "--from", "2026-04-01")
    net.run("plans", "set", one, "--price", "5.00", "--from", "2026-01-01")
    net.run("plans", "set", one, "--price", "free")
    net.run("plans", "set", MISSING, "--price", "1.00")
    net.run("plans", "set", MISSING, "--disable")
    net.run("plans", "set", one, "--from", "2026-04-01")
    net.run("plans", "set", one)
    net.run("plans", "sync", "simulated", "--dry-run")
    net.run("plans", "sync", "esimgo")
    net.run("prices", "lookup")
    net.run("prices", "lookup", "0.006")
    net.run("prices", "lookup", "0.007", PRICE_PER_LOOKUP="0.006")
    net.run("prices", "lookup", "free")
    net.print("prices", "lookup")


def test_work_that_waits(net: Net) -> None:
    for command in (
        ("jobs", "list"),
        ("jobs", "list", "--unfinished"),
        ("work", "retry"),
        ("jobs", "cancel", MISSING),
        ("links", "list"),
        ("links", "show", MISSING),
        ("links", "show", "nonsense"),
        ("links", "set", MISSING, "--status", "suspended"),
        ("links", "set", MISSING, "--status", "active"),
        ("links", "set", MISSING, "--status", "ended"),
        ("webhooks", "list"),
        ("webhooks", "redeliver", MISSING, MISSING),
        ("webhooks", "disable", MISSING),
        ("projections", "status"),
        ("projections", "rebuild", "wallets"),
        ("projections", "rebuild", "nonsense"),
        ("projections", "rebuild", "--all"),
        ("months", "close", "2026-02"),
        ("months", "close", "2026-03"),
        ("migrate",),
    ):
        net.run(*command)


def test_links_that_were_issued_elsewhere(net: Net) -> None:
    acme = net.quietly("org", "create", "--name", "Acme")["id"]
    plans = [plan("One")]
    net.quietly("plans", "import", net.file("plans.json", json.dumps({"plans": plans})))
    one = net.quietly("plans", "list")["data"][0]["id"]
    net.run("links", "import", net.file("links.csv", "iccid\n1\n"))
    bought = {"plan_id": one, "bought_at": "2026-03-01T10:00:00Z"}
    link = {"organization_id": acme, "iccid": "89883999000000000011", "plans": [bought]}
    file = net.file("links.json", json.dumps({"links": [link]}))
    net.run("links", "import", file, "--dry-run")
    net.run("links", "import", file)
    net.run(
        "links", "import", net.file("wrong.json", json.dumps({"links": [{**link, "plans": []}]}))
    )
    net.run("links", "import", net.file("empty.json", json.dumps({"links": []})))
    whole = net.file("whole.json", json.dumps({"links": [{**link, "endpoint_id": "1000011"}]}))
    net.run("links", "import", whole, "--dry-run")
    net.run("links", "import", whole)
    net.run("links", "import", whole)
    net.run("links", "show", link["iccid"])


def test_providers(net: Net) -> None:
    net.run("providers", "check")
    net.run("providers", "check", "nobody")
    net.run("providers", "drain", "simulated")
    net.run("providers", "drain", "simulated")
    net.run("providers", "check", "simulated")
    net.run("providers", "drain", "simulated", "--end")
    net.run("providers", "drain", "nobody", "--end")
    net.run("providers", "smoke", "simulated", "--spend-max", "1.00")
    net.run("providers", "smoke", "offline", "--spend-max", "1.00", "--number", "+14155552671")


def test_an_audit_of_little(net: Net) -> None:
    acme = net.quietly("org", "create", "--name", "Acme")["id"]
    net.run("audit", "balance", acme)
    net.run("audit", "balance", MISSING)
    net.run("audit", "statement", acme, "2026-03")
    net.run("audit", "prove", MISSING)
    net.run("audit", "checkpoint")
    net.run("audit", "checkpoint", CHECKPOINT_LAG_S="0")
    net.run("audit", "check", net.file("proof.json", "{}"))
    net.run("audit", "verify", "--against", net.file("note", "nonsense"))
    net.run("audit", "export", "--format", "xml")
    net.run("audit", "export", "--from", "yesterday")
    net.run("audit", "import", net.file("log.jsonl", "{}\n"))
    net.run("audit", "margin")
    net.run("audit", "trial-balance")
    net.run("audit", "reconcile", net.file("bank.csv", "a,b\n1,2\n"), "--deposits")
    net.run("audit", "reconcile", net.file("bank.csv", "a,b\n1,2\n"))
    net.run("privacy", "erase")
    net.run("privacy", "erase", "--before", "2026-03", "--dry-run")
    net.run("privacy", "erase", "--before", "2027-01")
    net.run("privacy", "erase", "--lookup", MISSING)
    net.run("privacy", "erase", "--org", MISSING, "--number", "+14155552671")


def test_settings_and_doctor(net: Net) -> None:
    status, out, _ = net.house.command("settings", "--json")
    told = {each["name"]: each for each in json.loads(out)["data"]}
    for name in ("DATABASE_URL", "SIGNING_KEYS", "PORT"):
        told[name]["value"] = f"<{name}>"
    net.note("settings --json", f"-> {status}", *(json.dumps(each) for each in told.values()))
    status, out, _ = net.house.command("settings", "--json", BROKER_URL="amqp://we:hush@mq/v")
    shown = [each for each in json.loads(out)["data"] if each["name"] == "BROKER_URL"]
    net.note("settings --json with a password", f"-> {status}", *map(json.dumps, shown))
    net.run("settings", PORT="many")
    net.run("settings", CURRENCY="XXX")
    net.run("settings", SANDBOX="perhaps")
    net.run("org", "list", LOOKUP_PROVIDER="nobody")
    net.run("org", "list", DATABASE_URL="mysql://x")
    net.run("org", "list", DATABASE_URL=f"sqlite:///{net.house.home}/none.db")
    net.run("org", "create", "--name", "A", CURRENCY="EUR")
    for process in ("worker", "dispatcher", "clock", "web"):
        net.print(process)
    net.run("org", "create", "--name", "B", CURRENCY="USD")
    net.run("serve", CURRENCY="XXX")
    net.print("projector", DATABASE_URL="mysql://x")
    net.run("finance", DATABASE_URL=f"sqlite:///{net.house.home}/none.db")
    net.run("settings", "--adopt")


@sqlite_only("on PostgreSQL there are connections, too")
def test_what_is_used_and_when_it_is_full(net: Net) -> None:
    net.masks.hide_sizes()
    net.quietly("org", "create", "--name", "Acme")
    net.run("doctor", "--capacity")
    net.run("doctor", "--capacity", "--disk", "0.00001")
    net.print("doctor", "--capacity", "--disk", "1000")
    net.run("doctor", "--disk", "1000")
    net.run("doctor", "--capacity", DATABASE_URL=f"sqlite:///{net.house.home}/none.db")


@sqlite_only("on PostgreSQL `backup` says what to run")
def test_a_backup_is_restored(net: Net) -> None:
    acme = net.quietly("org", "create", "--name", "Acme")["id"]
    net.quietly("wallet", "deposit", acme, "5", "--reference", "bank-1")
    net.quietly("keys", "rotate")
    net.run("doctor")
    copy = net.house.home / "copy"
    net.run("backup", copy)
    net.run("backup", copy)
    net.run("restore", copy)
    elsewhere = net.house.home / "elsewhere"
    there = {"DATABASE_URL": f"sqlite:///{elsewhere}/s.db", "SIGNING_KEYS": f"{elsewhere}/keys"}
    net.run("restore", net.house.home / "nothing", **there)
    net.run("restore", copy, **there)
    net.run("wallet", "show", acme, **there)
    net.run("wallet", "deposit", acme, "5", "--reference", "bank-2", **there)
    net.run("doctor", **there)


@sqlite_only("on PostgreSQL the advice is another")
def test_an_installation_with_advice_alone_is_ready(net: Net) -> None:
    with EsimGoServer(lambda: net.house.clock.now) as esimgo:
        network = {"NETWORK_PROVIDER": "esimgo", "ESIMGO_API_KEY": KEY, "ESIMGO_URL": esimgo.url}
        net.masks.plain[esimgo.url] = "esimgo"
        net.run("doctor", **network, SANDBOX="false", WEBHOOKS_ALLOW_PRIVATE="false")


def test_a_copy_is_held_and_released(net: Net) -> None:
    acme = net.quietly("org", "create", "--name", "Acme")["id"]
    net.run("installation", "hold")
    net.run("installation", "hold")
    net.run("wallet", "deposit", acme, "1", "--reference", "bank-1")
    net.run("audit", "verify")
    net.run("installation", "hold", "--end")
    net.run("installation", "hold", "--end")
    net.run("wallet", "deposit", acme, "1", "--reference", "bank-1")
    net.run("operator", "list", "--acts")


def test_what_the_bank_and_a_provider_say_is_booked(net: Net) -> None:
    owner = net.quietly("org", "create", "--name", "Acme")["id"]
    net.quietly("wallet", "deposit", owner, "100", "--reference", "bank-1")
    lines = (
        "SEPA EREF+BANK-1;100.00;09.03.2026",
        "rent;-7;09.03.2026",
        "Invoice inv 7;-2.50;9.3.26",
    )
    bank = net.file("bank.csv", "\n".join(("reference;amount;day", *lines[:2])))
    late = net.file("late.csv", "\n".join(("reference;amount;day", *lines)))
    bill = net.file("bill.csv", "reference,amount\naddon-9,2.50\n")
    reconcile, dated = ("audit", "reconcile"), ("--date-column", "day")
    of = ("--provider", "simulated", "--invoice", "INV-7", "--value-date", "2026-03-09")
    net.run(*reconcile, bank, "--deposits", "--book")
    net.run(*reconcile, late, "--deposits", "--book", *dated)
    net.run(*reconcile, bank, "--deposits", "--book", *dated)
    net.run(*reconcile, bank, "--deposits", "--book", *dated)
    net.run(*reconcile, bank, "--deposits", "--take-back", *dated)
    net.run(*reconcile, bill, *of, "--book")
    net.run(*reconcile, bill, *of, "--book", "--accept", "-2.50")
    net.run(*reconcile, bill, *of, "--book", "--accept", "2.50")
    less = net.file("less.csv", "reference,amount\naddon-9,2\n")
    net.run(*reconcile, less, *of, "--book", "--accept", "2")
    net.print(*reconcile, late, "--deposits", "--book", "--value-date", "2026-03-10")
    net.run(*reconcile, bill, *of, "--take-back")
    net.run("audit", "trial-balance")
    net.run("audit", "balance", owner)
    net.print(*reconcile, "--help")
