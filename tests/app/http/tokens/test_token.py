"""The token endpoint (RFC 6749 §4.4) in every way to ask it, right and wrong."""

from base64 import b64encode
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from werkzeug.test import TestResponse

from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant

TOKEN = "/auth/token"
GRANT = {"grant_type": "client_credentials"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def basic(client_id: str, secret: str) -> dict[str, str]:
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def refused(reply: TestResponse, status: int, error: str) -> None:
    assert (reply.status_code, reply.json["error"]) == (status, error), reply.text
    assert reply.json.keys() == {"error", "error_description"}
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["Pragma"] == "no-cache"
    assert ("WWW-Authenticate" in reply.headers) == (status == 401)


@pytest.fixture
def credentials(acme: Tenant) -> dict[str, str]:
    return {"client_id": acme.client_id, "client_secret": f"s-{acme.client_id}"}


def test_a_form_gets_a_token(service: Service, credentials: dict[str, str]) -> None:
    reply = service.client.post(TOKEN, data=GRANT | credentials)
    assert reply.status_code == 200
    assert reply.json.keys() == {"access_token", "expires_in", "token_type", "scope"}
    assert reply.json["expires_in"] == 3600
    assert reply.json["token_type"] == "Bearer"
    assert reply.json["scope"] == "lookup plans links wallet webhooks"
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["Pragma"] == "no-cache"
    assert reply.headers["X-Request-Id"]


@pytest.mark.any_database
def test_basic_credentials_get_a_token(service: Service, credentials: dict[str, str]) -> None:
    headers = basic(credentials["client_id"], credentials["client_secret"])
    assert service.client.post(TOKEN, data=GRANT, headers=headers).status_code == 200
    same_id = GRANT | {"client_id": credentials["client_id"]}
    assert service.client.post(TOKEN, data=same_id, headers=headers).status_code == 200


@pytest.mark.any_database
def test_the_halves_of_basic_credentials_are_form_encoded(service: Service) -> None:
    accounts = service.container.accounts
    client_id, secret = f"odd: +%é/{accounts.new_id().hex}", "p:a s+s%é"
    accounts.register_client(
        service.cause(),
        client_id=client_id,
        secret_hash=service.container.secret_hasher.hash(secret),
        organization_id=None,
        scopes=[],
    )
    headers = basic(client_id, secret)
    assert service.client.post(TOKEN, data=GRANT, headers=headers).status_code == 200


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("before", "after"), [("", "\n"), (" ", " "), ("\t", "\r\n"), ("", "\u00a0")]
)
def test_white_space_around_credentials_is_ignored(
    service: Service, credentials: dict[str, str], before: str, after: str
) -> None:
    padded = {name: f"{before}{value}{after}" for name, value in credentials.items()}
    assert service.client.post(TOKEN, data=GRANT | padded).status_code == 200
    headers = basic(padded["client_id"], padded["client_secret"])
    assert service.client.post(TOKEN, data=GRANT, headers=headers).status_code == 200


def test_a_client_counts_from_the_moment_it_is_made(make_service: MakeService) -> None:
    service = make_service()
    assert service.token(service.register_client(None))


def test_a_rotated_secret_counts_at_once_and_the_one_before_stays(service: Service) -> None:
    client_id = service.register_client(None)
    hasher = service.container.secret_hasher
    service.container.accounts.change_client(
        client_id, lambda client: client.rotate_secret(hasher.hash("newer"), service.cause())
    )
    form = GRANT | {"client_id": client_id}
    for secret in ("newer", f"s-{client_id}"):
        reply = service.client.post(TOKEN, data=form | {"client_secret": secret})
        assert reply.status_code == 200


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("requested", "granted"),
    [
        ("", "lookup wallet"),
        ("wallet", "wallet"),
        ("wallet lookup", "lookup wallet"),
        ("  lookup   lookup ", "lookup"),
    ],
)
def test_a_scope_narrows_what_the_client_has(
    service: Service, requested: str, granted: str
) -> None:
    tenant = service.tenant(scopes=["lookup", "wallet"])
    form = {"client_id": tenant.client_id, "client_secret": f"s-{tenant.client_id}"}
    reply = service.client.post(TOKEN, data=GRANT | form | {"scope": requested})
    assert reply.json["scope"] == granted


@pytest.mark.any_database
@pytest.mark.parametrize("requested", ["links", "lookup links", "admin", "LOOKUP", "lookup,wallet"])
def test_a_scope_that_is_not_granted_is_refused(service: Service, requested: str) -> None:
    tenant = service.tenant(scopes=["lookup", "wallet"])
    form = {"client_id": tenant.client_id, "client_secret": f"s-{tenant.client_id}"}
    reply = service.client.post(TOKEN, data=GRANT | form | {"scope": requested})
    refused(reply, 400, "invalid_scope")


@pytest.mark.any_database
def test_a_narrowed_token_opens_only_what_it_names(acme: Tenant) -> None:
    token = acme.service.token(acme.client_id, scope="lookup")
    reply = acme.get("/v1/wallet", headers={"Authorization": f"Bearer {token}"})
    assert reply.status_code == 403


