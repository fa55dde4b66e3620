"""What the pages show is what the log says."""

import csv
import re
from datetime import date
from decimal import Decimal
from io import StringIO
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.books.margin import margin_of
from app.finance import words
from app.http.finance.page import KIND_NAMES
from domain.accounts.approvals import WaitsForApproval
from domain.cause import Cause
from projections.finance.figures import Figures, Wanted, cursor_of
from projections.finance.views import VIEWS
from projections.models.transactions import KINDS
from tests.app.finance.conftest import NASTY, Shop, browsing, live
from tests.installation import Installation, Process, SetClock, postgresql_only
from tests.operators import as_operator

pytestmark = pytest.mark.each_database

ROW = re.compile(r'<td class="what"><a href="(/transactions/[0-9a-f-]{36})">')


def refund_of(shop: Shop) -> str:
    (link,) = ROW.findall(shop.get("/transactions?kind=refund"))
    return str(link)


def test_a_refund_leads_to_its_charge_and_back(shop: Shop) -> None:
    refund = refund_of(shop)
    page = shop.get(refund)
    charge = re.findall(r'<a href="(/transactions/[^"]+)">the charge of 0.01</a>', page)[0]
    assert "lookup unavailable" in page
    assert "Wallet: refunded" in page
    assert "Bulk job: created" in page
    told = shop.get(charge)
    assert refund in told
    assert "0.005 of the charge is left" in told
    for kind, is_charge in (("deposit", False), ("lookup", True)):
        story = shop.get(ROW.findall(shop.get(f"/transactions?kind={kind}"))[-1])
        assert ("Nothing of it was refunded" in story) == is_charge
    # Two organizations have looked up at that moment; nothing of another moment is shown.
    assert story.count('class="place"') == 4


def test_what_an_operator_did_names_the_operator(shop: Shop) -> None:
    process = shop.process
    cause = Cause(process.cause().at, "cli-7", "os:alice")
    process.accounts.move("deposit", shop.other, 1_000_000, "bank-7", cause)
    process.projector.catch_up()
    page = shop.get(ROW.findall(shop.get("/transactions?kind=deposit"))[0])
    assert "by os:alice" in page
    assert "cli-7" in page


@pytest.mark.parametrize("kind", ["deposit", "adjustment"])
def test_what_two_operators_did_names_both(shop: Shop, kind: str) -> None:
    process, accounts = shop.process, shop.process.accounts
    by = {name: as_operator(process, f"{name}-{kind}") for name in ("anna", "bert")}
    accounts.approvals.set_limit(1_000_000, process.cause())
    facts = {} if kind == "deposit" else {"reason": "why"}
    with pytest.raises(WaitsForApproval) as waits:
        accounts.move(kind, shop.other, 1_000_001, "r-8", by["anna"], **facts)  # type: ignore[arg-type]  # one of these
    accounts.approve(waits.value.proposal.id, by["bert"])
    process.projector.catch_up()
    (story, *_) = ROW.findall(shop.get(f"/transactions?kind={kind}"))
    page = shop.get(story)
    for name, fact in (("anna", "made"), ("bert", "app")):
        assert re.search(rf": {fact}\w*</b>\s*(<span.*?</span>)?\s*<span[^>]*>by {name}-", page)
    assert "operator:" not in page


def test_a_thing_is_found_by_its_id_and_a_transaction_opens(shop: Shop) -> None:
    assert len(ROW.findall(shop.get(f"/transactions?reference={shop.job}"))) == 2
    refund = refund_of(shop).rpartition("/")[2]
    reply = shop.browser.get(f"/transactions?reference={refund}")
    assert (reply.status_code, reply.headers["Location"]) == (303, f"/transactions/{refund}")
    assert "Nothing has this id" in shop.get(f"/transactions?reference={uuid4()}")
    assert "Nothing has this id" in shop.get("/transactions?reference=c-1")
    own = f"/transactions?organization={shop.acme}&reference=c-1"
    assert len(ROW.findall(shop.get(own))) == 1


