"""The pages at `/docs` as people meet them: in Chromium, on desk and phone, and below a path."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.http.docs import HOME
from tests.app.http.conftest import MakeService
from tests.app.http.over_http import HOST, serving
from tests.app.http.test_docs import NAMES
from tests.servers.browser import Browser, Page

pytestmark = pytest.mark.soak  # Links, policy and samples are the rules of test_docs.

DESK, PHONE = 1280, 400
WIDTHS = [DESK, PHONE]
# Swagger UI takes an underscore in the name of an operation for a space of old; it opens it all the
# same.
KNOWN = "Deprecated: escaping deep link whitespace with `_`"
ALL_SHOWN = """[...document.querySelectorAll('.samples')].every(
  each => each.querySelector('pre:not([hidden])').dataset.language === '%s')"""
PAINTED_MS = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def docs(share_service: MakeService) -> Iterator[str]:
    """The URL of the pages of a service that people reach below a path."""
    with serving(share_service(PUBLIC_URL="", PATH_PREFIX="/below").container) as port:
        yield f"http://{HOST}:{port}/below/docs"


@pytest.fixture(params=WIDTHS)
def page(browser: Browser, docs: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of each width."""
    with visited(browser, docs, request.param) as page:
        yield page


@contextmanager
def visited(browser: Browser, docs: str, width: int = DESK) -> Iterator[Page]:
    """Open a page; whatever is done there, it asks no other host and shows no error."""
    with browser.page(width) as page:
        yield page
        ours = docs.removesuffix("docs")
        assert [each for each in page.problems if not each.startswith(KNOWN)] == []
        assert [each for each in page.requested if not each.startswith((ours, "data:"))] == []


def is_phone(page: Page) -> bool:
    return bool(page.value("innerWidth") == PHONE)


def go_to(page: Page, name: str) -> None:
    """Choose a guide in the navigation, which is a menu on a phone."""
    if is_phone(page):
        assert not page.value("document.querySelector('.menu').open")
        page.click(".menu summary")
    page.click(f"nav a[href$='{name}']")
    page.until(f"location.pathname.endsWith('/{name}') && document.readyState === 'complete'")


def test_no_guide_is_wider_than_its_window(browser: Browser, docs: str) -> None:
    with visited(browser, docs) as page:
        for name in NAMES:
            page.open(docs if name == HOME else f"{docs}/{name}")
            for width in WIDTHS:
                page.resize(width)
                assert page.value("document.querySelector('main h1').checkVisibility()"), name
                assert page.value(OVERFLOW) == 0, (name, width)


def test_the_search_is_reached_by_key_and_leads_to_an_error_code(page: Page, docs: str) -> None:
    page.open(docs)
    page.press("/")
    page.type("INSUFFICIENT_BALANCE")
    page.until("document.querySelector('.search li a')?.textContent.includes('INSUFFICIENT')")
    assert page.value(OVERFLOW) == 0
    page.press("ArrowDown")
    page.press("Enter")
    page.until("location.href.endsWith('/errors#INSUFFICIENT_BALANCE')")
    page.until("document.querySelector('tr:target').getBoundingClientRect().top < innerHeight")
    assert page.text("tr:target").startswith("402")


def test_tabulator_reaches_content_and_search_first(page: Page, docs: str) -> None:
    page.open(docs)
    reached = []
    for _ in range(3):
        page.press("Tab")
        reached.append(
            page.value("document.activeElement.className || document.activeElement.type")
        )
    assert reached == ["skip", "brand", "search"]


def test_a_language_that_was_chosen_stays_chosen(page: Page, docs: str) -> None:
    page.open(f"{docs}/quick-start")
    assert page.until(ALL_SHOWN % "bash")
    for language in ("python", "javascript"):
        page.click(f".tabs button[value={language}]")
        assert page.value(ALL_SHOWN % language)
        go_to(page, "jobs")
        assert page.value(ALL_SHOWN % language)
        go_to(page, "quick-start")
        assert page.value(ALL_SHOWN % language)


def test_an_operation_of_the_reference_is_tried_one_click_away(browser: Browser, docs: str) -> None:
    with visited(browser, docs) as page:
        page.open(f"{docs}/reference-links")
        page.click("a[href='try#/Links/create_link']")
        page.until("document.querySelector('#operations-Links-create_link.is-open')")
        page.open(f"{docs}/reference#/Links/create_link")  # As links to it were before.
        page.until("location.pathname.endsWith('/try')")


def test_a_page_of_the_reference_can_be_read_on_a_phone_within_a_second(
    browser: Browser, docs: str
) -> None:
    with visited(browser, docs, PHONE) as page:
        page.open(f"{docs}/reference-links")  # Which makes it.
        page.slow_down(bytes_per_s=200_000, latency_ms=150, processor=4)
        page.open(f"{docs}/quick-start")
        short = page.until(PAINTED_MS)
        page.open(f"{docs}/reference-links")
        # Where a short page takes as long, the machine is slower than a phone.
        assert page.until(PAINTED_MS) < max(1_000, 1.5 * short)
        assert page.value(ALL_SHOWN % "bash")


def test_the_search_leads_to_an_operation_by_its_path_and_by_a_field(
    browser: Browser, docs: str
) -> None:
    with visited(browser, docs) as page:
        for words, path in (("POST /v1/links", "post-v1-links"), ("POST top_up_url", "handover")):
            page.open(docs)
            page.click(".search input")
            page.type(words)
            page.until("document.querySelector('.search li a')")
            page.press("Enter")
            page.until(
                f"location.href.includes('/reference-links#') && location.hash.includes('{path}')"
            )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_a_page(browser: Browser, docs: str, axe: str, scheme: str) -> None:
    with browser.page(dark=scheme == "dark") as page:
        for name in ("quick-start", "errors", *(each for each in NAMES if "reference" in each)):
            page.open(f"{docs}/{name}")
            assert page.flaws(axe) == [], name
        page.open(f"{docs}/try")
        page.until("document.querySelectorAll('.opblock').length > 20")
        page.click("#operations-Links-create_link .opblock-summary-control")
        page.until("document.querySelector('#operations-Links-create_link .responses-table')")
        assert page.flaws(axe, "color-contrast") == []  # The rest is Swagger UI's own.


def test_on_paper_a_guide_shows_every_language_and_no_navigation(
    browser: Browser, docs: str
) -> None:
    with browser.page() as page:
        for name in ("quick-start", "reference-links"):
            page.open(f"{docs}/{name}")
            page.print_view()
            assert not page.value("document.querySelector('nav').checkVisibility()")
            assert page.value(
                "[...document.querySelectorAll('pre')].every(each => each.checkVisibility())"
            )
            assert page.value(OVERFLOW) == 0
