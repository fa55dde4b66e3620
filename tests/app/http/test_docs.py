"""The page for people loads only what this repository ships."""

import re

import pytest

from app.http.docs import STATIC, TYPES
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service

# What a page can load from; a link that a person follows, or a name in a text, loads nothing.
LOADS = re.compile(
    r"""(?:src|href|action|data-url)\s*=\s*["']([^"']*)"""
    r"""|url\(\s*["']?([^"')]*)"""
    r"""|@import\s+["']([^"']*)"""
)


def test_the_page_is_html_under_a_strict_policy(service: Service) -> None:
    reply = service.client.get("/docs")
    assert (reply.status_code, reply.mimetype) == (200, "text/html")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


def test_everything_that_the_page_names_is_served(service: Service) -> None:
    page = service.client.get("/docs").text
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert {f"docs/{name}" for name in TYPES} <= set(named)
    for name in named:
        if not name.startswith("data:"):
            assert service.client.get(f"/{name}").status_code == 200, name


@pytest.mark.parametrize("name", ["docs.html", "docs.js", "swagger-ui.css"])
def test_no_asset_is_loaded_from_another_host(name: str) -> None:
    text = (STATIC / name).read_text("utf-8")
    loaded = [next(filter(None, found), "") for found in LOADS.findall(text)]
    assert not [each for each in loaded if re.match(r"(?:https?:)?//", each)]


def test_the_page_fills_in_no_key_that_a_second_try_would_collide_with(service: Service) -> None:
    paths = service.client.get("/openapi.json").json["paths"]
    keys = [
        parameter
        for operations in paths.values()
        for operation in operations.values()
        if isinstance(operation, dict)
        for parameter in operation.get("parameters", [])
        if parameter["name"] == "Idempotency-Key"
    ]
    assert len(keys) == 4
    for key in keys:
        assert not {"example", "examples", "default"} & {*key, *key["schema"]}


def test_the_page_works_under_every_name_of_the_host(make_service: MakeService) -> None:
    service = make_service(PUBLIC_URL="", PATH_PREFIX="/below")
    for root, server in (("", "/"), ("/below", "/below")):
        document = service.client.get(f"{root}/openapi.json").json
        flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["clientCredentials"]
        assert document["servers"] == [{"url": server}]
        assert flow["tokenUrl"] == f"{root}/auth/token"
        assert not [path for path in document["paths"].values() if "servers" in path]


def test_no_validator_elsewhere_is_asked() -> None:
    script = (STATIC / "docs.js").read_text("utf-8")
    assert "validatorUrl: null" in script
    assert "http" not in script.replace("https://", "")


@pytest.mark.parametrize("name", TYPES)
def test_assets_have_their_type_and_may_be_kept(service: Service, name: str) -> None:
    reply = service.client.get(f"/docs/{name}")
    assert reply.mimetype == TYPES[name]
    assert reply.headers["Cache-Control"] == "public, max-age=3600"
    tag = reply.headers["ETag"]
    again = service.client.get(f"/docs/{name}", headers={"If-None-Match": tag})
    assert again.status_code == 304


@pytest.mark.parametrize("name", ["docs.html", "../openapi.py", "..%2fopenapi.py", "NOTICE", "%00"])
def test_nothing_else_is_served(service: Service, name: str) -> None:
    assert service.client.get(f"/docs/{name}").status_code == 404


def test_the_licence_and_version_of_what_we_ship_are_noted() -> None:
    note = (STATIC / "README.md").read_text("utf-8")
    assert re.search(r"swagger-ui-dist \d+\.\d+\.\d+", note)
    assert "Apache" in (STATIC / "swagger-ui.LICENSE").read_text("utf-8")
    assert "SmartBear" in (STATIC / "swagger-ui.NOTICE").read_text("utf-8")
