"""`months folder`: every figure of it follows from the export, and it is the same for ever."""

import csv
import errno
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from app.books.journal import DEFAULT, FORMS
from app.books.postings import PLAY_MONEY
from app.books.reader import Selection, read_transactions
from app.cli.import_files import read_account_file
from app.processes import month_folder
from app.processes.month_folder import Made, make_folder
from domain.accounts.wallet import SANDBOX_DEPOSIT
from domain.cost import Cost
from domain.errors import NotPossible
from projections.audit.export import Export
from projections.engine.rebuild import ignore_progress
from tests.app.processes.recount import Recount, rounded
from tests.installation import Installation, Process, SetClock, numbers
from tests.net.pages import Page
from tests.projections.histories import Life, create_job, finish_job, look_up, run_on_log
from tests.projections.link_steps import LinkSteps, bought
from tests.seeds import Seed
from tests.servers.browser import Browser

MONTH = "2026-02"
HOSTILE = "=cmd()|'../../etc/<script>alert(1)</script>"
ACCOUNTS = read_account_file(DEFAULT.read_bytes())
SINGLE = {**ACCOUNTS, "postings": "single"}


class Trade(NamedTuple):
    """An installation whose February is closed, and an export of its log."""

    process: Process
    home: Path

    def make(self, name: str, accounts: Mapping[str, Any] = ACCOUNTS, month: str = MONTH) -> Made:
        return make_folder(self.process, month, accounts, self.home / name, ignore_progress)

    def recount(self, month: str = MONTH) -> Recount:
        file = self.home / "log.jsonl"
        log = self.process.log
        with file.open("wb") as target:
            target.writelines(Export(log, log.head()).lines())
        return Recount(file, month)


def sign(process: Process) -> None:
    process.tree_keeper.catch_up()
    process.checkpoints.run()


def live(process: Process, clock: SetClock) -> None:
    """Trade from January to March: by dice, and what dice seldom do."""
    life = Life(process, 31)
    process.organization("3.333333", HOSTILE)
    hostile = process.organization("112.50", "=1+1")
    plan = replace(bought("-1+1 plan", "4.123456"), cost=Cost(1_234_567, "EUR"), network="far")
    old, job = LinkSteps(process, hostile, None, plan).activate(), None
    while clock.now < datetime(2026, 3, 20, tzinfo=UTC):
        life.go_on(20)
        look_up(process, hostile)
        if job is not None:
            finish_job(process, job)  # In February that of January.
        job = create_job(process, hostile, numbers(3))
        if clock.now.day < 10:
            old.change(add=[plan]).do_all()
            process.accounts.deposit(hostile, 5_000_001, f"bank {clock.now}", process.cause())
            LinkSteps(process, hostile, None, plan).activate()
        clock.forward(days=4.3)
        process.month_end.run()
        sign(process)
        now, clock.now = clock.now, clock.now - timedelta(days=10)  # A clock that is wrong.
        look_up(process, hostile, "+14155550101")
        clock.now = now
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
    yield Trade(process, home)
    installation.close()


@pytest.fixture(scope="module")
def made(trade: Trade) -> Made:
    return trade.make("daily")


def table(file: Path, **options: Any) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        return [*csv.DictReader(lines, **options)]


def test_it_holds_by_the_word_of_the_verifier(trade: Trade, made: Made) -> None:
    count = len(trade.recount().statements)
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


def test_each_statement_is_counted_from_the_export(trade: Trade, made: Made) -> None:
    counted, index = trade.recount(), table(made.out / "index.csv")
    assert [row["organization"] for row in index] == counted.statements
    for row in index:
        owner, file = row["organization"], made.out / "statements" / row["number"]
        kinds = counted.kinds.get(owner, {})
        opening, closing = counted.opening[owner], counted.closing[owner]
        assert (Decimal(row["opening"]), Decimal(row["closing"])) == (opening, closing)
        assert Decimal(row["debit"]) == sum((line[1] for line in kinds.values()), Decimal())
        assert Decimal(row["credit"]) == sum((line[2] for line in kinds.values()), Decimal())
        said = json.loads(file.with_suffix(".json").read_bytes())
        assert (said["month"], said["final"], said["organization"]) == (MONTH, True, owner)
        lines = {
            each["kind"]: [Decimal(each[key]) for key in ("count", "debit", "credit")]
            for each in said["lines"]
        }
        assert lines == kinds
        places = counted.places.get(owner, [(None, None)])
        assert [said["first_sequence"], said["last_sequence"]] == [places[0][0], places[-1][0]]
        assert [said["first_position"], said["last_position"]] == [places[0][1], places[-1][1]]
        by_item = {each["item"]: each for each in table(file.with_suffix(".csv"))}
        assert by_item.keys() - {"opening_balance", "closing_balance", "total", "net"} == set(kinds)
        assert Decimal(by_item["net"]["balance"]) == closing - opening
        for kind, (count, debit, credit) in kinds.items():
            its = by_item[kind]
            told = Decimal(its["count"]), Decimal(its["debit"]), Decimal(its["credit"])
            assert told == (count, debit, credit)


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


