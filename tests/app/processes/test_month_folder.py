"""`months folder`: its files agree with each other and the verifier, and are the same for ever."""

import csv
import dataclasses
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace

from app.books.journal import DEFAULT, EACH, FORMS, TIME_ZONES, code_of, in_cents
from app.books.postings import PLAY_MONEY
from app.books.rates import Rates
from app.books.reader import Selection, read_transactions
from app.cli.import_files import read_account_file
from app.processes import month_folder
from app.processes.month_folder import BY_ACCOUNTS, RATES, Given, Made, check_folder, make_folder
from domain.accounts.organization import Organization
from domain.accounts.wallet import SANDBOX_DEPOSIT
from domain.cost import Cost
from domain.errors import NotPossible
from domain.finance.statement import Month
from domain.money import MICROS
from domain.months import month_of
from projections.engine.rebuild import ignore_progress
from tests.app.cli.shell import ROOT, Shell
from tests.installation import Installation, Process, SetClock, numbers
from tests.net.pages import Page
from tests.projections.histories import Life, run_on_log
from tests.projections.link_steps import LinkSteps, bought
from tests.seeds import Seed
from tests.servers.browser import Browser
from tests.servers.fixtures import started
from tests.servers.install import HLEDGER
from tests.servers.running import newest
from tests.workers.fees import bill

MONTH = "2026-02"
DATEV_FILE = f"journal/EXTF_Buchungsstapel_{MONTH}_USD_001.csv"
FAR = "Expenses:Providers:Far"  # Which takes euros.
HOSTILE = "=cmd()|'../../etc/<script>alert(1)</script>"
ACCOUNTS = read_account_file(DEFAULT.read_bytes())
FAR_AHEAD = "Pacific/Kiritimati"
IN_ZONE = {"time_zone": FAR_AHEAD}
ZONED = read_account_file(msgspec.json.encode(ACCOUNTS | IN_ZONE))


class Trade(NamedTuple):
    """An installation whose February is closed."""

    process: Process
    home: Path
    environment: Mapping[str, str]

    def make(
        self,
        name: str,
        accounts: Mapping[str, Any] = ACCOUNTS,
        month: str = MONTH,
        rates: bytes | None = None,
    ) -> Made:
        given = Given(accounts, None if rates is None else Rates(rates, "USD"))
        return make_folder(self.process, month, given, self.home / name, ignore_progress)


def sign(process: Process) -> None:
    process.tree_builder.catch_up()
    process.checkpoints.run()


def live(process: Process, clock: SetClock) -> None:
    """Trade from January to March: by dice, and what dice seldom do."""
    life = Life(process, 31)
    process.organization("3.333333", HOSTILE)
    hostile = process.organization("112.50", "=1+1")
    process.log.update(
        process.log.get(Organization, hostile),
        lambda its: its.set_customer_number("10001", process.cause()),
    )
    plan = replace(bought("-1+1 plan", "4.123456"), cost=Cost(1_234_567, "EUR"), network="far")
    old, job = LinkSteps(process, hostile, None, plan).activate(), None
    while clock.now < datetime(2026, 3, 20, tzinfo=UTC):
        life.go_on(20)
        process.look_up(hostile)
        if job is not None:
            process.finish_job(job)  # In February that of January.
        job = process.create_job(hostile, numbers(3))
        if clock.now.day < 10:
            old.change(add=[plan]).do_all()
            process.accounts.move(
                "deposit", hostile, 5_000_001, f"bank {clock.now}", process.cause()
            )
            LinkSteps(process, hostile, None, plan).activate()
        clock.forward(days=4.3)
        process.look_up(hostile)
        now, wrong = clock.now, clock.now - timedelta(days=10)  # A clock of another machine.
        if process.log.find(Month, Month.id_of(month_of(wrong))) is None:
            clock.now = wrong
            process.look_up(hostile, "+14155550101")
            clock.now = now
        process.month_end.run()
        bill(process)
        sign(process)
    life.finish()
    sign(process)


@pytest.fixture(scope="module")
def trade(tmp_path_factory: pytest.TempPathFactory, migrated: Seed) -> Iterator[Trade]:
    home = tmp_path_factory.mktemp("trade")
    environment = {"COST_PER_LOOKUP": "offline=0.001", "CHECKPOINT_LAG_S": "0"}
    environment["ISSUER"] = "Carrier & Co.\n1 Street"
    installation = Installation(home, like=migrated, **environment)
    clock = SetClock(datetime(2026, 1, 20, tzinfo=UTC))
    process = installation.process(clock)
    live(process, clock)
    yield Trade(process, home, installation.environment)
    installation.close()


