"""The traveller's page as people meet it: in Chromium, on a phone of 390 pixels and on paper."""

from base64 import b64encode
from collections.abc import Iterator

import pytest

from app.http.links.qr import as_png
from app.http.links.traveller import LANGUAGES, WORDS
from tests.app.http.buying import FREE, Buyer
from tests.app.http.links.test_handover import NOWHERE, SHOP, page_of
from tests.app.http.over_http import HOST, serving
from tests.app.http.service import Service
from tests.app.http.test_docs_in_a_browser import OVERFLOW
from tests.servers.browser import Browser

pytestmark = pytest.mark.soak  # What the page holds are the rules of test_handover.

PHONE = 390
SIDE = "getComputedStyle(document.querySelector('h1')).direction"


@pytest.fixture(scope="module")
def root(service: Service) -> Iterator[str]:
    with serving(service.container) as port:
        yield f"http://{HOST}:{port}"


@pytest.mark.each_database
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_language_fits_a_phone_and_can_be_read(
    browser: Browser, acme: Buyer, root: str, axe: str, scheme: str
) -> None:
    link, logo = acme.link(FREE), b64encode(as_png(SHOP, 64)).decode()
    acme.service.container.accounts.change_organization(
        acme.id, lambda its: its.set_brand("#ffd400", logo, acme.service.cause())
    )
    for language in LANGUAGES:
        path = page_of(acme, link, language=language, top_up_url=SHOP)
        with browser.page(PHONE, dark=scheme == "dark") as page:
            page.open(f"{root}{path}")
            assert page.text("h1") == WORDS[language]["title"]
            assert page.value("document.querySelector('.brand img').naturalWidth") > 0
            assert page.value(SIDE) == WORDS[language]["dir"]
            assert page.value(OVERFLOW) == 0, language
            assert page.flaws(axe) == [], language
            assert page.problems == []
            assert [each for each in page.requested if not each.startswith((root, "data:"))] == []


@pytest.mark.each_database
def test_what_is_gone_says_so_to_people(browser: Browser, root: str, axe: str) -> None:
    with browser.page(PHONE) as page:
        page.open(f"{root}{NOWHERE}")
        assert page.text("h1") == WORDS["en"]["gone"]
        assert (page.value(OVERFLOW), page.flaws(axe)) == (0, [])


@pytest.mark.each_database
def test_on_paper_are_the_codes_and_no_buttons(browser: Browser, acme: Buyer, root: str) -> None:
    path = page_of(acme, acme.link(FREE), top_up_url=SHOP)
    with browser.page(dark=True) as page:
        page.open(f"{root}{path}")
        page.print_view()
        assert (
            page.value("[...document.querySelectorAll('.button')].some(e => e.checkVisibility())")
            is False
        )
        assert page.value("document.querySelector('.symbol svg').checkVisibility()")
        assert page.value("document.querySelectorAll('code').length") == 2
        assert page.value("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        assert page.value(OVERFLOW) == 0
