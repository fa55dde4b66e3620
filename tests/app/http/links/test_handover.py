"""The traveller's page: what it shows, for whom it opens, and that its address stays a secret."""

import logging
import re
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError
from werkzeug.test import TestResponse

from app.http.edge.request import request_id_of
from app.http.links import routes
from app.http.links.qr import as_png
from app.http.links.traveller import LANGUAGES, PATH, PER_MINUTE, WORDS, ink_on
from app.processes.erasing import erase, keys_of_number, keys_of_stream
from app.security.throttle import ADDRESS_FAILURES_MAX
from app.watch.logging import mask
from domain.accounts.organization import Organization
from domain.cause import Cause
from domain.links.handover import address_of, hand_over, load_handover
from domain.links.link import HANDOVERS_MAX, Link
from tests.app.http.buying import FREE, LINKS, Buyer
from tests.app.http.links.test_link_qr import image, of_png, of_svg, scan
from tests.app.http.service import Service, code_of, fields_of
from tests.plan_files import import_plans, plan
from tests.projections.stores.test_faults import rename

SHOP = "https://shop.example/more?a=1&b=2"
NOWHERE = f"{PATH}hov_{'A' * 43}"


@dataclass
class Read(HTMLParser):
    """A page as a browser reads it."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "path", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "path":
            assert self.open.pop() == tag, "what is opened is closed"

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open[-1] != "style":
            self.texts.append(data.strip())

    def all(self, tag: str, name: str) -> list[str | None]:
        return [attrs[name] for each, attrs in self.tags if each == tag and name in attrs]


def read(reply: TestResponse) -> Read:
    page = Read()
    page.feed(reply.text)
    assert page.open == []
    return page


def make(shop: Buyer, link: dict[str, Any], key: str = "", **body: Any) -> TestResponse:
    return shop.post(f"{LINKS}/{link['id']}/handover", json=body, key=key)


def page_of(shop: Buyer, link: dict[str, Any], **body: Any) -> str:
    """Make an address and return its path."""
    reply = make(shop, link, **body)
    assert reply.status_code == 201, reply.text
    return str(reply.json["data"]["url"]).removeprefix("https://api.example")


def visit(shop: Buyer, path: str, **headers: str) -> TestResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return shop.service.client.get(path, headers=named)


def gone(shop: Buyer, path: str) -> bool:
    """Tell whether an address opens nothing; it is told as one that never was."""
    reply, never = visit(shop, path), visit(shop, NOWHERE)
    if reply.status_code == 200:
        return False
    assert (reply.status_code, reply.data) == (404, never.data)
    own = {"X-Request-Id"}
    assert {*reply.headers} - {*never.headers} <= {(n, reply.headers[n]) for n in own}
    return True


@pytest.fixture(autouse=True)
def _nobody_waits(service: Service) -> None:
    """Each test counts wrong addresses anew."""
    service.container.counters.clear("throttle")


def test_a_page_has_what_a_phone_needs_and_nothing_of_the_person(acme: Buyer) -> None:
    link = acme.link(FREE, name="Anna Muster")
    path = page_of(acme, link, top_up_url=SHOP)
    reply = visit(acme, path)
    page, now = read(reply), acme.read(link).json["data"]
    ways = [now["apple_activation_url"], now["android_activation_url"]]
    assert page.all("a", "href") == [*ways, SHOP]
    _, server, code = link["lpa_profile"].split("$")
    assert {server, code, FREE, "1 GB"} <= {*page.texts}
    pixels, width = of_svg(reply.data)[:2]
    assert scan(pixels, width) == link["lpa_profile"]
    for personal in ("Anna", link["iccid"], link["id"], str(link["msisdn"])):
        assert personal not in reply.text + path
    assert acme.service.client.head(path).data == b""


def test_a_phone_of_another_kind_finds_its_button_first(acme: Buyer) -> None:
    path = page_of(acme, acme.link(FREE))
    for agent, first in (
        ("Linux; Android 15", "android"),
        ("iPhone OS 18_0", "apple"),
        ("", "apple"),
    ):
        page = read(visit(acme, path, User_Agent=f"Mozilla/5.0 ({agent})"))
        assert f"//esimsetup.{first}.com" in str(page.all("a", "href")[0])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_all_of_it(acme: Buyer, language: str) -> None:
    words = WORDS[language]
    assert words.keys() == WORDS["en"].keys()
    assert all(words.values())
    link = acme.link(FREE)
    fixed, free = page_of(acme, link, language=language), None
    for path, wanted in ((fixed, "en"), (free, f"{language}-XX, en;q=0.5")):
        reply = visit(acme, path or page_of(acme, link), Accept_Language=wanted)
        page = read(reply)
        assert (page.all("html", "lang"), page.all("html", "dir")) == ([language], [words["dir"]])
        assert {words["title"], words["scan"], words["used_text"]} <= {*page.texts}
        ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
        for tag, name in (("section", "aria-labelledby"), ("a", "aria-describedby")):
            assert {*page.all(tag, name)} <= ids
        assert "{" not in "".join(page.texts)
    lost = visit(acme, NOWHERE, Accept_Language=language)
    assert words["gone_text"] in read(lost).texts


def test_a_language_that_there_is_not_is_english(acme: Buyer) -> None:
    for wanted in ("tlh", "*", "x" * 5_000, "de;q=nonsense"):
        page = read(visit(acme, NOWHERE, Accept_Language=wanted))
        assert page.all("html", "lang") == (["de"] if wanted.startswith("de") else ["en"])


def test_usage_is_what_was_seen_last_and_nobody_asks_the_network(
    acme: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = acme.link(FREE)
    path = page_of(acme, link, picture=True)
    acme.post(f"/v1/sandbox/links/{link['id']}", json={"action": "use", "percent": 25})
    acme.read(link)
    version = acme.service.container.log.get(Link, UUID(link["id"])).version
    network = acme.service.container.bare_network
    for name in ("usage", "status", "lpa"):
        monkeypatch.setattr(network, name, lambda *_, **__: pytest.fail("a call"))
    words, reply = WORDS["en"], visit(acme, path)
    page = read(reply)
    assert {"750 MB", words["installed"], words["until"]} <= {*page.texts}
    assert reply.text.index(words["plan"]) < reply.text.index(words["install_text"])
    pixels, width = of_png(visit(acme, f"{path}/qr.png").data)
    assert scan(pixels, width) == link["lpa_profile"]
    assert acme.service.container.log.get(Link, UUID(link["id"])).version == version


def test_a_page_has_the_brand_of_its_organization(acme: Buyer) -> None:
    path, logo = page_of(acme, acme.link(FREE)), b64encode(as_png("https://acme.example", 64))
    accounts = acme.service.container.accounts
    plain = visit(acme, path)
    assert (plain.text.count("<img"), plain.text.count("@media screen")) == (0, 0)
    for colour, ink in {"#1a4fa0": "#fff", "#ffd400": "#000", "#777777": "#000"}.items():
        accounts.change_organization(
            acme.id,
            lambda its, colour=colour: its.set_brand(colour, logo.decode(), acme.service.cause()),
        )
        branded = visit(acme, path)
        page = read(branded)
        assert page.all("img", "src") == [f"data:image/png;base64,{logo.decode()}"]
        assert f"--brand: {colour}; --on-brand: {ink};" in branded.text
        style = branded.text.partition("<style>")[2].partition("</style>")[0]
        digest = b64encode(sha256(style.encode()).digest()).decode()
        assert f"style-src 'sha256-{digest}'" in branded.headers["Content-Security-Policy"]


@given(colour=st.binary(min_size=3, max_size=3))
def test_words_on_any_colour_can_be_read(colour: bytes) -> None:
    """By the formula of WCAG 2.2 (relative luminance), which is written down here once more."""

    def luminance(code: bytes) -> float:
        parts = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in code]
        return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    ink = {"#fff": 1.0, "#000": 0.0}[ink_on(f"#{colour.hex()}")]
    low, high = sorted((luminance(colour), ink))
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_nobody_on_the_way_keeps_the_picture(acme: Buyer) -> None:
    picture = visit(acme, f"{page_of(acme, acme.link(FREE), picture=True)}/qr.png")
    assert (picture.content_type, picture.headers["Cache-Control"]) == ("image/png", "no-store")


def test_what_a_mail_program_adds_opens_nothing_and_is_told_in_words(acme: Buyer) -> None:
    path = page_of(acme, acme.link(FREE))
    for more in ("/", "/qr.svg", "/a/b", ".", "%20"):
        assert gone(acme, path + more), more


def test_pages_of_one_organization_are_drawn_one_at_a_time(
    shop: Buyer, acme: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures, theirs = shop.service.container.pictures, page_of(acme, acme.link(FREE))
    paths = [page_of(shop, shop.link(FREE), picture=True) for _ in range(2)]
    monkeypatch.setattr(pictures, "wait_s", 0.01)
    with pictures.slot(shop.id):
        for path in (*paths, f"{paths[0]}/qr.png"):
            assert visit(shop, path).status_code == 429
        assert image(shop, shop.link(FREE)).status_code == 429
        assert visit(acme, theirs).status_code == 200
    assert visit(shop, paths[0]).status_code == 200


def suspend(shop: Buyer, link: dict[str, Any]) -> None:
    assert shop.post(f"{LINKS}/{link['id']}/suspend").status_code == 200


def end(shop: Buyer, link: dict[str, Any]) -> None:
    assert shop.open("DELETE", f"{LINKS}/{link['id']}").status_code == 200


def forget(shop: Buyer, link: dict[str, Any]) -> None:
    parts = shop.service.container
    erase(parts, [keys_of_stream(parts, "link", UUID(link["id"]), shop.id)], shop.service.cause())


def close(shop: Buyer, _: dict[str, Any]) -> None:
    suspended = partial(Organization.change_status, status="suspended", cause=shop.service.cause())
    shop.service.container.accounts.change_organization(shop.id, suspended)


@pytest.mark.parametrize("ends", [suspend, end, forget, close])
def test_an_address_is_dead_with(shop: Buyer, ends: Callable[..., None]) -> None:
    link = shop.link(FREE)
    path = page_of(shop, link, picture=True)
    assert not gone(shop, path)
    ends(shop, link)
    assert gone(shop, path)
    assert gone(shop, f"{path}/qr.png")


def test_an_address_ends_and_comes_back_with_a_link_that_is_reactivated(
    acme: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = acme.link(FREE)
    path = page_of(acme, link, expires_in=300)
    suspend(acme, link)
    acme.post(f"{LINKS}/{link['id']}/reactivate")
    assert not gone(acme, path)
    later = acme.service.container.clock() + timedelta(seconds=301)
    monkeypatch.setattr(acme.service.container.gate, "now", lambda: later)
    assert gone(acme, path)


def test_what_is_erased_takes_the_address_of_the_shop_with_it(acme: Buyer) -> None:
    """It may name a person, and may be sealed by another month than the activation code."""
    parts, link = acme.service.container, acme.link(FREE)
    known, later = parts.log.get(Link, UUID(link["id"])), datetime(2031, 1, 1, tzinfo=UTC)
    facts: dict[str, Any] = {"language": None, "picture": False, "top_up_url": SHOP}
    facts["expires_in"] = 300
    made, _ = hand_over(
        *(parts.log, parts.vault, known, parts.new_id(), Cause(later, "test")),
        secret=b"s" * 16,
        **facts,
    )
    sealed = made.made.top_up_url
    assert sealed is not None
    assert sealed.month.startswith("2031-01")
    assert parts.vault.open(acme.id, known.id, sealed) == SHOP.encode()
    forget(acme, link)
    assert parts.vault.open(acme.id, known.id, sealed) is None


def test_a_number_in_the_address_of_the_shop_is_found_to_be_erased(acme: Buyer) -> None:
    link, other = acme.link(FREE), acme.link(FREE)
    page_of(acme, link, top_up_url="https://shop.example/?for=1%20415-555-2671&n=14155552671")
    page_of(acme, other, top_up_url=SHOP)
    parts, mine = acme.service.container, acme.read(other).json["data"]["msisdn"]
    assert keys_of_number(parts, acme.id, "+14155552671").links == {UUID(link["id"])}
    assert keys_of_number(parts, acme.id, mine).links == {UUID(other["id"])}
    rename(parts, "network_readings", "gone")
    with pytest.raises(DBAPIError):  # Rather than to erase less than it was asked for.
        keys_of_number(parts, acme.id, mine)
    rename(parts, "gone", "network_readings")


def test_an_address_is_stored_as_a_hash_and_says_nothing_of_the_link(acme: Buyer) -> None:
    link, log = acme.link(FREE), acme.service.container.log
    address = page_of(acme, link).removeprefix(PATH)
    found = load_handover(log, address)
    assert found is not None
    assert re.fullmatch("[0-9a-f]{64}", found.made.secret_hash)
    assert address not in str([vars(each) for each in log.history(found.id)])
    for wrong in (address[:-1], f"{address}A", address.lower(), address_of(found.id, b"0" * 16)):
        assert load_handover(log, wrong) is None
    other = load_handover(log, address_of(UUID(link["id"]), b"0" * 16))
    assert other is None, "a stream of another kind"


def test_wrong_addresses_count_for_who_sends_them_and_for_nobody_else(acme: Buyer) -> None:
    path, elsewhere = page_of(acme, acme.link(FREE)), {"REMOTE_ADDR": "192.0.2.7"}
    client = acme.service.client
    for number in range(ADDRESS_FAILURES_MAX):
        wrong = f"{PATH}hov_{number:043d}" if number % 2 else f"{PATH}{number}"
        assert client.get(wrong, environ_base=elsewhere).status_code == 404
    reply = client.get(NOWHERE, environ_base=elsewhere)
    assert (reply.status_code, reply.content_type) == (429, "text/html; charset=utf-8")
    assert 0 < int(reply.headers["Retry-After"]) <= 60
    assert WORDS["en"]["later_text"] in read(reply).texts
    assert client.get(path, environ_base=elsewhere).status_code == 200, "it has a right one"
    assert client.get(NOWHERE).status_code == 404, "another sender"
    assert acme.get("/v1/wallet").status_code == 200
    acme.service.token(acme.client_id)


def test_a_flood_of_one_address_is_its_own(shop: Buyer, acme: Buyer) -> None:
    flooded, other = page_of(shop, shop.link(FREE)), page_of(shop, shop.link(FREE))

    replies = [visit(shop, flooded) for _ in range(2 * PER_MINUTE + 1)]  # A minute may end.
    refused = [each for each in replies if each.status_code == 429]
    assert refused
    assert 0 < int(refused[0].headers["Retry-After"]) <= 60
    assert visit(shop, other).status_code == 200
    assert visit(shop, page_of(acme, acme.link(FREE))).status_code == 200
    assert shop.get("/v1/wallet").status_code == 200


def test_no_line_and_no_request_id_holds_an_address(
    acme: Buyer, caplog: pytest.LogCaptureFixture
) -> None:
    link = acme.link(FREE)
    caplog.set_level(logging.DEBUG)
    path = page_of(acme, link, picture=True, top_up_url=SHOP)
    address = path.removeprefix(PATH)
    for each in (path, f"{path}/qr.png", f"{path}/none", f"{path}?{address}=1"):
        visit(acme, each, X_Request_Id=address)
    acme.service.client.post(path)
    written = [f"{each.getMessage()} {vars(each)}" for each in caplog.records]
    routes = {vars(each).get("route") for each in caplog.records}
    assert {f"{PATH}<path:address>", f"{PATH}<address>/qr.png"} <= routes
    assert not [line for line in written if address in line or SHOP in line]
    assert mask(f"GET {path} fails") == f"GET {PATH}[secret] fails"
    assert request_id_of({"HTTP_X_REQUEST_ID": address}) != address


HOSTILE = (
    *("javascript:alert(1)", "http://shop.example/", "https://", "https:///x", "//shop.example"),
    *("https://user@shop.example/", "https://shop.example\\@evil.example/", "https://a..example"),
    *("https://shop.example/\n", "https://shop.example/a b", 'https://shop.example/"><script>'),
    *("https://shop.example/\u202e", "https://münchen.example/", "https://\u0430pple.com/"),
    *("https://a", "https://127.0.0.1/", "https://[::1]/", "https://shop.example:99999/"),
    *("https://shop.example:8443/", "data:text/html,x", "https://shop.example/\x00"),
    *(f"https://shop.example/{'x' * 2_048}", "", 7),
)


def test_an_address_of_a_shop_that_could_harm_is_refused(acme: Buyer) -> None:
    link = acme.link(FREE)
    for url in HOSTILE:
        assert [*fields_of(make(acme, link, top_up_url=url))] == ["top_up_url"], url
    for url in ("https://xn--mnchen-3ya.example", "https://shop.example/?q='&lt;"):
        page = read(visit(acme, page_of(acme, link, top_up_url=url)))
        assert page.all("a", "href")[-1] == url


def test_names_are_shown_as_text(service: Service) -> None:
    evil = '<script>alert("1")</script>&amp;'
    shop = Buyer(service.tenant())
    import_plans(service.container, plan(evil, organization_id=str(shop.id), retail_price="0.00"))
    service.until_projected("plans")
    plans = shop.get("/v1/plans?per_page=100").json["data"]["data"]
    (found,) = [each["id"] for each in plans if each["name"] == evil]
    link = shop.post(LINKS, json={"plan_id": found}).json["data"]
    page = read(visit(shop, page_of(shop, link)))
    assert evil in page.texts
    assert "script" not in {tag for tag, _ in page.tags}


def test_a_key_gives_its_outcome_again_but_not_the_secret(
    acme: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies behind its commit: the reply is lost, and the secret with it."""
    link, other = acme.link(FREE), acme.link(FREE)
    with monkeypatch.context() as dying:
        dying.setattr(routes, "address_of", lambda *_: 1 // 0)
        assert make(acme, link, key="h-1", top_up_url=SHOP).status_code == 500
    again = make(acme, link, key="h-1", top_up_url=SHOP)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert again.json["data"]["url"] is None
    for body, differs in (
        ({"top_up_url": None}, "top_up_url"),
        ({"top_up_url": SHOP, "expires_in": 301}, "expires_in"),
        ({"top_up_url": SHOP, "picture": True}, "picture"),
    ):
        refused = make(acme, link, key="h-1", **body)
        assert f"another {differs};" in refused.json["error"]["message"]
    assert "another link;" in make(acme, other, key="h-1", top_up_url=SHOP).text
    renewed = make(acme, link, key="h-2", top_up_url=SHOP).json["data"]["url"]
    make(acme, link, key="h-1", top_up_url=SHOP)
    assert not gone(acme, renewed.removeprefix("https://api.example")), "a replay changes nothing"
    end(acme, link)
    assert make(acme, link, key="h-1", top_up_url=SHOP).status_code == 201
    assert code_of(make(acme, link, key="h-3")) == "LINK_ENDED"


def test_of_requests_at_once_one_address_counts(acme: Buyer) -> None:
    link = acme.link(FREE)
    with ThreadPoolExecutor(6) as pool:
        paths = [*pool.map(lambda _: page_of(acme, link), range(6))]
        assert [gone(acme, each) for each in paths].count(False) == 1
        with_one_key = [*pool.map(lambda _: make(acme, link, key="once"), range(4))]
    assert [each.status_code for each in with_one_key] == [201] * 4
    assert len([each for each in with_one_key if each.json["data"]["url"]]) == 1


def test_a_link_is_handed_over_so_often_a_day(acme: Buyer) -> None:
    parts, link = acme.service.container, acme.link(FREE)
    known = parts.log.get(Link, UUID(link["id"]))
    for _ in range(HANDOVERS_MAX):
        known.hand_over(parts.new_id(), acme.service.cause())
        known.hand_over(None, acme.service.cause())  # To revoke one is free.
    known.hand_over(None, acme.service.cause())
    parts.log.append(known)
    reply = make(acme, link)
    assert (reply.status_code, code_of(reply)) == (429, "RATE_LIMITED")
    assert int(reply.headers["Retry-After"]) > 0
    assert acme.open("DELETE", f"{LINKS}/{link['id']}/handover").status_code == 200
    assert make(acme, link).status_code == 429