@pytest.fixture(scope="module")
def made(trade: Trade) -> Made:
    return trade.make("daily")


def table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        return [*csv.DictReader(lines)]


def test_it_holds_by_the_word_of_the_verifier(trade: Trade, made: Made) -> None:
    count = len(table(made.out / "index.csv"))
    assert count > 5
    assert made == Made(MONTH, count, ok=True, unchanged=False, out=trade.home / "daily")
    verdict = (made.out / "verdict.txt").read_text().splitlines()
    assert all(line.startswith("ok ") for line in verdict), verdict
    assert verdict[-1].endswith("the accounts of each currency sum to zero")
    assert verdict[-2].endswith(f"{count} of {count} statements are those that it computes")
    note = (made.out / "checkpoint.txt").read_text()
    assert f"{note.splitlines()[1]} events, signed by" in verdict[0]
    sums = (made.out / "SHA256SUMS").read_text().splitlines()
    files = {name: sha256(each).hexdigest() for name, each in files_of(made.out).items()}
    del files["SHA256SUMS"]
    assert sums == [f"{files[name]}  {name}" for name in sorted(files)]


def test_a_statement_names_its_number_issuer_period_totals_and_checkpoint(made: Made) -> None:
    note = (made.out / "checkpoint.txt").read_text()
    for row in table(made.out / "index.csv"):
        file = made.out / "statements" / row["number"]
        page = file.with_suffix(".html").read_text()
        assert "@page { size: A4; margin: 0 }" in page
        assert "http" not in page.replace(note.splitlines()[0], "")  # It loads nothing.
        shown = Page(page).text
        assert f"No. {row['number']}, from 2026-02-01 to 2026-02-28 (UTC)" in shown
        for told in ("Carrier & Co.", row["organization"], "Total", note.splitlines()[2]):
            assert told in shown
        for line in table(file.with_suffix(".csv")):
            assert (line["from"], line["to"]) == ("2026-02-01", "2026-02-28")
            assert (line["number"], line["issuer"]) == (row["number"], "Carrier & Co., 1 Street")
            assert line["checkpoint"] == " ".join(note.split())


@pytest.mark.soak
def test_a_statement_prints_on_one_sheet_without_the_lines_of_a_browser(
    made: Made, browser: Browser
) -> None:
    for file in (made.out / "statements").glob("*.html"):
        with browser.page() as page:
            page.open(file.as_uri())
            printed, bare = (page.pdf(lines_of_the_browser=shown) for shown in (True, False))
        assert re.findall(rb"/MediaBox \[([^]]*)]", printed) == [b"0 0 594.95996 841.91998"]
        assert len(printed) == len(bare)  # But for the time at which they were made.


@pytest.fixture(scope="module", params=["daily", "single"])
def own(trade: Trade, request: pytest.FixtureRequest) -> Path:
    """A folder with such postings."""
    return trade.make(f"own-{request.param}", {**ACCOUNTS, "postings": request.param}).out


@pytest.mark.parametrize("own", ["single"], indirect=True)  # Others are of all organizations.
def test_a_single_posting_names_its_organization(own: Path) -> None:
    for form in FORMS.values():
        files = (own / "journal").glob(f"{form.file}_*")
        text = b"".join(each.read_bytes() for each in files).decode("cp1252")
        for row in table(own / "index.csv"):
            has_moved = {row["debit"], row["credit"]} != {"0.00"}
            assert (row["organization"] in text) is has_moved


