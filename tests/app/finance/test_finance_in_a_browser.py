"""The finance view as people meet it: in Chromium, on desk and phone, in light and in dark."""

import csv
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.processes.finance import open_pages
from tests.app.finance.conftest import NASTY, Shop
from tests.app.http.over_http import running
from tests.installation import wait_until
from tests.servers.browser import Browser, Page

pytestmark = pytest.mark.soak  # What the pages hold is the rule of test_pages.

DESK, PHONE = 1280, 400
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOCUSED = "document.activeElement"


@contextmanager
def opened(
    browser: Browser, shop: Shop, width: int, *, dark: bool = False, downloads: Path | None = None
) -> Iterator[tuple[Page, str]]:
    """Open the address; whatever is done then, no other host is asked and no error is shown."""
    database = shop.process.open_finance()
    server, address = open_pages(shop.process, database, 0)
    origin = address.partition("/open/")[0]
    with (
        closing(database),
        running(server),
        browser.page(width, dark=dark, downloads=downloads) as page,
    ):
        page.open(address)
        yield page, origin
        assert page.problems == []
        assert [each for each in page.requested if not each.startswith((origin, "data:"))] == []


def follow(page: Page, selector: str, sign: str) -> None:
    """Click on a link and wait until the page that it leads to, known by its sign, stands still."""
    page.click(selector)
    page.until(f"document.readyState === 'complete' && document.querySelector({sign})")


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_a_refund_leads_to_its_charge_and_to_the_statement(
    browser: Browser, shop: Shop, width: int, tmp_path: Path
) -> None:
    with opened(browser, shop, width, dark=width == PHONE, downloads=tmp_path) as (page, origin):
        follow(page, "header nav a[href='/transactions']", "'#kind'")
        page.value("document.querySelector('#kind').value = 'refund'")
        follow(page, ".filter button", "'#kind [value=refund][selected]'")
        follow(page, ".entries .what a", "'.headline .credit'")
        assert "lookup unavailable" in page.text(".note")
        follow(page, ".note a", "'.headline .debit'")
        assert "0.005 of the charge is left" in page.text(".note")
        follow(page, ".crumbs a", "'.statements'")
        follow(page, ".statements .title a", "'.sheet'")
        assert NASTY in page.text("h1")
        follow(page, ".crumbs a", "'a[download]'")
        page.click("a[download][href^='/statements.csv']")
        file = tmp_path / "statements-2026-03.csv"
        wait_until(lambda: file.exists() and file.stat().st_size)  # Empty it keeps its place.
        with file.open(newline="") as rows:
            told = {row["organization"]: row["closing_balance"] for row in csv.DictReader(rows)}
        assert told["Other"].startswith(("4.96", "5.96"))
        assert page.value(f"location.origin === '{origin}'")


def test_every_page_fits_its_window_and_everybody_can_use_it(
    browser: Browser, shop: Shop, axe: str
) -> None:
    story = shop.get("/transactions?kind=refund").partition('class="what"><a href="')[2]
    paths = ["/", "/?days=365", "/wallets", f"/wallets/{shop.acme}", "/transactions", "/statements"]
    paths += [story.partition('"')[0], f"/statements/{shop.acme}?month=2026-03", "/margin"]
    paths += ["/checks", "/no"]
    grounds = set()
    for dark in (False, True):
        with opened(browser, shop, DESK, dark=dark) as (page, origin):
            for path in paths:
                page.open(f"{origin}{path}")
                for width in (DESK, PHONE):
                    page.resize(width)
                    assert page.value(OVERFLOW) == 0, (path, width)
                assert page.flaws(axe) == [], path
            grounds.add(page.value("getComputedStyle(document.body).backgroundColor"))
            page.problems[:] = [each for each in page.problems if "404" not in each]
    assert len(grounds) == 2


def test_everything_is_reached_by_keys(browser: Browser, shop: Shop) -> None:
    with opened(browser, shop, PHONE) as (page, _):
        page.press("Tab")
        assert page.value(f"{FOCUSED}.className") == "skip"
        assert page.value(f"{FOCUSED}.getBoundingClientRect().left") >= 0
        assert page.value(f"getComputedStyle({FOCUSED}).outlineStyle") == "solid"
        page.press("Enter")
        page.until(f"{FOCUSED}.id === 'content'")
        page.press("Tab")
        assert page.value(f"{FOCUSED}.closest('.choice') !== null")
        page.press("Tab", shift=True)
        page.until(f"{FOCUSED}.id === 'find'")
        page.type(str(shop.job))
        page.press("Enter")
        page.until("location.search.includes('reference=')")
        assert page.until("document.querySelectorAll('.entries tbody tr').length") == 2
