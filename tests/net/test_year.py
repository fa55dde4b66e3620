"""A year of three organizations, and everything that finance and auditors read of it.

It is played once, month by month, and on PostgreSQL in `make soak`: purchases, failures, refunds,
cancels, a lost reply, a creation that is too late, fees that a wallet cannot pay at first, and
closed months.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.installation import sqlite_only
from tests.net.house import House, house
from tests.net.masking import Moment
from tests.net.net import Net, Partner
from tests.net.pages import Page
from tests.net.recording import told_body, told_csv, told_json
from tests.plan_files import covering, plan, profile
from tests.seeds import Seed

# What it asks of a database others ask, too: that of the pages is in tests/app/finance.
ROOT = Path(__file__).parents[2]

# PostgreSQL leaves gaps between positions, so they are masked in what people read too.
POSITIONS = {
    r"(?<!<)\b(positions?:? +|up to )\d+\b": r"\1<position>",
    r"^\d+(  <\d{4}-)": r"<position>\1",
}

# Of the pages. How many checkpoints there are depends on when the clock has looked.
PLACES = {
    r"(?<!<)([Pp]osition(?: \||s in the log \|)? )\d+( to \d+)?": r"\1<position>",
    r"\[/checks/\d+\] Checkpoint \d+ of <[^>]+>": "A checkpoint",
    r"\b17\d{14}\b": "<microseconds>",
}


@dataclass
class Year:
    """A house with its year, the organizations by their names, and the moments of it."""

    house: House
    partners: dict[str, Partner]
    moments: list[Moment]
    history: list[dict[str, Any]]  # Of a link that has owed fees.
    statements: list[dict[str, Any]]

    def of(self, net: Net) -> Net:
        """Have a scenario tell times and organizations as the year does."""
        net.masks.moments = [*self.moments, *net.masks.moments]
        net.masks.fleeting |= POSITIONS
        for name, partner in self.partners.items():
            net.masks.plain[partner.id] = name
        return net


def alone(called: str, **terms: Any) -> dict[str, Any]:
    """Return a plan on a sponsor profile of its own."""
    return plan(called, sponsor_profiles=[profile(f"sp-{called}")], **terms)


class Story:
    """Plays the year; every method is something that somebody does."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.house = net.house
        made = [
            net.quietly("org", "create", "--name", f"Org {n}", "--price", "0.02") for n in "123"
        ]
        self.north, self.south, self.west = (self.client(each["id"]) for each in made)

    def client(self, organization: str) -> Partner:
        made = self.net.quietly("client", "create", "--org", organization)
        return Partner(self.net, "partner", made, organization)

    def deposit(self, partner: Partner, amount: str, reference: str) -> None:
        self.net.quietly("wallet", "deposit", partner.id, amount, "--reference", reference)

    def buy(self, partner: Partner, called: str, status: int = 201) -> dict[str, Any]:
        reply = partner.ask("POST", "/v1/links", {"plan_id": partner.plan(called)})
        assert reply.status == status, reply.body
        found: dict[str, Any] = reply.json.get("data") or {}
        return found

    def top_up(self, partner: Partner, link: dict[str, Any], *called: str) -> int:
        body = {"add": [partner.plan(each) for each in called]}
        return partner.ask("PUT", f"/v1/links/{link['id']}/plans", body).status

    def at(self, day: str, *months: str) -> None:
        """Go to a day, close months, and start anew: the clock asks for fees when it starts."""
        self.house.stop()
        self.net.begin(day, datetime.fromisoformat(day).replace(tzinfo=UTC))
        for month in months:
            self.net.quietly("months", "close", month)
        self.house.start("serve")

    def until_charged(self, partner: Partner, count: int) -> None:
        path = "/v1/transactions?kind=monthly_link_fee"
        self.net.until(lambda: partner.data(path)["meta"]["total"] == count, f"{count} fees")

    def play(self) -> None:
        self.open_shop()
        self.january()
        self.february()
        self.march()
        self.summer()
        self.end()

    def open_shop(self) -> None:
        net, north = self.net, self.north
        plans = [
            plan("Germany", cost="2.10", retail_price="4.50", coverage=covering("DE", operators=2)),
            plan(
                "Europe",
                cost="5.00",
                cost_currency="EUR",
                retail_price="9.99",
                data_mb=5000,
                validity_days=30,
                coverage=covering("DE", "FR", "ES"),
            ),
            plan("Failing", retail_price="1.00", provider_plan_id="sandbox-no-endpoint"),
            # An eSIM of these comes back late, so no other plan may take it.
            alone("Down", retail_price="1.00", provider_plan_id="sandbox-provider-error"),
            alone("Lost", retail_price="2.00", provider_plan_id="sandbox-lost-reply"),
            alone("Slow", retail_price="3.00", provider_plan_id="sandbox-slow"),
            # Whether the eSIM of a failed purchase is free again by then depends on the machine.
            alone("Own", cost="2.10", retail_price="4.50"),
        ]
        net.quietly("plans", "import", net.file("plans.json", json.dumps({"plans": plans})))
        net.until(lambda: len(north.data("/v1/plans")["data"]) == len(plans))

    def january(self) -> None:
        net, north, south, west = self.net, self.north, self.south, self.west
        self.deposit(north, "200.00", "bank-north-1")
        self.deposit(south, "20.00", "bank-south-1")
        self.deposit(west, "50.00", "bank-west-1")
        net.quietly("org", "set", north.id, "--monthly-link-fee", "0.75")
        net.quietly("org", "set", south.id, "--monthly-link-fee", "2.50")
        first = self.first = self.buy(north, "Germany")
        self.second = self.buy(north, "Europe")
        self.buy(south, "Europe")
        north.look_up()
        north.job("+14155552671", "+447400123456", "+15005550001")
        assert self.top_up(north, first, "Germany", "Europe") == 200

    def february(self) -> None:
        net, north, south, west = self.net, self.north, self.south, self.west
        self.at("2025-02-03 09:00", "2025-01")
        self.until_charged(north, 1)
        self.until_charged(south, 1)
        self.buy(north, "Failing", 502)
        self.buy(west, "Down", 502)
        self.buy(west, "Lost")
        assert self.top_up(north, self.second, "Germany", "Failing", "Europe") == 502
        charge = south.look_up()["meta"]["charge"]["transaction_id"]
        net.quietly("wallet", "refund", charge, "--reference", "r-1", "--reason", "by mistake")
        self.buy(north, "Slow", 502)
        net.until(lambda: not net.quietly("links", "list", "--unfinished")["data"])

    def march(self) -> None:
        net, north, west = self.net, self.north, self.west
        self.at("2025-03-05 09:00", "2025-02")
        self.until_charged(north, 2)
        self.until_charged(self.south, 2)
        bought = self.buy(west, "Own")
        assert west.ask("POST", f"/v1/links/{bought['id']}/cancel").status == 200
        assert north.ask("DELETE", f"/v1/links/{self.first['id']}").status == 200
        net.quietly(
            "wallet", "adjust", west.id, "-7.50", "--reference", "a-1", "--reason", "a fine"
        )
        net.quietly("plans", "set", north.plan("Germany"), "--price", "4.75")

    def summer(self) -> None:
        net, north, south, west = self.net, self.north, self.south, self.west
        self.at("2025-06-15 12:00", "2025-03", "2025-04", "2025-05")
        self.until_charged(north, 5)
        self.until_charged(south, 4)
        self.deposit(south, "15.00", "bank-south-2")  # It had not enough for all of its fees.
        net.quietly("org", "set", west.id, "--status", "suspended")

        self.at("2025-07-02 08:00", "2025-06")
        self.until_charged(north, 6)
        self.until_charged(south, 6)
        net.quietly("org", "set", west.id, "--status", "active")
        net.until(lambda: west.ask("GET", "/v1/wallet").status == 200)
        west.job("+14155552671", "+14155552672", "+14155552673", "+14155552674")
        # From now on it owes no fee: its other link has ended.
        assert north.ask("POST", f"/v1/links/{self.second['id']}/suspend").status == 200

    def end(self) -> None:
        self.at("2026-01-04 10:00", *(f"2025-{month:02}" for month in range(7, 13)))
        self.until_charged(self.south, 10)  # It has not enough for the other two.
        self.until_charged(self.north, 6)
        path = f"/v1/links/{self.second['id']}/history?per_page=100"
        self.history = self.north.data(path)["data"]
        self.statements = self.north.data("/v1/statements")
        self.net.quietly("audit", "checkpoint", "--out", self.house.home / "checkpoint")
        self.house.stop()


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory, migrated: Seed) -> Iterator[Year]:
    settings = {
        "PRICE_PER_LOOKUP": "0.005",
        "COST_PER_LOOKUP": "offline=0.001",
        "PROVISIONING_DEADLINE_S": "4",
    }
    begins = datetime(2025, 1, 15, 9, tzinfo=UTC)
    with house(tmp_path_factory.mktemp("year"), migrated, now=begins, **settings) as made:
        net = Net(made, Path())
        net.quietly("org", "create", "--name", "Org 0", "--no-wallet")
        # The first checkpoint fixes the name of the log, here and not when the clock comes to it.
        net.quietly("audit", "checkpoint", CHECKPOINT_LAG_S="0")
        made.start("serve")
        net.masks.moments[0].name = "2025-01-15 09:00"
        story = Story(net)
        story.play()
        partners = {"north": story.north, "south": story.south, "west": story.west}
        yield Year(made, partners, net.masks.moments, story.history, story.statements)