def test_the_trial_balance_is_counted_from_the_export(trade: Trade, made: Made) -> None:
    told = {
        (row["account"], row["currency"]): (Decimal(row["opening"]), Decimal(row["closing"]))
        for row in table(made.out / "trial-balance.csv")
    }
    assert told == trade.recount().accounts
    assert all(
        Decimal(row["movement"]) == Decimal(row["closing"]) - Decimal(row["opening"])
        for row in table(made.out / "trial-balance.csv")
    )
    assert ("Expenses:Providers:Far", "EUR") in told


@pytest.mark.parametrize("by", ["provider", "plan"])
def test_the_margin_is_counted_from_the_export(trade: Trade, made: Made, by: str) -> None:
    *rows, total = table(made.out / f"margin-by-{by}.csv")
    counted = trade.recount().margin[by]
    assert {row[by] for row in rows} == set(counted)
    assert [row[by] for row in rows] == sorted(counted, key=lambda key: (not key, key))
    money = ("revenue", "refunds", "cost", "estimated")
    for row in rows:
        its = counted[row[by]]
        assert [Decimal(row[key]) for key in money] == [its[key] for key in money]
        assert int(row["unknown"]) == its["unknown"]
        margin = its["revenue"] - its["refunds"] - its["cost"]
        assert Decimal(row["margin"]) == margin
        others = ", ".join(
            f"{amount.normalize():f} {currency}"
            for currency, amount in sorted(its["other_costs"].items())
        )
        assert row["other_costs"] == others
    for key in (*money, "margin", "unknown"):
        assert Decimal(total[key]) == sum(Decimal(row[key]) for row in rows)


def own_accounts() -> dict[str, dict[str, str]]:
    """Return a code of its own for each account, so that each can be added up."""
    names = [*ACCOUNTS["datev"]["accounts"], "Expenses:Providers:Far", "Liabilities:Providers:Far"]
    kinds = ("Activation", "Topup", "Lookup", "Bulk-lookup", "Monthly-link-fee")
    names += [f"{root}:{kind}" for root in ("Income", "Income:Refunds") for kind in kinds]
    return {
        "datev": {name: str(4000 + index) for index, name in enumerate(names)},
        "xero": {name: f"X{index}" for index, name in enumerate(names)},
        "quickbooks": {name: f"Account {index}" for index, name in enumerate(names)},
    }


def detailed(postings: str) -> dict[str, Any]:
    codes = own_accounts()
    return {
        "postings": postings,
        **{name: {**ACCOUNTS[name], "accounts": codes[name]} for name in codes},
    }


class Line(NamedTuple):
    """A line of a journal: what an account of ours was debited with, or below zero credited."""

    number: str
    day: date
    account: str
    amount: Decimal
    whose: str  # The text that names the organization.


def read_datev(file: Path, names: Mapping[str, str]) -> Iterator[Line]:
    head, _, *rows = file.read_bytes().decode("cp1252").split("\r\n")[:-1]
    year = head.split(";")[14][:4]
    for row in csv.reader(rows, delimiter=";"):
        amount = Decimal(row[0].replace(",", "."))
        day = datetime.strptime(f"{row[9]}{year}", "%d%m%Y").replace(tzinfo=UTC).date()
        assert row[20] == ("Organization" if row[21] else "")
        yield Line(row[10], day, names[row[6]], amount if row[1] == "S" else -amount, row[21])
        yield Line(row[10], day, names[row[7]], -amount if row[1] == "S" else amount, row[21])


def read_xero(file: Path, names: Mapping[str, str]) -> Iterator[Line]:
    for row in table(file):
        day = datetime.strptime(row["*Date"], "%d %b %Y").replace(tzinfo=UTC).date()
        amount, code = Decimal(row["*Amount"]), row["*AccountCode"]
        yield Line(row["*Narration"], day, names[code], amount, row["Description"])


def read_quickbooks(file: Path, names: Mapping[str, str]) -> Iterator[Line]:
    for row in table(file):
        day = datetime.strptime(row["Journal Date"], "%m/%d/%Y").replace(tzinfo=UTC).date()
        assert bool(row["Debits"]) != bool(row["Credits"])
        amount = Decimal(row["Debits"] or 0) - Decimal(row["Credits"] or 0)
        account = names[row["Account Name"]]
        yield Line(row["Journal No."], day, account, amount, row["Description"])