def test_the_margin_is_that_of_the_report(shop: Shop) -> None:
    page, total = shop.get("/margin"), margin_of(shop.process.log, "day").total
    left = total.revenue_micros - total.refunds_micros - total.cost_micros("USD")
    assert f"<dd>{words.money(left)} <small>USD" in page
    assert f"<dd>{total.unknown}</dd>" in page
    assert page.count(">offline<") == 2


def test_names_are_shown_as_they_are_written(shop: Shop) -> None:
    for path in ("/", "/wallets", f"/wallets/{shop.acme}", refund_of(shop)):
        page = shop.get(path)
        assert "<b>Acme" not in page
        assert "=&lt;b&gt;Acme&lt;/b&gt; &amp; Sons" in page


def test_a_download_holds_the_stream_and_computes_nothing(shop: Shop) -> None:
    reply = shop.browser.get(f"/transactions.csv?organization={shop.acme}")
    assert reply.headers["Content-Disposition"] == 'attachment; filename="transactions.csv"'
    rows = [*csv.DictReader(StringIO(reply.text))]
    assert [int(row["sequence"]) for row in rows] == [*range(len(rows), 0, -1)]
    assert sum(Decimal(row["change"]) for row in rows) == Decimal(rows[0]["balance_after"])
    assert rows[0]["organization"] == f"'{NASTY}"
    assert rows[0]["description"] == "'=1+1"
    assert len(shop.get("/transactions.csv?kind=topup").splitlines()) == 1
    shop.get("/transactions.csv?reference=c-1", 400)


@pytest.mark.parametrize(
    "path",
    [
        "/transactions?kind=no",
        "/transactions?since=yesterday",
        "/transactions?before=-1",
        "/transactions?before=99999999999999999999",
        "/transactions?organization=1",
        "/transactions?reference=" + "x" * 256,
        "/?days=31",
        "/margin?days=365",
        "/wallets?page=0",
        "/wallets?page=9223372036854775807",
        "/statements?month=2026-13",
        "/statements?month=0001-01",
        "/wallets?name=%00",
    ],
)
def test_what_cannot_be_read_is_told(shop: Shop, path: str) -> None:
    assert "This cannot be read" in shop.get(path, 400)


def test_a_filter_may_end_with_the_last_day_there_is(shop: Shop) -> None:
    assert "Deposit" in shop.get("/transactions?since=0001-01-01&until=9999-12-31")


def test_what_is_not_there_is_told(shop: Shop) -> None:
    things = (f"/{each}/{UUID(int=7)}" for each in ("wallets", "transactions", "statements"))
    for path in ("/no", "/checks/7", *things):
        assert "There is no such page" in shop.get(path, 404)


def test_every_kind_has_a_name_and_a_colour(shop: Shop) -> None:
    style = shop.get("/static/finance.css")
    assert KIND_NAMES.keys() == set(KINDS)
    for kind in KINDS:
        assert style.count(f"--{kind}:") == 2  # Light and dark.
        assert f"i.{kind} " in style


def test_lists_go_on_where_they_ended(process: Process) -> None:
    acme, other, _ = live(process)
    figures = Figures(process.open_finance())
    for owner in (None, acme, other):
        for kind in (None, "lookup"):
            wanted, found = Wanted(owner, kind), []
            while page := figures.entries(wanted, 3):
                found += page
                wanted = Wanted(owner, kind, before=cursor_of(wanted, page[-1]))
            positions = [each.position for each in found]
            assert positions == sorted(set(positions), reverse=True)
            assert {each.kind for each in found} == {kind} if kind else len(found) > 8
            assert found == [*figures.every_entry(Wanted(owner, kind))]
    figures.database.close()


