"""The token endpoint (RFC 6749 §4.4): what it takes for credentials, and all that it refuses."""

from base64 import b64encode
from typing import Any
from urllib.parse import quote_plus
from uuid import uuid4

import pytest
from werkzeug.test import TestResponse

from tests.app.http.service import Service, Tenant

TOKEN = "/auth/token"
GRANT = {"grant_type": "client_credentials"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def basic(client_id: str, secret: str) -> dict[str, str]:
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def refused(reply: TestResponse, status: int, error: str, name: object = "") -> None:
    assert (reply.status_code, reply.json["error"]) == (status, error), (name, reply.text)
    assert reply.json.keys() == {"error", "error_description"}, name
    assert reply.headers["Cache-Control"] == "no-store", name
    assert reply.headers["Pragma"] == "no-cache", name
    assert ("WWW-Authenticate" in reply.headers) == (status == 401), name


@pytest.fixture
def credentials(acme: Tenant) -> dict[str, str]:
    return {"client_id": acme.client_id, "client_secret": f"s-{acme.client_id}"}


def test_the_halves_of_basic_credentials_are_form_encoded(service: Service) -> None:
    client_id, secret = f"odd: +%é/{uuid4().hex}", "p:a s+s%é"
    service.container.client(None, client_id, secret)
    headers = basic(client_id, secret)
    for form in (GRANT, GRANT | {"client_id": client_id}):
        assert service.client.post(TOKEN, data=form, headers=headers).status_code == 200


UNREADABLE = ["", " !", " YQ", " YWI=", " /w==", " OnM=", " YTo=", " %"]


def test_without_whole_credentials_in_one_place_the_client_is_invalid(
    service: Service, credentials: dict[str, str]
) -> None:
    sent: list[dict[str, Any]] = [
        *({"data": GRANT, "headers": {"Authorization": f"Basic{it}"}} for it in UNREADABLE),
        *({"data": GRANT | credentials | {name: ""}} for name in credentials),
        *({"data": GRANT | {name: value}} for name, value in credentials.items()),
        {"data": GRANT, "query_string": credentials},
    ]
    for each in sent:
        refused(service.client.post(TOKEN, **each), 401, "invalid_client", each)
    no_colon = service.client.post(TOKEN, data=GRANT, headers={"Authorization": "Basic YWI="})
    assert no_colon.json["error_description"] == "The Basic credentials cannot be read."


def test_a_request_that_is_ambiguous_or_cannot_be_read_is_invalid(
    service: Service, credentials: dict[str, str]
) -> None:
    form = GRANT | credentials | {"scope": "lookup", "colour": "red"}
    assert service.client.post(TOKEN, data=form).status_code == 200, "as it is"
    headers = basic(credentials["client_id"], credentials["client_secret"])
    twice = [
        "&".join(f"{key}={quote_plus(value)}" for key, value in [*form.items(), (name, form[name])])
        for name in form
    ]
    unread = [b"grant_type=%ff", b"\xff=1", b"&".join(b"a%d=1" % n for n in range(40))]
    sent: list[dict[str, Any]] = [
        {"data": GRANT | credentials, "headers": headers},
        {"data": GRANT | {"client_id": "other"}, "headers": headers},
        *({"data": body, "headers": FORM} for body in (*twice, *unread)),
        *({"data": credentials | grant} for grant in ({}, {"grant_type": ""})),
    ]
    for each in sent:
        refused(service.client.post(TOKEN, **each), 400, "invalid_request", each)
    for grant in ("CLIENT_CREDENTIALS", "client_credentials "):
        reply = service.client.post(TOKEN, data=credentials | {"grant_type": grant})
        refused(reply, 400, "unsupported_grant_type", grant)
    large = service.client.post(TOKEN, data=b"a=" + b"1" * 1024 * 1024, headers=FORM)
    refused(large, 413, "invalid_request")


def test_a_scope_that_is_not_granted_is_named(
    service: Service, credentials: dict[str, str]
) -> None:
    for scope, named in (
        ("lookup,plans", "lookup,plans"),
        ('x"\u00e9\\', "x???"),
        ("y" * 99, "y" * 64),
    ):
        reply = service.client.post(TOKEN, data=GRANT | credentials | {"scope": scope})
        refused(reply, 400, "invalid_scope", scope)
        words = reply.json["error_description"]
        assert words.startswith(f"The scope {named} is not granted"), words
        assert words.endswith("with spaces between: lookup plans links wallet webhooks clients."), (
            words
        )
