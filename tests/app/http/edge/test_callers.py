"""Who may call: the token, then the organization, then the scope."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from app.http.edge.callers import MISSING
from app.security.authorization import HEADER_TWICE, NO_CLIENT, NO_HEADER, NOT_A_UUID, REVOKED
from app.security.key_file import key_path
from app.security.tokens import (
    EXPIRED,
    MALFORMED,
    NOT_YET,
    UNKNOWN_KEY,
    WRONG_AUDIENCE,
    WRONG_ISSUER,
    WRONG_SIGNATURE,
)
from domain.accounts.organization import Status
from domain.errors import OrganizationNotFound
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of
from tests.app.security.hostile import NOT_IN_A_HEADER, honest_token, hostile_tokens

pytestmark = pytest.mark.any_database

WALLET = "/v1/wallet"
GONE = "00000000-0000-4000-8000-000000000000"


def forgeries(tenant: Tenant) -> dict[str, str]:
    parts = tenant.service.container
    key = parts.keys.signing_key()
    return hostile_tokens(
        key_path(parts.settings.signing_keys, key.kid).read_bytes(),
        key.kid,
        parts.settings.iss,
        parts.settings.token_audience,
        parts.clock(),
        client_id=tenant.client_id,
        organization=str(tenant.id),
    )


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Token abc", "Digest a", "abc"]
)
def test_without_a_token_the_challenge_names_no_error(
    service: Service, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    reply = service.client.get(WALLET, headers=headers)
    assert (reply.status_code, code_of(reply)) == (401, "UNAUTHORIZED")
    told = f'Bearer realm="api", error_description="{MISSING}"'
    assert reply.headers["WWW-Authenticate"] == told
    assert reply.json["error"]["message"] == MISSING


@pytest.mark.parametrize("token", ["abc", "a.b.c", "a b", "é", "=", "a" * 100_000])
def test_a_token_that_is_none_is_an_invalid_token(service: Service, token: str) -> None:
    reply = service.client.get(WALLET, headers={"Authorization": f"Bearer {token}"})
    assert (reply.status_code, code_of(reply)) == (401, "UNAUTHORIZED")
    told = f'Bearer realm="api", error="invalid_token", error_description="{MALFORMED}"'
    assert reply.headers["WWW-Authenticate"] == told
    assert reply.json["error"]["message"] == MALFORMED


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"kid": "unknown"}, UNKNOWN_KEY),
        ({"signature": True}, WRONG_SIGNATURE),
        ({"aud": "https://other.example"}, WRONG_AUDIENCE),
        ({"iss": "https://other.example"}, WRONG_ISSUER),
        ({"later_s": -7_200}, EXPIRED),
        ({"later_s": 7_200}, NOT_YET),
        ({"client_id": "cl_nobody"}, NO_CLIENT),
    ],
)
def test_what_is_wrong_with_a_token_is_told(
    acme: Tenant, changed: dict[str, Any], told: str
) -> None:
    parts = acme.service.container
    key = parts.keys.signing_key()
    token = honest_token(
        key_path(parts.settings.signing_keys, key.kid).read_bytes(),
        changed.get("kid", key.kid),
        changed.get("iss", parts.settings.iss),
        changed.get("aud", parts.settings.token_audience),
        parts.clock() + timedelta(seconds=changed.get("later_s", 0)),
        client_id=changed.get("client_id", acme.client_id),
        organization=str(acme.id),
    )
    if "signature" in changed:
        head, _, signature = token.rpartition(".")
        token = f"{head}.{signature[::-1][1:]}{'A' if signature[-1] != 'A' else 'Q'}"
    reply = acme.get(WALLET, headers={"Authorization": f"Bearer {token}"})
    assert (reply.status_code, reply.json["error"]["message"]) == (401, told)
    challenge = f'Bearer realm="api", error="invalid_token", error_description="{told}"'
    assert reply.headers["WWW-Authenticate"] == challenge


def test_every_forged_token_is_refused(acme: Tenant) -> None:
    sent = {n: token for n, token in forgeries(acme).items() if n not in NOT_IN_A_HEADER}
    assert len(sent) >= 40
    for name, token in sent.items():
        reply = acme.get(WALLET, headers={"Authorization": f"Bearer {token}"})
        assert (reply.status_code, code_of(reply)) == (401, "UNAUTHORIZED"), name
        assert reply.headers["WWW-Authenticate"].startswith("Bearer "), name
        assert not token or token[:40] not in reply.text, name


def test_what_the_forgeries_are_made_from_is_accepted(acme: Tenant) -> None:
    parts = acme.service.container
    key = parts.keys.signing_key()
    token = honest_token(
        key_path(parts.settings.signing_keys, key.kid).read_bytes(),
        key.kid,
        parts.settings.iss,
        parts.settings.token_audience,
        parts.clock(),
        client_id=acme.client_id,
        organization=str(acme.id),
    )
    assert acme.get(WALLET, headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
def test_the_scheme_is_read_as_http_has_it(acme: Tenant, scheme: str) -> None:
    token = acme.headers["Authorization"].removeprefix("Bearer ")
    assert acme.get(WALLET, headers={"Authorization": f"{scheme} {token}"}).status_code == 200


def test_a_token_in_the_query_is_none(acme: Tenant) -> None:
    token = acme.headers["Authorization"].removeprefix("Bearer ")
    reply = acme.service.client.get(WALLET, query_string={"access_token": token})
    assert reply.status_code == 401


def test_a_revoked_client_is_refused_within_a_second(service: Service) -> None:
    tenant = service.tenant()
    assert tenant.get(WALLET).status_code == 200
    service.container.accounts.change_client(
        tenant.client_id, lambda client: client.revoke(service.cause())
    )
    service.until(lambda: tenant.get(WALLET).status_code == 401)
    assert 'error="invalid_token"' in tenant.get(WALLET).headers["WWW-Authenticate"]
    assert tenant.get(WALLET).json["error"]["message"] == REVOKED


@pytest.mark.parametrize(
    ("status", "code"),
    [("suspended", "ORGANIZATION_SUSPENDED"), ("inactive", "ORGANIZATION_INACTIVE")],
)
def test_an_organization_that_is_not_active_is_refused(
    service: Service, status: Status, code: str
) -> None:
    tenant = service.tenant()
    tenant.set_status(status)
    service.until(lambda: tenant.get(WALLET).status_code == 403)
    for path in (WALLET, "/v1/transactions", f"/v1/transactions/{GONE}"):
        assert code_of(tenant.get(path)) == code
    assert code_of(tenant.look_up("+14155552671")) == code
    tenant.set_status("active")
    service.until(lambda: tenant.get(WALLET).status_code == 200)


def test_a_suspended_organization_still_gets_a_token(service: Service) -> None:
    tenant = service.tenant()
    tenant.set_status("suspended")
    assert service.token(tenant.client_id)


def test_a_claim_that_is_not_the_clients_own_is_refused(acme: Tenant, rival: Tenant) -> None:
    for claimed in (UUID(GONE), rival.id):
        token = acme.service.container.issuer.issue(acme.client_id, claimed, ["wallet"])
        reply = acme.get(WALLET, headers={"Authorization": f"Bearer {token}"})
        assert (reply.status_code, code_of(reply)) == (401, "UNAUTHORIZED")
        assert "another organization" in reply.json["error"]["message"]


@pytest.mark.parametrize(
    ("scopes", "path", "needed"),
    [
        (["lookup"], WALLET, "wallet"),
        (["plans", "links"], "/v1/transactions", "wallet"),
        (["wallet"], f"/number-lookup/bulk/{GONE}", "lookup"),
    ],
)
def test_a_missing_scope_is_named(
    service: Service, scopes: list[str], path: str, needed: str
) -> None:
    tenant = service.tenant(scopes=scopes)
    reply = tenant.get(path)
    assert (reply.status_code, code_of(reply)) == (403, "INSUFFICIENT_SCOPE")
    message = f"The access token lacks the scope {needed}."
    assert reply.json["error"]["message"] == message
    challenge = f'Bearer realm="api", error="insufficient_scope", scope="{needed}"'
    assert reply.headers["WWW-Authenticate"] == f'{challenge}, error_description="{message}"'


class TestMachineToMachine:
    """An approved client whose token names no organization."""

    @pytest.fixture
    def headers(self, service: Service) -> dict[str, str]:
        token = service.token(service.register_client(None))
        return {"Authorization": f"Bearer {token}"}

    def test_it_acts_for_the_organization_that_it_names(
        self, acme: Tenant, headers: dict[str, str]
    ) -> None:
        for spelling in (str(acme.id), str(acme.id).upper()):
            reply = acme.service.client.get(
                WALLET, headers={**headers, "X-Organization-Id": spelling}
            )
            assert reply.status_code == 200

    @pytest.mark.parametrize(
        ("named", "told"),
        [
            (None, NO_HEADER),
            ("", NO_HEADER),
            (" ", NO_HEADER),
            ("acme", NOT_A_UUID),
            (GONE, OrganizationNotFound.message),
            ("{acme}", NOT_A_UUID),
            ("acme,acme", HEADER_TWICE),
            ("0" * 32, NOT_A_UUID),
        ],
    )
    def test_without_one_organization_it_is_refused(
        self, acme: Tenant, headers: dict[str, str], named: str | None, told: str
    ) -> None:
        if named is not None:
            value = named.replace("acme", str(acme.id)) if named != "acme" else named
            headers = {**headers, "X-Organization-Id": value}
        reply = acme.service.client.get(WALLET, headers=headers)
        assert (reply.status_code, code_of(reply)) == (403, "ORGANIZATION_NOT_FOUND")
        assert reply.json["error"]["message"] == told

    def test_a_header_that_comes_twice_is_told(self, acme: Tenant, headers: dict[str, str]) -> None:
        twice = [*headers.items(), *[("X-Organization-Id", str(acme.id))] * 2]
        reply = acme.service.client.get(WALLET, headers=twice)
        assert (reply.status_code, reply.json["error"]["message"]) == (403, HEADER_TWICE)

    def test_a_suspended_organization_refuses_it_too(
        self, service: Service, headers: dict[str, str]
    ) -> None:
        tenant = service.tenant()
        tenant.set_status("suspended")
        headers = {**headers, "X-Organization-Id": str(tenant.id)}

        def code() -> str:
            return code_of(service.client.get(WALLET, headers=headers))

        service.until(lambda: service.client.get(WALLET, headers=headers).status_code == 403)
        assert code() == "ORGANIZATION_SUSPENDED"


def test_a_token_with_the_claim_ignores_the_header(acme: Tenant, rival: Tenant) -> None:
    acme.look_up("+14155552671")
    reply = acme.get("/v1/transactions", headers={"X-Organization-Id": str(rival.id)})
    assert reply.json["data"]["meta"]["total"] == len(acme.transactions())
    assert len(acme.transactions()) != len(rival.transactions())


def test_what_the_projector_has_not_seen_yet_is_known(make_service: MakeService) -> None:
    tenant = make_service().tenant()
    assert tenant.look_up("+14155552671").status_code == 200
    tenant.set_status("suspended")
    assert code_of(tenant.look_up("+14155552671")) == "ORGANIZATION_SUSPENDED"


def test_keys_rotate_without_refusing_a_token(make_service: MakeService) -> None:
    service = make_service()
    tenant = service.tenant()
    service.container.keys.rotate()
    assert tenant.look_up("+14155552671").status_code == 200
    assert service.token(tenant.client_id)