@pytest.fixture(name="house")
def house_of_the_year(year: Year) -> House:
    return year.house


def test_the_log_is_verified(net: Net, year: Year) -> None:
    year.of(net).run("audit", "verify")
    net.run("audit", "verify", "--against", year.house.home / "checkpoint")
    net.run("audit", "verify", "--from", year.house.home / "checkpoint")
    origin, size, *rest = (year.house.home / "checkpoint").read_text().split("\n")
    forged = net.file("forged", "\n".join([origin, str(int(size) - 1), *rest]))
    net.run("audit", "verify", "--against", forged)
    net.print("audit", "verify")


def test_balances_and_the_stream(net: Net, year: Year) -> None:
    year.of(net)
    for partner in year.partners.values():
        net.run("audit", "balance", partner.id)
        net.run("audit", "balance", partner.id, "--at", "2025-03-01T00:00:00Z")
    west = ("audit", "replay", "--org", year.partners["west"].id)
    net.run("audit", "replay")
    net.run(*west, "--from", "2025-03-01", "--to", "2025-07-01")
    net.print(*west)
    history = (told_json(json.dumps(each), net.masks) for each in year.history)
    net.note("GET /v1/links/{identifier}/history of a link that owed fees", *history)


def test_statements(net: Net, year: Year) -> None:
    year.of(net)
    for partner in year.partners.values():
        for month in ("2025-01", "2025-02", "2025-03", "2025-06", "2025-07", "2025-12", "2026-01"):
            net.run("audit", "statement", partner.id, month)
    told = (told_json(json.dumps(each), net.masks) for each in year.statements)
    net.note("GET /v1/statements", *told)
    north = year.partners["north"].id
    net.run("audit", "statement", north, "2024-12")
    net.run("audit", "statement", north, "2025-13")


