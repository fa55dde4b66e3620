"""The pages for people: they load only what we ship, lead somewhere, and name every code."""

import re
import sys
from collections.abc import Iterable
from functools import cache
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec
import pytest
from flask.testing import FlaskClient

from app.adapters.lookups.sandbox import MALFORMED, SECOND_ATTEMPT, SLOW, UNAVAILABLE
from app.http.docs import GUIDES, HOME, STATIC, TYPES, asset, pages
from app.http.edge.problems import OAUTH_STATUS
from domain.accounts.organization import SCOPES
from domain.errors import LATE, NO_ESIM, REJECTED, UNREACHABLE
from projections.models.transactions import KINDS
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service

# What a page can load from; a link that a person follows, or a name in a text, loads nothing.
LOADS = re.compile(
    r"""(?:src|href|action|data-url)\s*=\s*["']([^"']*)"""
    r"""|url\(\s*["']?([^"')]*)"""
    r"""|@import\s+["']([^"']*)"""
)
SHEETS_AND_OURS = [each for each in TYPES if each != "swagger-ui-bundle.js"]
DOCUMENT = msgspec.json.encode(
    {"tags": [], "paths": {}, "components": {}, "servers": [{"url": "/"}]}
)
GUIDE_NAMES = sorted(path.stem for path in GUIDES.glob("*.md"))
GROUPS = ("authentication", "number-lookup", "plans", "links", "plans-of-links", "wallet")
GROUPS += ("account", "clients", "deposits", "statements", "webhooks", "events", "health")
GROUPS += ("sandbox", "sandbox-money")
NAMES = [*GUIDE_NAMES, *(f"reference-{each}" for each in GROUPS)]