READERS = {"datev": read_datev, "xero": read_xero, "quickbooks": read_quickbooks}


def journal(out: Path, name: str, currency: str) -> list[Line]:
    names = {code: account for account, code in own_accounts()[name].items()}
    files = sorted((out / "journal").glob(f"{FORMS[name].file}_{MONTH}_{currency}_*.csv"))
    assert files
    return [line for file in files for line in READERS[name](file, names)]


@pytest.fixture(scope="module", params=["daily", "single"])
def own(trade: Trade, request: pytest.FixtureRequest) -> Path:
    """A folder whose journal has a code of its own for each account."""
    return trade.make(f"own-{request.param}", detailed(request.param)).out


@pytest.mark.parametrize("name", [*READERS])
def test_each_account_of_a_journal_ends_at_its_exact_balance_rounded_once(
    trade: Trade, own: Path, name: str
) -> None:
    counted = trade.recount()
    for currency in ("USD", "EUR"):
        lines = journal(own, name, currency)
        booked: dict[str, Decimal] = defaultdict(Decimal)
        balanced: dict[tuple[str, date], Decimal] = defaultdict(Decimal)
        for line in lines:
            booked[line.account] += line.amount
            balanced[line.number, line.day] += line.amount
        assert not any(balanced.values())
        assert all((line.day.year, line.day.month) == (2026, 2) for line in lines)
        assert len(balanced) == len({number for number, _ in balanced})
        rounding = booked.pop("Rounding", Decimal())
        assert abs(rounding) <= Decimal("0.005") * (len(booked) + 1)
        ours = {key: both for key, both in counted.accounts.items() if key[1] == currency}
        expected: dict[str, Decimal] = defaultdict(Decimal)
        for (account, _), (first, last) in ours.items():
            below = account if account in own_accounts()[name] else account.rpartition(":")[0]
            expected[below] += rounded(last) - rounded(first)
        assert {key: amount for key, amount in booked.items() if amount} == {
            key: amount for key, amount in expected.items() if amount
        }


@pytest.mark.parametrize("name", [*READERS])
@pytest.mark.parametrize("own", ["single"], indirect=True)  # Others are of all organizations.
def test_a_single_posting_names_its_organization(own: Path, name: str) -> None:
    wallets = [each for each in journal(own, name, "USD") if each.account == "Liabilities:Wallets"]
    for row in table(own / "index.csv"):
        its = [each.amount for each in wallets if each.whose.endswith(row["organization"])]
        moved = Decimal(row["debit"]) - Decimal(row["credit"])
        assert abs(sum(its) - moved) <= Decimal("0.01") * len(its)


@pytest.mark.parametrize("own", ["daily"], indirect=True)  # Single ones come as in the log.
def test_on_each_day_an_account_holds_in_cents_what_the_export_gives(
    trade: Trade, own: Path
) -> None:
    counted, lines = trade.recount(), journal(own, "xero", "USD")
    for account in ("Income:Lookup", "Income:Bulk-lookup", "Assets:Deposits"):
        exact = start = counted.before.get((account, "USD"), Decimal())
        for number in range(1, 29):
            day = date(2026, 2, number)
            exact += counted.by_day[day.isoformat()].get((account, "USD"), Decimal())
            booked = [each.amount for each in lines if each.account == account and each.day <= day]
            assert sum(booked, Decimal()) == rounded(exact) - rounded(start)


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


def test_the_year_of_datev_begins_when_the_operator_says(trade: Trade) -> None:
    accounts = detailed("daily")
    accounts["datev"] = {**accounts["datev"], "year_begins": 7, "consultant": 29098}
    out = trade.make("fiscal", {**accounts, "xero": None, "quickbooks": None}).out
    (file,) = (out / "journal").glob("EXTF_*USD*.csv")
    fields = file.read_bytes().decode("cp1252").partition("\r\n")[0].split(";")
    assert fields[10:16] == ["29098", "1", "20250701", "4", "20260201", "20260228"]
    assert {each.name[:4] for each in (out / "journal").iterdir()} == {"EXTF", "acco"}


def test_xero_gets_whole_journals_of_at_most_300_lines(own: Path) -> None:
    files = sorted((own / "journal").glob("xero-*USD*.csv"))
    seen: set[str] = set()
    for file in files:
        rows = table(file)
        assert 0 < len(rows) <= 300
        assert {row["*TaxRate"] for row in rows} == {"Tax Exempt"}
        assert len(rows[0]) == 10
        journals = {row["*Narration"] for row in rows}
        assert not journals & seen
        seen |= journals