def test_days_are_whole_whatever_clocks_said(process: Process) -> None:
    """A machine whose clock is behind appends an entry of the day before."""
    clock = process.clock = SetClock()
    acme = process.organization("5.00")
    days = (2, 2, 3, 2, 3, 4)
    for number, day in enumerate(days):
        clock.now = clock.now.replace(day=day)
        process.look_up(acme, f"+1415555010{number}")
    process.projector.catch_up()
    figures = Figures(process.open_finance())
    for owner in (None, acme):
        for kind in (None, "lookup"):
            for day in (2, 3, 4, 5):
                at = date(2026, 3, day)
                found = figures.entries(Wanted(owner, kind, since=at, until=at), 10)
                assert len(found) == days.count(day)
        assert len(figures.entries(Wanted(owner, since=date(2026, 3, 3)), 10)) == 3
    figures.database.close()


def test_a_session_of_the_pages_cannot_write(process: Process) -> None:
    for _ in range(10):  # Together they hold more than 64 bits.
        process.organization("999999999999.00")
    process.projector.catch_up()
    database = process.open_finance()
    with pytest.raises(DBAPIError), database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM wallets")
    assert Figures(database).total_balance() == (9_999_999_999_990_000_000, 10)
    database.close()


@postgresql_only("SQLite has no roles")
def test_a_role_that_may_read_the_views_is_enough(
    installation: Installation, process: Process
) -> None:
    acme, *_ = live(process)
    views = ", ".join(view.name for view in VIEWS["postgresql"])
    with process.views.writing() as connection:
        create = "CREATE ROLE only_reads LOGIN PASSWORD 'x'"
        connection.exec_driver_sql(f"DROP ROLE IF EXISTS only_reads; {create}")
        connection.exec_driver_sql(f"GRANT SELECT ON {views} TO only_reads")
    url = re.sub(r"//[^@/]*@", "//only_reads:x@", installation.environment["DATABASE_URL"])
    installation.environment |= {"FINANCE_DATABASE_URL": url}
    reader = installation.process()
    pages = ["/", "/wallets", f"/wallets/{acme}", "/transactions", "/transactions.csv", "/checks"]
    pages += ["/margin", "/statements?month=2026-03", f"/statements/{acme}?month=2026-03"]
    own, days = f"?organization={acme}", "since=2026-03-02&until=2026-03-09"
    found = ("reference=c-1", "until=2026-03-09", f"{days}&kind=refund")
    pages += [f"/transactions?{each}" for each in found]
    pages += [f"/transactions{own}&{each}" for each in (*found, f"{days}&kind=lookup", "before=4")]
    pages += [f"/transactions.csv{own}&{days}", "/transactions.csv?kind=refund&since=2026-03-02"]
    pages += ["/wallets?name=ACME", "/margin?days=90", "/statements.csv?month=2026-03"]
    with browsing(reader) as browser:
        pages += ROW.findall(browser.get("/transactions?kind=refund").text)
        assert [browser.get(path).status_code for path in pages] == [200] * len(pages)
    database = reader.open_finance()
    with pytest.raises(DBAPIError, match="permission"), database.reading() as connection:
        connection.exec_driver_sql("SELECT 1 FROM wallets")
    database.close()
    with process.views.writing() as connection:
        connection.exec_driver_sql("DROP OWNED BY only_reads; DROP ROLE only_reads")


def test_a_database_that_is_gone_is_told(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        statement = "SELECT"
        raise DBAPIError(statement, None, OSError("gone"))

    monkeypatch.setattr(Figures, "total_balance", gone)
    assert "The database does not answer" in shop.get("/", 503)
    missing = text("SELECT 1 FROM no_view")
    monkeypatch.setattr(Figures, "total_balance", lambda its: its.database.all(missing))
    assert "python -m app migrate" in shop.get("/", 503)
    monkeypatch.setattr(Figures, "total_balance", lambda _: UUID("x"))
    assert "A fault of this page" in shop.get("/", 500)