# The expressions that DATEV publishes for the fields, quotation marks included: of the header
# (developer.datev.de, DATEV-Format, header), and of the first 14 of a booking batch.
DAY = r"20\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])"
HEADER = (
    rf'"EXTF";700;21;"Buchungsstapel";13;{DAY}(2[0-3]|[01]\d)[0-5]\d[0-5]\d\d{{3}};;"\w{{0,2}}";'
    rf'"\w{{0,25}}";"\w{{0,25}}";\d{{4,7}};\d{{1,5}};{DAY};[4-8];{DAY};{DAY};"[\w.\-/ ]{{0,30}}";'
    r'"([A-Z]{2}){0,2}";[12];(0|30|40|50|64);[01];"[A-Z]{3}";;"";;;"(\d{2}){0,2}";\d*;;"";".{0,16}"'
).split(";")
ACCOUNT = r"(?!0{1,9}$)\d{1,9}"
FIELDS = (
    rf'(?!0{{1,10}},00)\d{{1,10}},\d{{2}};"[SH]";"[A-Z]{{3}}";;;;{ACCOUNT};{ACCOUNT};;'
    r'(0[1-9]|[12]\d|3[01])(0[1-9]|1[0-2]);"[\w$%\-/]{0,36}";;;".{0,60}"'
).split(";")


def test_datev_can_read_each_field(own: Path) -> None:
    for file in (own / "journal").glob("EXTF_*.csv"):
        text = file.read_bytes().decode("cp1252")
        assert text.endswith("\r\n")
        head, columns, *rows, last = text.split("\r\n")
        assert last == ""
        assert not any("\n" in row for row in rows)
        for field, pattern in zip(head.split(";"), HEADER, strict=True):
            assert re.fullmatch(pattern, field, re.ASCII), (field, pattern)
        assert len(columns.split(";")) == len({*columns.split(";")}) == 125
        assert rows
        for row in rows:
            fields = row.split(";")
            assert len(fields) == 125
            assert not any(fields[14:20] + fields[22:])
            assert all(re.fullmatch(r'(".{1,36}")?', field) for field in fields[20:22])
            for field, pattern in zip(fields, FIELDS, strict=False):
                assert re.fullmatch(pattern, field, re.ASCII), (field, pattern)