class Parts(HTMLParser):
    """The ids of a page, and what it links to or loads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.inline: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        target = given.get("href") or given.get("src")
        if target:
            (self.links if tag == "a" else self.loads).append(target)
        scripted = tag == "style" or (tag == "script" and "src" not in given)
        self.inline += [tag] if scripted else []
        self.inline += [name for name in given if name == "style" or name.startswith("on")]


def text_of(page: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page))


def url_of(name: str) -> str:
    return "/docs" if name == HOME else f"/docs/{name}"


@cache
def read(service: Service, path: str) -> Parts:
    """Return what a page links to, which must be there; it is read once."""
    reply = service.client.get(path)
    assert reply.status_code == 200, path
    return Parts(reply.text if reply.mimetype == "text/html" else "")


@pytest.fixture(scope="module")
def below(share_service: MakeService) -> FlaskClient:
    """Who reads the pages where they also stand below a path."""
    return share_service(PATH_PREFIX="/below").client


def test_the_bare_host_leads_to_the_pages(below: FlaskClient) -> None:
    for root in ("/", "/below/"):
        reply = below.get(root)
        assert (reply.status_code, reply.mimetype) == (302, "application/json")
        assert below.get(urljoin(root, reply.headers["Location"])).mimetype == "text/html"


def test_an_environment_without_the_reference_ends_the_start_not_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "flask_swagger_ui", None)  # As if it were not installed.
    monkeypatch.delitem(sys.modules, "app.http.docs")
    with pytest.raises(ModuleNotFoundError, match="flask_swagger_ui"):
        import_module("app.http.docs")


def test_a_page_is_html_under_a_strict_policy_says_what_it_is_about_and_leads_to_all(
    service: Service,
) -> None:
    said = []
    for name in NAMES:
        reply = service.client.get(url_of(name))
        said += re.findall(r'<meta name="description" content="([^"<>]{20,})">', reply.text)
        assert "icon.svg" in reply.text, name
        assert reply.mimetype == "text/html", name
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "style-src 'self';" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert read(service, url_of(name)).inline == [], "the policy would forbid it"
        tag = {"If-None-Match": reply.headers["ETag"]}
        assert service.client.get(url_of(name), headers=tag).status_code == 304
        linked = {urljoin(url_of(name), each) for each in read(service, url_of(name)).links}
        assert {url_of(each) for each in NAMES} <= linked, name
    assert len({*said}) == len(NAMES)


def test_every_link_of_a_page_leads_somewhere(service: Service) -> None:
    known = operations_of(service)
    for name in NAMES:
        parts = read(service, url_of(name))
        assert len({*parts.ids}) == len(parts.ids), "a link would lead to the first of two"
        for target in parts.loads:
            if not target.startswith("data:"):
                read(service, urljoin(url_of(name), target))
        for target in parts.links:
            if re.match(r"https?://", target):
                continue
            path, fragment = urldefrag(urljoin(url_of(name), target))
            ids = read(service, path).ids
            if fragment.startswith("/"):  # An operation on the page to try it.
                tag, operation = unquote(fragment).removeprefix("/").split("/")
                assert operation in known[tag], target
            elif fragment:
                assert fragment in ids, target


def operations_of(service: Service) -> dict[str, set[str]]:
    """Return the names of the operations of each group, as the document has them."""
    found: dict[str, set[str]] = {}
    for path in service.client.get("/openapi.json").json["paths"].values():
        for each in path.values():
            if isinstance(each, dict):
                found.setdefault(each["tags"][0], set()).add(each["operationId"])
    return found


def test_every_group_has_a_page_with_all_its_operations(service: Service) -> None:
    groups = operations_of(service)
    assert sorted(each.lower().replace(" ", "-") for each in groups) == sorted(GROUPS)
    for tag, operations in groups.items():
        links = read(service, f"/docs/reference-{tag.lower().replace(' ', '-')}").links
        tried = {unquote(each).rpartition("/")[2] for each in links if each.startswith("try#/")}
        assert tried == operations, tag


def test_the_statuses_that_matter_come_first(service: Service) -> None:
    page = text_of(service.client.get("/docs/reference-links").text)
    created = page.partition("Create a link with its first plan.")[2].partition("DELETE /v1")[0]
    said = ("plan_id", "201", "data.iccid", "402 SPENDING_LIMIT", "422 VALIDATION_ERROR")
    found = [
        created.index(each) for each in (*said, "502 PROVISIONING_ERROR", "errors of any request")
    ]
    assert found == sorted(found)
    assert "INTERNAL_ERROR" not in created[: found[-1]]


def test_a_type_is_explained_once_on_a_page(service: Service) -> None:
    page = text_of(service.client.get("/docs/reference-links").text)
    assert (
        page.count("The latest end of a plan that is in use and has data left") == 3
    )  # Its types.
    assert "Its fields are those of data of POST /v1/links." in page


def test_language_models_find_every_page_in_one_index(below: FlaskClient) -> None:
    for root in ("", "/below"):
        reply = below.get(f"{root}/llms.txt")
        assert (reply.status_code, reply.mimetype) == (200, "text/plain")
        head, says, *_ = reply.text.split("\n\n")
        assert head.startswith("# ")
        assert says.startswith("> ")
        listed = re.findall(
            r"^- \[[^\]]+\]\(https://api\.example([^)]+)\): .", reply.text, re.MULTILINE
        )
        assert {*listed} == {f"{root}{url_of(each)}" for each in NAMES} - {f"{root}/docs"}


@pytest.mark.parametrize("name", SHEETS_AND_OURS)
def test_no_asset_is_loaded_from_another_host(name: str) -> None:
    text = asset(name).decode()
    loaded = [next(filter(None, found), "") for found in LOADS.findall(text)]
    assert not [each for each in loaded if re.match(r"(?:https?:)?//", each)]


def test_the_samples_call_the_urls_of_this_installation() -> None:
    hosts = ("https://auth.example", "https://numbers.example/a", "https://base.example")
    known = pages(*hosts, "https://public.example/b", DOCUMENT)
    page = text_of(known.page("quick-start").decode())
    for line in (
        "AUTH_URL=https://auth.example",
        "NUMBERS_URL=https://numbers.example/a",
        "BASE_URL=https://base.example",
        'AUTH_URL = "https://auth.example"',
        'const BASE_URL = "https://base.example";',
    ):
        assert line in page
    reference = text_of(known.page("reference").decode())
    assert reference.count(" https://public.example/b/openapi.json") == 3
    assert "https://api.example" not in "".join(
        text_of(known.page(each).decode()) for each in known.titles
    )


def test_pages_below_a_prefix_call_what_lies_below_it(below: FlaskClient) -> None:
    for root in ("", "/below"):
        samples = text_of(below.get(f"{root}/docs/quick-start").text)
        assert f"BASE_URL=https://api.example{root}\n" in samples
        assert "docs/docs.js" in below.get(f"{root}/docs").text, "not from the root of the host"
        assert below.get(f"{root}/docs/docs.js").status_code == 200


def test_every_code_of_the_token_operation_is_explained() -> None:
    text = (GUIDES / "authentication.md").read_text("utf-8")
    for code, status in OAUTH_STATUS.items():
        assert f"| {status} `{code}` |" in text


@pytest.mark.parametrize(
    ("name", "part", "values"),
    [
        ("authentication", "## Scopes", SCOPES),
        ("errors", "## The network failed", (UNREACHABLE, LATE, REJECTED, NO_ESIM)),
        ("money", "## Look at it", KINDS),
        ("sandbox", "## Numbers", (UNAVAILABLE, SLOW, MALFORMED, SECOND_ATTEMPT)),
    ],
)
def test_a_table_of_values_has_all_of_them(name: str, part: str, values: Iterable[str]) -> None:
    text = (
        (GUIDES / f"{name}.md").read_text("utf-8").partition(f"{part}\n")[2].partition("\n## ")[0]
    )
    first_cells = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    assert {*re.findall(r"`([^`]+)`", " ".join(first_cells))} == {*values}


def test_every_operation_that_takes_a_key_is_listed_and_none_is_filled_in(service: Service) -> None:
    listed = (GUIDES / "idempotency.md").read_text("utf-8").partition("## Where")[2]
    taken = {
        f"{method.upper()} {path}": parameter
        for path, operations in service.client.get("/openapi.json").json["paths"].items()
        for method, operation in operations.items()
        if isinstance(operation, dict)
        for parameter in operation.get("parameters", [])
        if parameter.get("name") == "Idempotency-Key"
    }
    assert {*re.findall(r"^\| `(\w+ /[^`]+)` \|", listed, re.MULTILINE)} == taken.keys()
    assert len(taken) == 10
    for key in taken.values():  # With which a second try on the page would collide.
        assert not {"example", "examples", "default"} & {*key, *key["schema"]}


def test_every_operation_that_a_guide_names_exists(service: Service) -> None:
    paths = service.client.get("/openapi.json").json["paths"]
    known = {f"{method.upper()} {path}" for path, each in paths.items() for method in each}
    guides = "".join((GUIDES / f"{name}.md").read_text("utf-8") for name in GUIDE_NAMES)
    assert {*re.findall(r"`((?:GET|PUT|POST|PATCH|DELETE) /[\w/{}-]+)", guides)} <= known


@pytest.mark.parametrize("public", ["", "https://api.example/a"])
def test_what_the_document_names_is_where_it_was_read(
    make_service: MakeService, public: str
) -> None:
    service = make_service(PUBLIC_URL=public, PATH_PREFIX="/below")
    for root in ("", "/below"):
        document = service.client.get(f"{root}/openapi.json").json
        flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["clientCredentials"]
        assert document["servers"] == [{"url": f"{public}{root}" or "/"}]
        assert flow["tokenUrl"] == f"{public}{root}/auth/token"
        assert not [path for path in document["paths"].values() if "servers" in path]
        published = service.client.get(f"{root}/.well-known/oauth-authorization-server").json
        place = f"{public or service.container.settings.public}{root}"
        assert published["token_endpoint"] == f"{place}/auth/token"
        assert published["issuer"] == service.container.settings.iss
        url = document["externalDocs"]["url"]
        assert url == f"{place}/docs"
        assert service.client.get(urlsplit(url).path.removeprefix("/a")).mimetype == "text/html"
        info = document["info"]
        named = re.findall(r"\]\(([^)]+)\)", info["description"])
        assert len(named) > 5
        for url in named:
            assert url.startswith(f"{public}{root}/docs")
            assert service.client.get(url.removeprefix(public)).mimetype == "text/html", url


def test_without_a_mouse_copying_needs_no_hover_and_no_validator_is_asked() -> None:
    """Chromium without a window always has a mouse, so this reads the style."""
    style = (STATIC / "docs.css").read_text("utf-8")
    before, _, hovering = style.partition("@media (hover: hover)")
    assert "opacity: 0" not in before.partition(".copy {")[2]
    assert ".copy { opacity: 0; }" in hovering

    script = (STATIC / "try.js").read_text("utf-8")
    assert "validatorUrl: null" in script, "or one elsewhere is asked"
    assert "http" not in script


def test_assets_have_their_type_and_only_the_library_is_kept_unasked(service: Service) -> None:
    for name, kind in TYPES.items():
        reply = service.client.get(f"/docs/{name}")
        assert reply.mimetype == kind
        kept = "public, max-age=3600" if name.startswith("swagger-ui") else "no-cache"
        assert reply.headers["Cache-Control"] == kept, name
        tag = {"If-None-Match": reply.headers["ETag"]}
        assert service.client.get(f"/docs/{name}", headers=tag).status_code == 304, name


def test_nothing_else_is_served(service: Service) -> None:
    for name in ("docs.html", "index", "errors.md", "../openapi.py", "NOTICE", "%00"):
        assert service.client.get(unquote(f"/docs/{name}")).status_code == 404
    assert service.client.get(unquote("/docs/..%2fopenapi.py")).status_code == 404
