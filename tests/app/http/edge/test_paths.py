"""Paths of other installations, and paths that lead nowhere."""

import pytest

from app.settings import Settings, WrongSetting
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of

PREFIX = "/bappy"


@pytest.fixture(scope="module")
def elsewhere(share_service: MakeService) -> Service:
    """A service that also answers at another installation's paths."""
    return share_service(PATH_PREFIX=PREFIX, TOKEN_PATHS="/oauth/v2/token, /bappy/login")


@pytest.fixture(scope="module")
def shop(elsewhere: Service) -> Tenant:
    return elsewhere.tenant()


ENCODED = """
    PUT /v1/links/{id}%2Fplans|POST /v1/links/{id}%2Fsuspend|POST /v1/links/{id}%2freactivate
    |GET /v1/links/{id}%2Fhistory|GET /v1/links/{id}%5Chistory|GET /v1/links/{id}%5chistory
    |GET /v1%2Flinks|GET /bappy/v1/links/{id}%2Fhistory|GET /bappy%2Fv1/links|POST /auth%2Ftoken
    |GET //v1/links/{id}%2Fhistory|GET /v1/links/{id}%252Fhistory|POST /number-lookup%2Fbulk
    |GET /bappy|GET /bappyx/v1/wallet|GET /bappy/bappy/v1/wallet
"""
TWO_SLASHES = "GET //v1/wallet|GET ///v1/wallet|GET /bappy//v1/wallet|GET //bappy/v1/wallet"
TWO_SLASHES += "|GET /v1//wallet|POST //auth/token|POST /bappy//auth/token"


def test_what_only_looks_like_a_path_reaches_no_operation_and_is_not_charged(shop: Tenant) -> None:
    before = shop.balance()
    for line in ENCODED.split("|"):
        method, path = line.split()
        reply = shop.open(method, path.format(id="6f1de2c4-1e5b-4f0e-9d1a-0b1c2d3e4f50"))
        assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND"), line
    for line in TWO_SLASHES.split("|"):
        method, path = line.split()
        # The test client would take what follows two slashes for a host.
        sent = {"PATH_INFO": path, "REQUEST_URI": path}
        reply = shop.open(method, "/", environ_overrides=sent)
        assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND"), line
    assert shop.balance() == before


def test_what_a_reply_names_is_reached_as_the_request_was(shop: Tenant) -> None:
    def created(root: str) -> str:
        reply = shop.post(f"{root}/number-lookup/bulk", json={"phone_numbers": ["+447400123456"]})
        location = reply.headers["Location"].removeprefix("https://api.example")
        assert shop.get(location).status_code == 200
        return location

    assert created("").startswith("/number-lookup/bulk/")
    assert created(PREFIX).startswith("/bappy/number-lookup/bulk/")


def test_a_url_that_holds_the_prefix_already_is_left(make_service: MakeService) -> None:
    service = make_service(PATH_PREFIX=PREFIX, PUBLIC_URL="https://api.example/bappy")
    spec = service.client.get("/bappy/openapi.json").json
    assert spec["servers"] == [{"url": "https://api.example/bappy"}]


WRONG = """
    PATH_PREFIX=bappy|PATH_PREFIX=/a b|PATH_PREFIX=/a%2Fb|PATH_PREFIX=/a//b|PATH_PREFIX=/../a
    |PATH_PREFIX=/v1|PATH_PREFIX=/auth/x|TOKEN_PATHS=/token,login|TOKEN_PATHS=/v1/wallet
    |TOKEN_PATHS=https://api.example/token|REQUEST_READ_S=0
"""


def test_a_path_that_cannot_be_served_names_its_setting(shop: Tenant) -> None:
    ours = {each.rule.split("/")[1] for each in shop.service.app.url_map.iter_rules()}
    own = {f"PATH_PREFIX=/{each}" for each in ours - {"", "oauth", "bappy"}}
    for setting in (*WRONG.split("|"), *own):
        name, _, value = setting.strip().partition("=")
        with pytest.raises(WrongSetting, match=name):
            Settings.from_env({name: value})
    assert Settings.from_env({"PATH_PREFIX": "/a/b/"}).path_prefix == "/a/b"
    assert Settings.from_env({"PATH_PREFIX": "/"}).path_prefix == ""


def test_an_issuer_below_a_path_is_found_where_the_standard_puts_it(
    make_service: MakeService,
) -> None:
    service = make_service(AUTH_URL="https://id.example/tenant/a")
    metadata = "/.well-known/oauth-authorization-server"
    reply = service.client.get(f"{metadata}/tenant/a")
    assert reply.json["issuer"] == "https://id.example/tenant/a"
    assert reply.json["token_endpoint"] == "https://id.example/tenant/a/auth/token"
    assert service.client.get(f"{metadata}/tenant/b").status_code == 404