@pytest.mark.soak
def test_hledger_reads_the_file_of_datev_by_the_rules_of_the_guide(
    own: Path, tmp_path: Path
) -> None:
    program = started(lambda: newest(HLEDGER), "hledger")
    guide = (ROOT / "docs/finance.md").read_text("utf-8")
    (rules,) = re.findall(r"^```hledger\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    file, kept = tmp_path / "batch.csv", tmp_path / "datev.rules"
    kept.write_text(rules)
    file.write_text((own / DATEV_FILE).read_text("cp1252"))
    command = [program, "-f", file, "--rules-file", kept, "balance", "-N", "-O", "csv"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    read = {row["account"]: row["balance"] for row in csv.DictReader(told.splitlines())}
    moved = Counter[str]()
    for row in table(own / "trial-balance.csv"):
        if row["currency"] == "USD":
            was, now = (in_cents(int(Decimal(row[it]) * MICROS)) for it in ("opening", "closing"))
            moved[code_of(ACCOUNTS["datev"], row["account"])] += now - was
    moved["6304"] = -moved.total()
    wanted = {code: f"USD{cents / 100:.2f}" for code, cents in moved.items() if cents}
    assert {code: held.replace(",", ".") for code, held in read.items()} == wanted


def test_the_year_of_datev_begins_when_the_operator_says(trade: Trade) -> None:
    datev = {**ACCOUNTS["datev"], "year_begins": 7, "consultant": 29098}
    others = {"xero": None, "quickbooks": None}
    out = trade.make("fiscal", {**ACCOUNTS, "datev": datev, **others}).out
    (file,) = (out / "journal").glob("EXTF_*USD*.csv")
    fields = file.read_bytes().decode("cp1252").partition("\r\n")[0].split(";")
    assert fields[10:16] == ["29098", "1", "20250701", "4", "20260201", "20260228"]
    assert {each.name[:4] for each in (out / "journal").iterdir()} == {"EXTF", "acco"}


def test_each_wallet_is_rolled_forward_and_the_total_is_that_of_the_accounts(
    made: Made,
) -> None:
    *rows, total = table(made.out / "wallets.csv")
    index = table(made.out / "index.csv")
    assert [row["closing"] for row in rows] == [row["closing"] for row in index]
    for row in (*rows, total):
        amounts = [Decimal(row[name]) for name in ("opening", *month_folder.MOVED)]
        assert sum(amounts) == Decimal(row["closing"]), row
    assert {row["customer_number"] for row in rows} == {"", "10001"}
    lines = [each for row in index for each in table(made.out / f"statements/{row['number']}.csv")]
    refunds = [line for line in lines if line["item"] == "refund"]
    assert Decimal(total["given_back"]) == sum(Decimal(line["credit"]) for line in refunds)
    others = {"total", "adjustment"}
    debits = [line["debit"] for line in lines if line["debit"] and line["item"] not in others]
    assert -Decimal(total["used"]) == sum(map(Decimal, debits))
    held = {row["account"]: row for row in table(made.out / "trial-balance.csv")}
    wallets = held["Liabilities:Wallets"]
    assert Decimal(total["opening"]) == -Decimal(wallets["opening"])
    assert Decimal(total["closing"]) == -Decimal(wallets["closing"])


def test_a_customer_with_a_number_has_an_account_of_its_own_in_each_program(
    trade: Trade, made: Made
) -> None:
    accounts = json.loads(DEFAULT.read_bytes())
    for name, named in (("datev", "*"), ("quickbooks", "Wallets:*")):
        accounts[name]["accounts"][EACH] = named
    out = trade.make("customers", accounts).out / "journal"
    rows = (out / Path(DATEV_FILE).name).read_bytes().decode("cp1252").split("\r\n")[2:-1]
    booked = Counter(code for row in rows for code in row.split(";")[6:8])
    assert min(booked["10001"], booked["3250"]) > 5
    (file,) = out.glob("quickbooks-*USD*.csv")
    assert {"Wallets:10001", "Customer wallets"} < {row["Account Name"] for row in table(file)}
    (file,) = out.glob("xero-*USD_001.csv")  # Which has no account for each of them.
    assert {row["*AccountCode"] for row in table(file)} >= {"845"}
    assert "10001" not in (made.out / DATEV_FILE).read_bytes().decode("cp1252")


def test_xero_gets_whole_journals_of_at_most_300_lines(own: Path) -> None:
    files = sorted((own / "journal").glob("xero-*USD*.csv"))
    seen: set[str] = set()
    for file in files:
        rows = table(file)
        assert 0 < len(rows) <= 300
        journals = {row["*Narration"] for row in rows}
        assert not journals & seen
        seen |= journals


def test_made_again_it_is_the_same_whatever_has_happened_since(trade: Trade, made: Made) -> None:
    again = trade.make("daily")
    assert (again.unchanged, again.statements, again.ok) == (True, made.statements, True)
    trade.process.look_up(trade.process.organization("1.00", "A new one"))
    sign(trade.process)
    assert files_of(trade.make("elsewhere").out) == files_of(made.out)
    assert not [*trade.home.glob(".*.unfinished-*")]


def test_no_clock_zone_language_or_order_of_chance_is_in_it(trade: Trade) -> None:
    there = trade.home / "below" / "there"
    rules, accounts = trade.home / "rules", trade.home / "accounts.json"
    (rules / "Pacific").mkdir(parents=True)
    (rules / FAR_AHEAD).write_bytes((TIME_ZONES / "zoneinfo" / "UTC").read_bytes())
    elsewhere = {"TZ": FAR_AHEAD, "LC_ALL": "de_DE.UTF-8", "PYTHONHASHSEED": "7"}
    elsewhere["PYTHONTZPATH"] = str(rules)
    environment = {**os.environ, **trade.environment, **elsewhere}
    accounts.write_bytes(msgspec.json.encode(ZONED))
    command = [sys.executable, "-m", "app", "months", "folder", MONTH, there]
    given = [*command, "--accounts", accounts]
    subprocess.run(given, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert files_of(there) == files_of(trade.make("zoned", ZONED).out)


def test_the_journal_has_the_days_of_the_zone_and_all_else_stays(trade: Trade) -> None:
    plain, zoned = (
        trade.make(f"days-{number}", its, rates=ecb()).out
        for number, its in enumerate((ACCOUNTS, ZONED))
    )
    ours, theirs = files_of(zoned), files_of(plain)
    changed = {name for name in ours.keys() | theirs if ours.get(name) != theirs.get(name)}
    own = {"index.html", "foreign.csv", RATES, "SHA256SUMS"}
    assert {name for name in changed if not name.startswith("journal/")} == own
    assert DATEV_FILE in changed
    days = [{row["day"] for row in table(out / "foreign.csv")} for out in (plain, zoned)]
    assert {str(date.fromisoformat(day) + timedelta(1)) for day in days[0]} & days[1]
    assert f"those of {FAR_AHEAD};" in (zoned / "index.html").read_text()
    assert check(trade, zoned) == ({}, {})
    shell = Shell(trade.home, trade.environment)
    assert shell.json("months", "folder", "--check", zoned)["time_zone"] == FAR_AHEAD
    assert "time_zone" not in shell.json("months", "folder", "--check", plain)
    (zoned / RATES).unlink()
    edit(zoned, "journal/accounts.json", FAR_AHEAD, "Europe/Berlin")
    assert DATEV_FILE in check(trade, zoned)[0]


def test_the_numbers_of_each_month_begin_anew_and_have_no_gap(trade: Trade) -> None:
    before: list[str] = []
    for month in ("2026-01", MONTH):
        index = table(trade.make(f"numbers-{month}", month=month).out / "index.csv")
        assert [row["number"] for row in index] == [
            f"{month}-{number:06}" for number in range(1, len(index) + 1)
        ]
        owners = [row["organization"] for row in index]
        assert [each for each in owners if each in before] == before
        before = owners


def test_a_hostile_name_is_only_shown(made: Made) -> None:
    places = {path.parent.name for path in made.out.rglob("*.*")}
    assert places <= {"daily", "statements", "journal"}
    for path in (made.out / "statements").iterdir():
        assert re.fullmatch(rf"{MONTH}-\d{{6}}\.(html|csv|json)", path.name)
    pages = [path.read_text() for path in made.out.rglob("*.html")]
    assert not any("<script" in page for page in pages)
    assert sum(HOSTILE in Page(page).text for page in pages) == 2
    for file in made.out.rglob("*.csv"):
        if file.parent.name != "journal":
            with file.open(newline="") as lines:
                cells = [cell for row in csv.reader(lines) for cell in row]
            wild = [cell for cell in cells if cell.startswith(tuple("=+-@"))]
            assert all(re.fullmatch(r"-\d+\.\d+", cell) for cell in wild), wild
    assert {f"'{HOSTILE}", "'=1+1"} <= {row["name"] for row in table(made.out / "index.csv")}
    assert "'-1+1 plan" in {row["name"] for row in table(made.out / "margin-by-plan.csv")}


def test_what_is_there_already_is_never_touched(trade: Trade, made: Made, tmp_path: Path) -> None:
    copy = trade.home / "copy"
    shutil.copytree(made.out, copy)
    for name, why in (("notes.txt", "holds"), ("index.csv", "differs in")):
        (copy / name).write_text("mine")
        with pytest.raises(NotPossible, match=f"copy: {why} {name}"):
            trade.make("copy")
        assert (copy / name).read_text() == "mine"
        (copy / "notes.txt").unlink(missing_ok=True)
    (copy / "index.csv").unlink()
    with pytest.raises(NotPossible, match=r"copy: lacks index\.csv"):
        trade.make("copy")
    (tmp_path / "letter").write_text("mine")
    for place in (tmp_path, tmp_path / "letter"):
        with pytest.raises(NotPossible, match="is not empty, and no folder of a month"):
            make_folder(trade.process, MONTH, Given(ACCOUNTS), place, ignore_progress)
    assert [each.name for each in tmp_path.iterdir()] == ["letter"]


def check(trade: Trade, directory: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return how files of a kept folder differ, in money and in dress."""
    called = read_account_file((directory / "journal" / "accounts.json").read_bytes())
    kept = directory / RATES
    given = Given(called, Rates(kept.read_bytes(), "USD") if kept.exists() else None)
    found = check_folder(trade.process, directory, given, ignore_progress)
    assert found.month == MONTH
    money, dress = (
        {it["file"]: it["difference"] for it in its} for its in (found.money, found.dress)
    )
    return money, dress


def edit(directory: Path, name: str, before: str, after: str) -> str:
    """Change a file of a kept folder; `before` is a pattern that it has."""
    data = (directory / name).read_bytes().decode("latin-1")
    assert re.search(before, data), name
    (directory / name).write_bytes(re.sub(before, after, data, count=1).encode("latin-1"))
    return name


def test_a_kept_folder_that_says_something_else_is_a_matter_of_money(
    trade: Trade, own: Path
) -> None:
    assert check(trade, own) == ({}, {})
    kept = trade.home / f"edited-{own.name}"
    shutil.copytree(own, kept)
    other = table(own / "index.csv")[1]
    edited = {
        edit(kept, name, before, after)
        for name, before, after in (
            (f"statements/{MONTH}-000001.json", r'"debit":"', '"debit":"1'),
            (f"statements/{MONTH}-000002.json", r'"opening_balance":"[^"]*",', ""),
            (f"statements/{MONTH}-000001.csv", r"(?<=\d)\r?\n", r"1\n"),
            (f"statements/{MONTH}-000001.html", r"<td>(?=[0-9])", "<td>1"),
            (f"statements/{MONTH}-000002.html", other["organization"], str(UUID(int=1))),
            ("index.html", r"<td>(?=[0-9])", "<td>1"),
            ("index.csv", HOSTILE[:4], "Mallory"),
            ("trial-balance.csv", "USD", "EUR"),
            ("margin-by-plan.csv", r"(?<=\d),USD", "1,USD"),
            ("checkpoint.txt", "time 2026", "time 2027"),
            ("verdict.txt", "^ok ", "FAILED"),
            (DATEV_FILE, r'"S";"USD";;;;\d', '"S";"USD";;;;9'),
            (f"journal/xero-manual-journals_{MONTH}_USD_001.csv", ",605,", ",606,"),
            (f"journal/quickbooks-journal-entries_{MONTH}_USD_001.csv", "Sales", "Shares"),
        )
    }
    gone, added = f"statements/{MONTH}-000003.json", "journal/more.csv"
    (kept / gone).unlink()
    (kept / added).write_text("1\n")
    (kept / "mine.txt").write_text("my notes")
    money, dress = check(trade, kept)
    assert money.pop(gone) == "is gone"
    assert money.pop(added) == dress.pop("mine.txt") == "is not of this folder"
    assert {*money} == edited
    assert dress == {}


def test_a_kept_folder_of_another_issuer_and_release_is_only_dressed_otherwise(
    trade: Trade, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = trade.home / f"dressed-{own.name}"
    shutil.copytree(own, kept)
    edited = {
        edit(kept, name, before, after)
        for name, before, after in (
            (f"statements/{MONTH}-000001.html", "<style>", "<style>p { margin: 2rem }"),
            (f"statements/{MONTH}-000001.csv", "Carrier & Co., 1 Street", "Carrier"),
            (f"statements/{MONTH}-000001.json", r'"final":true,', ""),
            ("index.html", "What the verifier says", "Verdict of the verifier"),
            ("verdict.txt", "signed by", "by"),
            (DATEV_FILE, '"Assets:D' if own.name.endswith("daily") else '"Deposits', '"D'),
        )
    }
    monkeypatch.setattr(
        trade.process, "settings", dataclasses.replace(trade.process.settings, issuer="Other")
    )
    money, dress = check(trade, kept)
    assert dress.pop("") == "it was made with another ISSUER"
    assert (money, {*dress}) == ({}, edited)
    edit(kept, "index.html", "<title>Books", "<title>Book")
    with pytest.raises(NotPossible, match=r"its index\.html is not that of a month"):
        check(trade, kept)


def ecb() -> bytes:
    """Return rates as the ECB has them: of working days, newest first, with a comma at the end."""
    days = [datetime(2026, 3, 31, tzinfo=UTC) - timedelta(each) for each in range(90)]
    rows = [f"{day:%Y-%m-%d},1.{day:%m%d}7,N/A," for day in days if day.weekday() < 5]
    return "\n".join(["Date,USD,CYP,", *rows]).encode()


@pytest.mark.parametrize(("postings", "zone"), [("daily", {}), ("single", IN_ZONE)])
def test_costs_in_another_currency_are_stated_in_ours_too(
    trade: Trade, postings: str, zone: dict[str, str]
) -> None:
    accounts = {**ACCOUNTS, "postings": postings, **zone}
    plain, own = (
        trade.make(f"{name}-{postings}", accounts, rates=rates).out
        for name, rates in (("unconverted", None), ("converted", ecb()))
    )
    moved = table(own / "foreign.csv")
    used = {row["Date"]: row["USD"] for row in table(own / RATES)}
    stated = cost = Decimal(0)
    for row in moved:
        rate = used[max(day for day in used if day <= row["day"])]
        off = Decimal(row["amount"]) * Decimal(rate) - Decimal(row["converted"])
        assert abs(off) <= Decimal("0.000001")
        assert (row["account"], row["currency"], row["into"]) == (FAR, "EUR", "USD")
        stated, cost = stated + Decimal(row["converted"]), cost + Decimal(row["amount"])
    lines = {(it["account"], it["currency"]): it for it in table(own / "trial-balance.csv")}
    assert cost == Decimal(lines[FAR, "EUR"]["movement"]) > 0
    (xero,) = (own / "journal").glob("xero-*_EUR-in-USD_001.csv")
    amounts = [(row["*AccountCode"], Decimal(row["*Amount"])) for row in table(xero)]
    assert sum(amount for _, amount in amounts) == 0
    booked = sum(amount for code, amount in amounts if code != "846")  # All but what is owed.
    assert abs(booked - stated) <= Decimal("0.01")
    assert all(" EUR: " in row["Description"] for row in table(xero))
    (datev,) = (own / "journal").glob("EXTF_*_EUR-in-USD_001.csv")
    head, _, *entries = datev.read_text("cp1252").splitlines()
    assert ';"USD";' in head
    assert {line.split(";")[2] for line in entries} == {'"USD"'}
    ours, theirs = files_of(own), files_of(plain)
    changed = {name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
    assert changed == {"SHA256SUMS", "index.html"}
    assert {name.replace("-in-USD", "") for name in ours} == {*theirs, "foreign.csv", RATES}


def test_a_folder_with_rates_is_made_again_and_checked_by_those_in_it(trade: Trade) -> None:
    own = trade.make("by-rates", rates=ecb()).out
    kept = (own / RATES).read_bytes()
    assert len(kept) < len(ecb())
    assert trade.make("by-rates", rates=kept).unchanged
    assert files_of(trade.make("by-kept-rates", rates=kept).out) == files_of(own)
    assert check(trade, own) == ({}, {})
    edit(own, RATES, r",1\.", ",2.")
    money, dress = check(trade, own)
    assert "foreign.csv" in money
    assert dress == {}
    edit(own, f"statements/{MONTH}-000001.json", r'"debit":"', '"debit":"1')
    (own / RATES).write_bytes(kept.partition(b"\n")[0])
    (own / "mine.txt").write_text("my notes")
    money, dress = check(trade, own)
    assert money.pop(f"statements/{MONTH}-000001.json") == "says something else than the log"
    assert {*money} == {name for name in files_of(own) if name.startswith(BY_ACCOUNTS)}
    told = "cannot be made again: the table of rates has none of USD"
    assert all(why.startswith(told) for why in money.values())
    assert {*dress} == {"mine.txt", "index.html"}
    with pytest.raises(NotPossible, match="has none of USD for 2026-02-"):
        trade.make("too-late", rates=ecb().partition(b"\n2026-02")[0])
    assert not (trade.home / "too-late").exists()


def test_the_command_takes_a_table_and_checks_by_the_one_in_the_folder(trade: Trade) -> None:
    file, out = trade.home / "eurofxref-hist.csv", trade.home / "by-command"
    shell = Shell(trade.home, trade.environment)
    file.write_bytes(ecb())
    assert shell.json("months", "folder", MONTH, out, "--rates", file)["ok"]
    file.write_bytes(ecb().replace(b",N/A,", b",none,", 1))
    refused = shell.refusal("months", "folder", MONTH, out, "--rates", file)
    assert refused.endswith(f"{file}: line 2, column CYP: 'none' is no rate above zero")
    assert shell.json("months", "folder", "--check", out)["money"] == []
    shell.refusal("months", "folder", "--check", out, "--rates", file, status=2)


def test_an_empty_directory_and_a_link_to_one_are_filled(trade: Trade, made: Made) -> None:
    empty, link = trade.home / "empty", trade.home / "link"
    empty.mkdir()
    link.symlink_to(empty)
    assert trade.make("link").out == empty
    assert files_of(empty) == files_of(made.out)
    assert link.is_symlink()
    assert empty.stat().st_mode & 0o777 == 0o700


def test_a_crash_leaves_nothing_under_the_name(
    trade: Trade, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space is left")

    monkeypatch.setattr(month_folder, "month_balance", fail)
    with pytest.raises(OSError, match="no space"):
        trade.make("crashed")
    assert not [path for path in trade.home.iterdir() if "crashed" in path.name]


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


@contextmanager
def february(installation: Installation) -> Iterator[Trade]:
    """An installation whose February is closed afterwards, but not signed."""
    installation.environment["CHECKPOINT_LAG_S"] = "0"
    clock = SetClock(datetime(2026, 2, 20, tzinfo=UTC))
    process = installation.process(clock)
    yield Trade(process, installation.directory, installation.environment)
    clock.forward(days=10)
    process.month_end.run()


@pytest.fixture
def shop(installation: Installation) -> Trade:
    """One organization that has bought a few lookups; its month is closed, but not signed."""
    with february(installation) as trade:
        owner = trade.process.organization("1.00")
        for _ in range(3):
            trade.process.look_up(owner)
    return trade


@pytest.mark.each_database
def test_a_month_that_no_checkpoint_covers_yet_is_refused(shop: Trade) -> None:
    with pytest.raises(NotPossible, match="no checkpoint covers the close of month 2026-02 yet"):
        shop.make("early")
    assert not (shop.home / "early").exists()
    sign(shop.process)
    out = shop.make("signed").out
    page = (out / "statements" / f"{MONTH}-000001.html").read_text()
    assert 'class="issuer"' not in page
    assert table(out / "trial-balance.csv")[-1]["closing"] == "-0.985"


def test_a_checkpoint_within_a_commit_is_no_fault(shop: Trade) -> None:
    process = shop.process
    (owner,) = {row.organization_id for row in read_transactions(process.log, Selection())}
    process.look_up(owner)
    process.tree_builder.catch_up()
    last = process.log.stored(process.log.head() - 2, 2)
    assert [row.topic for row in last] == ["number_lookup.answered", "wallet.charged"]
    count = len(process.log.stored(0, 1_000))
    process.checkpoints._make(count - 1, None)  # As if the keeper had come so far.
    made = shop.make("cut")
    verdict = (made.out / "verdict.txt").read_text()
    assert f"open     position {last[0].position}: it announces" in verdict
    assert made.ok


def test_a_month_without_an_entry_has_no_statement_and_no_posting(
    installation: Installation,
) -> None:
    with february(installation) as trade:
        trade.process.organization("0")
    sign(trade.process)
    empty = trade.make("empty")
    assert (empty.statements, empty.ok) == (0, True)
    assert [path.name for path in (empty.out / "journal").iterdir()] == ["accounts.json"]
    assert (empty.out / "index.csv").read_text().count("\n") == 1


def test_a_changed_log_is_convicted_in_the_folder(shop: Trade) -> None:
    sign(shop.process)
    rows = shop.process.log.stored(0, 1_000)
    entry = next(row for row in rows if row.topic == "wallet.deposited")
    on_server = shop.process.vault.database.engine.dialect.name == "postgresql"
    column = "notification_id" if on_server else "rowid"
    run_on_log(
        shop.process,
        f"UPDATE {{table}} SET state = ? WHERE {column} = ? RETURNING {column}",  # noqa: S608  # Both names are ours.
        (entry.state.replace(b"1000000", b"2000000"), entry.position),
    )
    changed = shop.make("changed")
    assert (changed.ok, changed.statements) == (False, 1)
    verdict = (changed.out / "verdict.txt").read_text()
    assert "FAILED   checkpoint checkpoint.txt: the" in verdict
    assert f"FAILED   position {entry.position}: " in verdict
    assert "FAILED   the accounts of a currency do not sum to zero" in verdict
    assert "Something does NOT hold" in (changed.out / "index.html").read_text()
    command = ("months", "folder", MONTH, changed.out)
    told = Shell(shop.home, shop.environment).run(*command, "--json", status=1).stdout
    assert '"ok": false, "unchanged": true' in told


def test_play_money_is_not_booked_as_a_deposit(installation: Installation) -> None:
    with february(installation) as trade:
        owner, cause = trade.process.organization("0"), trade.process.cause()
        trade.process.accounts.book_deposit(owner, 5_000_000, "mine", cause, SANDBOX_DEPOSIT)
    sign(trade.process)
    with pytest.raises(NotPossible, match="postings to Assets:Sandbox-deposits"):
        trade.make("refused")
    assert not (trade.home / "refused").exists()
    xero = {**ACCOUNTS["xero"], "accounts": {**ACCOUNTS["xero"]["accounts"], PLAY_MONEY: "699"}}
    made = trade.make("named", {**ACCOUNTS, "datev": None, "quickbooks": None, "xero": xero})
    assert (made.statements, made.ok) == (1, True)