def test_the_books(net: Net, year: Year) -> None:
    year.of(net)
    for month in ("2025-01", "2025-02", "2025-06", "2025-12"):
        net.run("audit", "trial-balance", "--month", month)
    net.run("audit", "trial-balance")
    for by in ("day", "month", "plan", "provider"):
        net.run("audit", "margin", "--by", by)
    told = net.quietly("audit", "margin", "--by", "org")
    told["data"].sort(key=lambda row: str(row["name"]))  # They come in the order of their ids.
    net.note("audit margin --by org", told_json(json.dumps(told), net.masks))
    net.print("audit", "margin", "--by", "plan")


@sqlite_only("on PostgreSQL there are connections, too")
def test_how_fast_it_grows(net: Net, year: Year) -> None:
    year.of(net)
    net.masks.hide_sizes()
    net.run("doctor", "--capacity", "--disk", "1000")


def test_the_month_in_a_folder(net: Net, year: Year) -> None:
    year.of(net)
    out, issuer = year.house.home / "books", {"ISSUER": "Carrier & Co."}
    net.run("months", "folder", "2025-02", out, **issuer)
    for name in (
        "index.csv",
        "wallets.csv",
        "trial-balance.csv",
        "margin-by-plan.csv",
        "margin-by-provider.csv",
        "journal/quickbooks-journal-entries_2025-02_USD_001.csv",
        "journal/xero-manual-journals_2025-02_USD_001.csv",
    ):
        net.note(name, told_csv((out / name).read_text(), net.masks))
    datev = (out / "journal/EXTF_Buchungsstapel_2025-02_USD_001.csv").read_text("cp1252")
    net.note("the postings for DATEV", *datev.splitlines()[2:])
    net.run("audit", "margin", "--by", "plan", "--month", "2025-02")
    net.run("months", "folder", "2025-02", out, **issuer)
    net.run("months", "folder", "--check", out, **issuer)
    net.run("months", "folder", "--check", out, ISSUER="Carrier & Daughters")
    net.run("months", "folder", "--check", year.house.home)
    net.run("months", "folder", "2025-02", "--check", out)
    net.run("months", "folder", "2026-01", out, **issuer)
    net.run("months", "folder", "2025-02", year.house.home, **issuer)
    net.run("months", "folder", "2025-02", out, "--accounts", net.file("accounts.json", "{}"))
    net.print("months", "folder", "2025-02", year.house.home / "other")


