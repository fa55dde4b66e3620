"""Only who opened the one-time address on the loopback interface sees a page."""

from collections.abc import Callable, Iterator

import pytest
from flask.testing import FlaskClient

from app.finance.access import Access, is_loopback
from app.finance.application import HEADERS
from tests.app.finance.conftest import Shop, pages_of

Enter = Callable[[], FlaskClient]


@pytest.fixture
def access() -> Access:
    return Access(8090)


@pytest.fixture
def enter(shop: Shop, access: Access) -> Iterator[Enter]:
    """Makes new browsers, none of which has opened the address."""
    with pages_of(shop.process, access) as app:
        yield app.test_client


def test_the_address_opens_once_in_one_browser(enter: Enter, access: Access) -> None:
    first, second, address = enter(), enter(), f"/open/{access.token}"
    assert first.get("/").status_code == 403
    assert first.head(address).status_code == 403  # A look ahead does not spend it.
    opened = first.get(address)
    assert (opened.status_code, opened.headers["Location"]) == (303, "/")
    assert first.get("/").status_code == 200
    assert first.get(address).status_code == 303  # Back in the history of the same browser.
    refused = second.get(address)
    assert refused.status_code == 403
    assert "python -m app finance" in refused.text
    assert second.get("/").status_code == 403


def test_the_cookie_is_for_these_pages_alone(enter: Enter, access: Access) -> None:
    cookie = enter().get(f"/open/{access.token}").headers["Set-Cookie"]
    assert cookie.startswith("finance-8090=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Expires" not in cookie
    assert access.token not in cookie


@pytest.mark.parametrize("cookie", ["", "x", "ä", "t" * len(Access(8090).cookie)])
def test_another_cookie_opens_nothing(enter: Enter, cookie: str) -> None:
    browser = enter()
    browser.set_cookie("finance-8090", cookie)
    assert browser.get("/transactions").status_code == 403


def test_a_wrong_token_opens_nothing_and_spends_nothing(enter: Enter, access: Access) -> None:
    assert enter().get(f"/open/{access.token}x").status_code == 403
    assert enter().get("/open/%C3%A4").status_code == 403
    assert enter().get(f"/open/{access.token}").status_code == 303


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "[::2]"])
def test_a_name_that_was_made_to_lead_here_is_refused(shop: Shop, host: str) -> None:
    assert shop.browser.get("/", headers={"Host": host}).status_code == 421


def test_names_of_the_loopback_interface_are_ours_at_any_port() -> None:
    assert all(map(is_loopback, ("127.0.0.1:8090", "localhost:9000", "LOCALHOST", "[::1]:1")))


def test_every_reply_tells_the_browser_to_trust_nothing_else(shop: Shop) -> None:
    for path in ("/", "/static/finance.css", "/no", "/transactions.csv", "/transactions?kind=no"):
        headers = shop.browser.get(path, buffered=True).headers
        for name, value in HEADERS.items():
            assert headers[name] == value or name == "Cache-Control", (path, name)
    assert "script" not in shop.get("/")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_sent(shop: Shop, method: str) -> None:
    assert shop.browser.open("/", method=method, data=b"x").status_code == 405
