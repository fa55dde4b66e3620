"""Statements on the pages are those of the books, and name the checkpoint that vouches for them."""

import csv
from decimal import Decimal
from io import StringIO

import pytest
from flask.testing import FlaskClient

from domain.finance.statement import Month
from tests.app.finance.conftest import browsing, live
from tests.installation import Process


def checks_of(browser: FlaskClient) -> str:
    return browser.get("/checks").text


def test_a_month_is_open_then_final_and_its_successor_begins_where_it_ended(
    process: Process,
) -> None:
    acme, other, _ = live(process)
    clock = process.clock
    with browsing(process) as browser:
        assert "The month is open" in browser.get("/statements?month=2026-03").text
        process.log.append(Month.close("2026-03", process.cause()))
        process.look_up(acme)  # Dated in March, behind its close.
        process.projector.catch_up()
        clock.forward(minutes=5)
        made = process.checkpoints.make()

        page = browser.get("/statements?month=2026-03").text
        assert "nothing changes these statements" in page
        assert f"/checks/{made.number}" in page
        march = browser.get(f"/statements/{acme}?month=2026-03").text
        assert "final" in march
        assert "99.705" in march
        april = browser.get(f"/statements/{acme}?month=2026-04").text
        assert "99.705" in april
        assert "99.700" in april
        quiet = browser.get(f"/statements/{other}?month=2026-04").text
        assert "No entries in this month." in quiet
        assert quiet.count("4.96") == 2  # It opens and closes with what March has left.
        assert browser.get(f"/statements/{acme}?month=2026-02").status_code == 404
        assert "April" not in browser.get(f"/wallets/{acme}").text

        rows = [*csv.DictReader(StringIO(browser.get("/statements.csv?month=2026-03").text))]
        assert [row["organization"] for row in rows] == ["'=<b>Acme</b> & Sons", "Other"]
        for row in rows:
            net = Decimal(row["credit"]) - Decimal(row["debit"])
            assert Decimal(row["opening_balance"]) + net == Decimal(row["closing_balance"])


@pytest.mark.each_database
def test_the_page_of_a_month_keeps_the_first_checkpoint_behind_its_close(process: Process) -> None:
    live(process)
    process.log.append(Month.close("2026-03", process.cause()))
    process.projector.catch_up()
    process.clock.forward(minutes=5)
    made = process.checkpoints.make()
    process.organization()
    process.clock.forward(minutes=5)
    process.checkpoints.make()
    with browsing(process) as browser:
        assert browser.get(f"/checks/{made.number}").text == made.signed.note
        checks = checks_of(browser)
        assert f"{process.log.head():,}" in checks
        assert "CHECKPOINT_SINK has accepted none" in checks
        assert f'"/checks/{made.number}"' in browser.get("/statements?month=2026-03").text
        with process.databases.keys.writing() as connection:
            connection.exec_driver_sql("UPDATE checkpoints SET note = 'x'")
        assert "No checkpoint vouches" in browser.get("/statements?month=2026-03").text


def test_a_month_of_which_nothing_is_known_is_called_neither_open_nor_final(
    process: Process,
) -> None:
    with browsing(process) as browser:
        page = browser.get("/statements?month=2026-02").text
        assert ("No wallet has an entry" in page, 'class="state' in page) == (True, False)


def test_the_checks_begin_with_the_audit_of_the_night(process: Process) -> None:
    with browsing(process) as browser:
        assert "none yet" in checks_of(browser)
        report = '{"events":1234,"failures":[{"position":7,"reason":"a balance is wrong"}]}'
        process.notes.replace("audit", report, process.clock())
        assert "a balance is wrong" in checks_of(browser)
        process.notes.replace("audit", '{"events":1234,"failures":[]}', process.clock())
        assert "1,234 events" in checks_of(browser)
        assert "holds" in checks_of(browser)