def test_a_bank_and_a_provider_are_reconciled(net: Net, year: Year) -> None:
    year.of(net)
    bank = "reference,amount\nbank-north-1,200.00\nbank-south-1,21.00\nbank-east-1,5.00\n"
    net.run("audit", "reconcile", net.file("bank.csv", bank), "--deposits", "--month", "2025-01")
    invoice = "date,amount\n2025-01-31,0.004\n2025-07-31,0.005\n"
    of = ("--provider", "offline", "--by", "month", "--reference", "date")
    net.run("audit", "reconcile", net.file("invoice.csv", invoice), *of)


def exported(net: Net, form: str, *more: str) -> str:
    status, out, err = net.house.command("audit", "export", "--format", form, *more)
    assert status == 0, err
    return str(out)


def test_the_log_is_exported(net: Net, year: Year) -> None:
    year.of(net)
    lines = exported(net, "jsonl").splitlines()
    shown = (told_json(line, net.masks) for line in lines)
    net.note("audit export --format jsonl", f"-> {len(lines)} events", *shown)
    first, last = (str(json.loads(lines[at])["position"]) for at in (9, 19))
    part = year.house.home / "part.jsonl"
    exported(net, "jsonl", "--from", first, "--to", last, "--out", str(part))
    count = len(part.read_text().splitlines())
    net.note("audit export --from POSITION --to POSITION --out FILE", f"-> {count} events")


def test_the_stream_is_exported(net: Net, year: Year) -> None:
    year.of(net).note("audit export --format csv", told_csv(exported(net, "csv"), net.masks))
    net.note("audit export --format beancount", exported(net, "beancount"))


def test_an_export_is_imported_and_verified_by_strangers(net: Net, year: Year) -> None:
    year.of(net)
    file = net.file("log.jsonl", exported(net, "jsonl"))
    note = (year.house.home / "checkpoint").read_text()
    net.note("audit checkpoint", note)
    verifier, checkpoint = ROOT / "docs/verifier/verify.py", year.house.home / "checkpoint"
    command = [sys.executable, verifier, file, "--checkpoint", checkpoint]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    net.note("verify.py", f"-> {done.returncode}", done.stdout, done.stderr)
    charge = net.quietly("audit", "replay", "--org", year.partners["north"].id)["data"][3]["id"]
    proof = net.run("audit", "prove", charge)
    net.run("audit", "check", net.file("proof.json", json.dumps(proof)))
    proof["transaction"]["amount"] = "0.01"
    net.run("audit", "check", net.file("proof.json", json.dumps(proof)))
    net.run("audit", "import", file)
    copy = {"DATABASE_URL": f"sqlite:///{year.house.home}/copy.db"}
    net.masks.plain[copy["DATABASE_URL"]] = "copy"
    net.run("audit", "import", file, **copy)
    net.run("migrate", **copy)
    net.run("audit", "import", file, **copy)
    assert net.house.command("audit", "export", "--format", "jsonl", **copy)[1] == file.read_text()
    net.run("audit", "verify", **copy)


# What is chosen by each part of an address, {}: of the organization that has most of everything.
PAGES = (
    "/",
    "/wallets",
    "/wallets?name=ORG+2",
    "/wallets/{}",
    "/transactions",
    "/transactions?kind=refund",
    "/transactions?since=2025-02-03&until=2025-03-05&kind=refund",
    "/transactions?until=2025-01-31",
    "/transactions?organization={}&since=2025-06-15&kind=monthly_link_fee",
    "/transactions?organization={}&before=4",
    "/transactions?organization={}&reference=bank-north-1",
    "/transactions?reference=bank-north-1",
    "/transactions?kind=gift",
    "/statements?month=2025-02",
    "/statements?month=2026-01",
    "/statements/{}?month=2025-02",
    "/statements/{}?month=2024-12",
    "/margin?days=90",
)
DOWNLOADS = (
    "/transactions.csv?organization={}&until=2025-01-31",
    "/transactions.csv?kind=refund&since=2025-03-01",
    "/statements.csv?month=2025-03",
)


def test_the_pages_of_finance(net: Net, year: Year) -> None:
    year.of(net)
    net.masks.fleeting |= PLACES
    net.house.start("finance", "--port", str(net.house.port), "--json")
    try:
        opened = net.ask("GET", urlsplit(net.house.printed["url"]).path, {}, None)
        cookie = {"Cookie": opened.headers["set-cookie"].partition(";")[0]}
        for page in (*PAGES, *DOWNLOADS):
            path = page.format(year.partners["north"].id)
            reply = net.ask("GET", path, cookie, None)
            is_page = reply.headers["content-type"].startswith("text/html")
            told = (
                Page(reply.body.decode()).text
                if is_page
                else told_body(reply.headers, reply.body, net.masks)
            )
            net.note(f"GET {path} of the finance view", f"-> {reply.status}", told)
    finally:
        net.house.stop()