@pytest.mark.any_database
def test_an_unknown_client_a_wrong_secret_and_a_revoked_client_look_alike(
    service: Service,
) -> None:
    known, revoked = service.register_client(None), service.register_client(None)
    service.container.accounts.change_client(revoked, lambda client: client.revoke(service.cause()))
    replies = [
        service.client.post(TOKEN, data=GRANT | {"client_id": client_id, "client_secret": secret})
        for client_id, secret in [
            ("nobody", "s"),
            (known, "wrong"),
            (known, "é" * 1000),
            (revoked, f"s-{revoked}"),
        ]
    ]
    for reply in replies:
        refused(reply, 401, "invalid_client")
    assert len({reply.data for reply in replies}) == 1


@pytest.mark.any_database
@pytest.mark.parametrize(
    "authorization",
    [
        "Basic",
        "Basic !",
        "Basic YQ",
        "Basic YWI=",
        "Basic /w==",
        "Basic OnM=",
        "Basic YTo=",
        "basic %",
    ],
)
def test_basic_credentials_that_cannot_be_read_are_an_invalid_client(
    service: Service, authorization: str
) -> None:
    reply = service.client.post(TOKEN, data=GRANT, headers={"Authorization": authorization})
    refused(reply, 401, "invalid_client")
    assert reply.headers["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.any_database
@pytest.mark.parametrize(
    "missing", [{"client_id"}, {"client_secret"}, {"client_id", "client_secret"}]
)
@pytest.mark.parametrize("empty", [True, False])
def test_without_credentials_the_client_is_invalid(
    service: Service, credentials: dict[str, str], missing: set[str], *, empty: bool
) -> None:
    kept = {name: value for name, value in credentials.items() if name not in missing}
    blank = dict.fromkeys(missing, "") if empty else {}
    refused(service.client.post(TOKEN, data=GRANT | kept | blank), 401, "invalid_client")


@pytest.mark.any_database
def test_credentials_in_the_query_do_not_count(
    service: Service, credentials: dict[str, str]
) -> None:
    reply = service.client.post(TOKEN, query_string=credentials, data=GRANT)
    refused(reply, 401, "invalid_client")


@pytest.mark.any_database
def test_two_ways_at_once_are_refused(service: Service, credentials: dict[str, str]) -> None:
    headers = basic(credentials["client_id"], credentials["client_secret"])
    both = service.client.post(TOKEN, data=GRANT | credentials, headers=headers)
    refused(both, 400, "invalid_request")
    other = service.client.post(TOKEN, data=GRANT | {"client_id": "other"}, headers=headers)
    refused(other, 400, "invalid_request")


@pytest.mark.any_database
@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "scope", "colour"])
def test_a_parameter_that_comes_twice_is_refused(
    service: Service, credentials: dict[str, str], name: str
) -> None:
    form = GRANT | credentials | {"scope": "lookup", "colour": "red"}
    twice = [(key, value) for key, value in form.items() for _ in range(2 if key == name else 1)]
    body = "&".join(f"{key}={quote_plus(value)}" for key, value in twice)
    refused(service.client.post(TOKEN, data=body, headers=FORM), 400, "invalid_request")


@pytest.mark.any_database
def test_an_unknown_parameter_is_ignored(service: Service, credentials: dict[str, str]) -> None:
    reply = service.client.post(TOKEN, data=GRANT | credentials | {"colour": "red"})
    assert reply.status_code == 200


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("grant", "error"),
    [
        ({}, "invalid_request"),
        ({"grant_type": ""}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "CLIENT_CREDENTIALS"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials "}, "unsupported_grant_type"),
    ],
)
def test_only_one_grant_is_known(
    service: Service, credentials: dict[str, str], grant: dict[str, str], error: str
) -> None:
    refused(service.client.post(TOKEN, data=grant | credentials), 400, error)


@pytest.mark.any_database
@pytest.mark.parametrize(
    "body", [b"grant_type=%ff", b"\xff=1", b"&".join(b"a%d=1" % n for n in range(40))]
)
def test_a_form_that_cannot_be_read_is_refused(service: Service, body: bytes) -> None:
    refused(service.client.post(TOKEN, data=body, headers=FORM), 400, "invalid_request")


@pytest.mark.any_database
def test_a_json_body_is_no_form(service: Service, credentials: dict[str, str]) -> None:
    refused(service.client.post(TOKEN, json=GRANT | credentials), 400, "invalid_request")


@pytest.mark.any_database
@pytest.mark.parametrize("media_type", ["text/plain", "multipart/form-data; boundary=x", ""])
def test_a_body_of_another_type_is_refused(service: Service, media_type: str) -> None:
    reply = service.client.post(TOKEN, data=b"a=1", headers={"Content-Type": media_type})
    refused(reply, 415, "invalid_request")


@pytest.mark.any_database
def test_a_large_form_is_refused(service: Service) -> None:
    reply = service.client.post(TOKEN, data=b"a=" + b"1" * 1024 * 1024, headers=FORM)
    refused(reply, 413, "invalid_request")


@pytest.mark.any_database
def test_another_method_is_refused(service: Service) -> None:
    reply = service.client.get(TOKEN)
    refused(reply, 405, "invalid_request")
    assert reply.headers["Allow"] == "POST"


def test_while_the_database_is_away_it_is_a_server_error(
    service: Service, credentials: dict[str, str], tmp_path: Path
) -> None:
    away = service.without_its_database(tmp_path)
    reply = away.client.post(TOKEN, data=GRANT | credentials)
    refused(reply, 503, "server_error")
    assert reply.headers["Retry-After"] == "5"
