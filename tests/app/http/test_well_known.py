"""What client libraries and other services ask for before they trust a token."""

import jwt
import pytest

from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant

pytestmark = pytest.mark.any_database

METADATA = "/.well-known/oauth-authorization-server"


def test_the_published_keys_verify_our_tokens(acme: Tenant) -> None:
    reply = acme.service.client.get("/.well-known/jwks.json")
    assert reply.status_code == 200
    token = acme.headers["Authorization"].removeprefix("Bearer ")
    (key,) = [jwt.PyJWK(each) for each in reply.json["keys"]]
    claims = jwt.decode(
        token, key, algorithms=["ES256"], audience="carrier-links", issuer="https://api.example"
    )
    assert claims["organization"] == str(acme.id)
    assert jwt.get_unverified_header(token) == {
        "alg": "ES256",
        "kid": reply.json["keys"][0]["kid"],
        "typ": "at+jwt",
    }


def test_no_private_part_of_a_key_is_published(service: Service) -> None:
    for key in service.client.get("/.well-known/jwks.json").json["keys"]:
        assert not key.keys() & {"d", "p", "q", "dp", "dq", "qi", "k"}


def test_the_metadata_says_where_to_get_a_token(service: Service) -> None:
    reply = service.client.get(METADATA)
    assert reply.json == {
        "issuer": "https://api.example",
        "token_endpoint": "https://api.example/auth/token",
        "jwks_uri": "https://api.example/.well-known/jwks.json",
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": [],
        "scopes_supported": ["lookup", "plans", "links", "wallet", "webhooks", "deposits"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "service_documentation": "https://api.example/docs",
    }


@pytest.mark.parametrize("path", [METADATA, "/.well-known/jwks.json"])
def test_both_may_be_kept_for_a_while(service: Service, path: str) -> None:
    assert service.client.get(path).headers["Cache-Control"] == "public, max-age=300"


def test_an_issuer_below_a_path_is_found_where_the_standard_puts_it(
    make_service: MakeService,
) -> None:
    service = make_service(AUTH_URL="https://id.example/tenant/a")
    reply = service.client.get(f"{METADATA}/tenant/a")
    assert reply.json["issuer"] == "https://id.example/tenant/a"
    assert reply.json["token_endpoint"] == "https://id.example/tenant/a/auth/token"
    assert service.client.get(f"{METADATA}/tenant/b").status_code == 404