def test_made_again_it_is_the_same_whatever_has_happened_since(trade: Trade, made: Made) -> None:
    again = trade.make("daily")
    assert (again.unchanged, again.statements, again.ok) == (True, made.statements, True)
    look_up(trade.process, trade.process.organization("1.00", "A new one"))
    sign(trade.process)
    assert files_of(trade.make("elsewhere").out) == files_of(made.out)
    assert not [*trade.home.glob(".*.unfinished-*")]


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


def test_a_hostile_name_is_only_shown(trade: Trade, made: Made) -> None:
    assert {path.parent.name for path in made.out.rglob("*.*")} <= {
        "daily",
        "statements",
        "journal",
    }
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
    assert trade.home.exists()


def test_what_is_there_already_is_never_touched(trade: Trade, made: Made, tmp_path: Path) -> None:
    copy = trade.home / "copy"
    shutil.copytree(made.out, copy)
    (copy / "index.csv").write_text("mine")
    with pytest.raises(NotPossible, match=r"copy: differs in index\.csv"):
        trade.make("copy")
    assert (copy / "index.csv").read_text() == "mine"
    (copy / "index.csv").write_bytes((made.out / "index.csv").read_bytes())
    (copy / "notes.txt").write_text("mine")
    with pytest.raises(NotPossible, match=r"copy: holds notes\.txt"):
        trade.make("copy")
    (copy / "index.csv").unlink()
    with pytest.raises(NotPossible, match=r"copy: lacks index\.csv"):
        trade.make("copy")
    (tmp_path / "letter").write_text("mine")
    for place in (tmp_path, tmp_path / "letter"):
        with pytest.raises(NotPossible, match="is not empty, and no folder of a month"):
            make_folder(trade.process, MONTH, ACCOUNTS, place, ignore_progress)
    assert [each.name for each in tmp_path.iterdir()] == ["letter"]


def test_an_empty_directory_and_a_link_to_one_are_filled(trade: Trade, made: Made) -> None:
    empty, link = trade.home / "empty", trade.home / "link"
    empty.mkdir()
    link.symlink_to(empty)
    assert trade.make("link").out == empty
    assert files_of(empty) == files_of(made.out)
    assert link.is_symlink()
    assert empty.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("month", ["2026-03", "2026-12", "2025-12"])
def test_an_open_month_is_refused_in_words(trade: Trade, month: str) -> None:
    with pytest.raises(NotPossible) as refused:
        trade.make("open", month=month)
    told = f"month {month} is not closed: closed are 2026-01 to 2026-02"
    assert str(refused.value) == f"{told}; the clock closes each after its end"
    assert not (trade.home / "open").exists()


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
    yield Trade(process, installation.directory)
    clock.forward(days=10)
    process.month_end.run()


@pytest.fixture
def shop(installation: Installation) -> Trade:
    """One organization that has bought a few lookups; its month is closed, but not signed."""
    with february(installation) as trade:
        owner = trade.process.organization("1.00")
        for _ in range(3):
            look_up(trade.process, owner)
    return trade


def test_a_month_that_no_checkpoint_covers_yet_is_refused(shop: Trade) -> None:
    with pytest.raises(NotPossible, match="no checkpoint covers the close of month 2026-02 yet"):
        shop.make("early")
    assert not (shop.home / "early").exists()
    sign(shop.process)
    out = shop.make("signed").out
    page = (out / "statements" / f"{MONTH}-000001.html").read_text()
    assert 'class="issuer"' not in page
    assert table(out / "trial-balance.csv")[-1]["closing"] == "-0.985"
    lines = (out / "journal" / f"quickbooks-journal-entries_{MONTH}_USD_001.csv").read_text()
    assert lines.splitlines()[1:] == [
        "2026-02-20-USD,02/20/2026,Deposits in transit,Assets:Deposits 2026-02-20,1.00,",
        "2026-02-20-USD,02/20/2026,Customer wallets,Assets:Deposits 2026-02-20,,1.00",
        "2026-02-20-USD,02/20/2026,Customer wallets,Income:Lookup 2026-02-20,0.02,",
        "2026-02-20-USD,02/20/2026,Sales,Income:Lookup 2026-02-20,,0.02",
        "2026-02-rounding,02/28/2026,Rounding differences,Rounding of the wallets 2026-02,0.01,",
        "2026-02-rounding,02/28/2026,Customer wallets,Rounding of the wallets 2026-02,,0.01",
    ]


def test_a_checkpoint_within_a_commit_is_no_fault(shop: Trade) -> None:
    process = shop.process
    (owner,) = {row.organization_id for row in read_transactions(process.log, Selection())}
    look_up(process, owner)
    process.tree_keeper.catch_up()
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


@pytest.mark.any_database
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
