"""Who may call: the token, then the organization, then the scope."""

from datetime import timedelta
from typing import Any

import pytest

from app.security.key_file import key_path
from app.security.tokens import EXPIRED, MALFORMED, NOT_YET, WRONG_AUDIENCE, WRONG_ISSUER
from tests.app.http.service import Service, Tenant, code_of
from tests.app.security.hostile import honest_token

WALLET = "/v1/wallet"


def test_a_token_that_is_none_is_an_invalid_token(service: Service) -> None:
    for token in ("abc", "a.b.c", "a b", "é", "=", "a" * 100_000):
        reply = service.client.get(WALLET, headers={"Authorization": f"Bearer {token}"})
        assert (reply.status_code, code_of(reply)) == (401, "UNAUTHORIZED")
        told = f'Bearer realm="api", error="invalid_token", error_description="{MALFORMED}"'
        assert reply.headers["WWW-Authenticate"] == told
        assert reply.json["error"]["message"] == MALFORMED


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"aud": "https://other.example"}, WRONG_AUDIENCE),
        ({"iss": "https://other.example"}, WRONG_ISSUER),
        ({"later_s": -7_200}, EXPIRED),
        ({"later_s": 7_200}, NOT_YET),
    ],
)
def test_what_is_wrong_with_a_token_is_told(
    acme: Tenant, changed: dict[str, Any], told: str
) -> None:
    parts = acme.service.container
    key = parts.keys.newest()
    token = honest_token(
        key_path(parts.settings.signing_keys, key.kid).read_bytes(),
        key.kid,
        changed.get("iss", parts.settings.iss),
        changed.get("aud", parts.settings.token_audience),
        parts.clock() + timedelta(seconds=changed.get("later_s", 0)),
        client_id=acme.client_id,
        organization=str(acme.id),
    )
    reply = acme.get(WALLET, headers={"Authorization": f"Bearer {token}"})
    assert (reply.status_code, reply.json["error"]["message"]) == (401, told)
    challenge = f'Bearer realm="api", error="invalid_token", error_description="{told}"'
    assert reply.headers["WWW-Authenticate"] == challenge


def test_the_scheme_is_read_as_http_has_it_and_a_token_in_the_query_is_none(acme: Tenant) -> None:
    token = acme.headers["Authorization"].removeprefix("Bearer ")
    for scheme in ("bearer", "BEARER", "Bearer  "):
        headers = {"Authorization": f"{scheme} {token}"}
        assert acme.get(WALLET, headers=headers).status_code == 200
    reply = acme.service.client.get(WALLET, query_string={"access_token": token})
    assert reply.status_code == 401
