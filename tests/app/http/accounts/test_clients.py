"""Keys of one's own: clients that renew and end those of their organization."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from werkzeug.test import TestResponse

from domain.accounts.commands import Accounts
from domain.accounts.organization import ROTATIONS_MAX, ApiClient, Organization, SecretRotation
from domain.cause import Cause
from projections.engine.shape import format_time
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service, Tenant, code_of, fields_of
from tests.installation import SetClock

pytestmark = pytest.mark.each_database

CLIENTS = "/v1/account/clients"


def rotate(tenant: Tenant, client_id: str, key: str = "", **body: Any) -> TestResponse:
    return tenant.post(f"{CLIENTS}/{client_id}/rotate-secret", json=body, key=key)


def delete(tenant: Tenant, client_id: str) -> TestResponse:
    return tenant.open("DELETE", f"{CLIENTS}/{client_id}")


def listed(tenant: Tenant) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in tenant.get(CLIENTS).json["data"]}


def is_good(service: Service, client_id: str, secret: str) -> bool:
    return service.ask_for_token(client_id, secret).status_code == 200


def peer(tenant: Tenant, *scopes: str) -> Tenant:
    """Return the same organization as another client calls for it."""
    return Tenant(tenant.service, tenant.id, tenant.another(*(scopes or ("clients", "wallet"))))


def together(monkeypatch: pytest.MonkeyPatch, kind: type[Any], name: str, many: int = 2) -> None:
    """Let the first `many` calls of a method go on when all of them have come."""
    barrier, come, usual = Barrier(many, timeout=20), list[int](), getattr(kind, name)

    def wait(*args: Any, **more: Any) -> Any:
        come.append(1)
        if len(come) <= many:
            barrier.wait()
        return usual(*args, **more)

    monkeypatch.setattr(kind, name, wait)


def test_a_client_renews_its_secret_and_the_one_before_ends_when_it_said(
    make_service: MakeService, clock: SetClock
) -> None:
    service = make_service(clock=clock)
    tenant, parts = service.tenant(), service.container
    me, old = tenant.client_id, f"s-{tenant.client_id}"
    parts.projector.catch_up()
    assert listed(tenant)[me]["rotated_at"] is listed(tenant)[me]["old_secret_ends"] is None
    new = rotate(tenant, me, old_ends_in=7_200).json["data"]
    ends = format_time(clock() + timedelta(hours=2))
    assert (new["id"], new["old_secret_ends"]) == (me, ends)
    assert tenant.get("/v1/account").json["data"]["client"] == {
        name: value for name, value in new.items() if name != "client_secret"
    }
    parts.projector.catch_up()
    assert listed(tenant)[me] == tenant.get("/v1/account").json["data"]["client"]
    assert is_good(service, me, old)
    clock.forward(hours=2)
    assert not is_good(service, me, old)
    assert is_good(service, me, new["client_secret"])
    tenant.headers = peer(tenant).headers
    parts.projector.catch_up()
    assert listed(tenant)[me]["old_secret_ends"] is None
    last = rotate(tenant, me).json["data"]
    assert last["old_secret_ends"] == format_time(clock() + timedelta(days=1))
    ended = rotate(tenant, me, old_ends_in=0).json["data"]
    assert ended["old_secret_ends"] is None
    assert not is_good(service, me, last["client_secret"])
    assert is_good(service, me, ended["client_secret"])


def test_two_requests_with_a_key_at_once_renew_it_once(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tenant.another("lookup")
    together(monkeypatch, ApiClient, "rotate_secret")
    with ThreadPoolExecutor(2) as pool:
        replies = [*pool.map(lambda _: rotate(tenant, other, "k-1"), range(2))]
    assert [each.status_code for each in replies] == [200, 200]
    shown = [secret for each in replies if (secret := each.json["data"].get("client_secret"))]
    assert len(shown) == 1
    assert is_good(tenant.service, other, shown[0])
    history = tenant.service.container.log.history(ApiClient.id_of(other))
    assert len([each for each in history if isinstance(each, ApiClient.SecretRotated)]) == 1


def test_the_last_renewal_of_a_day_is_repeated_though_a_twin_was_first(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.accounts.commands.ROTATIONS_MAX", 1)
    other, twins, find = tenant.another("lookup"), ["k-1"], tenant.service.container.log.find

    def overtaken(kind: Any, *asked: Any, **more: Any) -> Any:
        found = find(kind, *asked, **more)
        while kind is SecretRotation and twins:
            assert "client_secret" in rotate(tenant, other, twins.pop()).json["data"]
        return found

    monkeypatch.setattr(tenant.service.container.log, "find", overtaken)
    assert "client_secret" not in rotate(tenant, other, "k-1").json["data"]


def test_a_lost_secret_is_renewed_again(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies behind its commit: the new secret is known to nobody."""
    me, usual = tenant.client_id, Accounts.rotate_own_secret

    def die(*args: Any) -> None:
        usual(*args)
        raise KeyError

    with monkeypatch.context() as patched:
        patched.setattr(Accounts, "rotate_own_secret", die)
        assert rotate(tenant, me, "k-1").status_code == 500
    again = rotate(tenant, me, "k-1")
    assert (again.status_code, "client_secret" in again.json["data"]) == (200, False)
    assert is_good(tenant.service, me, f"s-{me}")
    assert is_good(tenant.service, me, rotate(tenant, me, "k-2").json["data"]["client_secret"])


def test_a_deleted_client_is_refused_as_one_that_an_operator_has_revoked(tenant: Tenant) -> None:
    service, accounts = tenant.service, tenant.service.container.accounts
    mine, theirs = peer(tenant), peer(tenant)
    assert rotate(tenant, mine.client_id, "k-1").status_code == 200
    for each in (mine, theirs):
        assert each.get("/v1/wallet").status_code == 200
    assert delete(tenant, mine.client_id).json["data"]["id"] == mine.client_id
    accounts.revoke_client(theirs.client_id, Cause(service.cause().at, "cli", "os:alice"))
    service.until(lambda: theirs.get("/v1/wallet").status_code == 401)
    refused = [each.get("/v1/wallet") for each in (mine, theirs)]
    assert refused[0].status_code == 401
    assert refused[0].json["error"] == refused[1].json["error"]
    for each in (mine, theirs):
        assert not is_good(service, each.client_id, f"s-{each.client_id}")
        assert each.client_id not in listed(tenant)
        assert rotate(tenant, each.client_id).status_code == 404
        assert delete(tenant, each.client_id).status_code == 200
    again = rotate(tenant, mine.client_id, "k-1")
    assert (again.status_code, "client_secret" in again.json["data"]) == (200, False)
    history = service.container.log.history(ApiClient.id_of(mine.client_id))
    assert history[-1].actor == f"client:{tenant.client_id}"  # type: ignore[attr-defined]  # It is revoked.
    assert [type(each) for each in history[1:]] == [ApiClient.SecretRotated, ApiClient.Revoked]


@pytest.mark.parametrize("others", [0, 1])
def test_clients_that_delete_each_other_at_once_leave_one(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    callers = [tenant, *(peer(tenant) for _ in range(1 + others))]
    ring = [*zip(callers, [*callers[1:], callers[0]], strict=True)]
    together(monkeypatch, Organization, "remove_key_holder", len(ring))
    with ThreadPoolExecutor(len(ring)) as pool:
        replies = [*pool.map(lambda it: delete(it[0], it[1].client_id), ring)]
    assert sorted(each.status_code for each in replies) == [200] * (len(ring) - 1) + [409]
    (left,) = [b for (_, b), it in zip(ring, replies, strict=True) if it.status_code == 409]
    parts = tenant.service.container
    assert parts.log.get(Organization, tenant.id).key_holders == [left.client_id]
    found = [parts.log.get(ApiClient, ApiClient.id_of(each.client_id)) for each in callers]
    assert [each.client_id for each in found if not each.revoked] == [left.client_id]


def test_a_client_that_is_deleted_while_it_is_renewed_has_no_new_secret(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = peer(tenant)
    usual = ApiClient.rotate_secret

    def deleted_first(client: ApiClient, *args: Any) -> None:
        if not tenant.service.container.log.get(ApiClient, client.id).revoked:
            assert delete(tenant, other.client_id).status_code == 200
        usual(client, *args)

    monkeypatch.setattr(ApiClient, "rotate_secret", deleted_first)
    assert rotate(tenant, other.client_id).status_code == 404
    newest = tenant.service.container.log.get(ApiClient, ApiClient.id_of(other.client_id))
    assert newest.revoked
    assert newest.rotated_at is None


NO_TIMES: Sequence[Any] = (-1, 7_776_001, "3600", 1.5, True, None, [], {}, 1e300, 10**400)
NO_CLIENTS = ("cl_", "%00", "%ff", "cl_%E2%80%AE", "x" * 5_000, "..%2e", "1%0a", "null", "'--")


@pytest.mark.any_database
def test_what_cannot_be_meant_is_refused(tenant: Tenant) -> None:
    for wrong in NO_TIMES:
        told = fields_of(rotate(tenant, tenant.client_id, old_ends_in=wrong))
        assert [*told] == ["old_ends_in"], wrong
    assert [*fields_of(rotate(tenant, tenant.client_id, secret="mine"))] == ["secret"]
    for wrong in NO_CLIENTS:
        assert rotate(tenant, wrong).status_code == 404, wrong
        assert delete(tenant, wrong).status_code == 404, wrong
    assert "rotated_at" in listed(tenant)[tenant.client_id]
    assert listed(tenant)[tenant.client_id]["rotated_at"] is None


def test_secrets_are_renewed_so_often_a_day_by_partners(
    make_service: MakeService, clock: SetClock
) -> None:
    service = make_service(clock=clock)
    tenant = service.tenant()
    for _ in range(ROTATIONS_MAX):
        assert rotate(tenant, tenant.client_id).status_code == 200
    refused = rotate(tenant, tenant.client_id, "k-1")
    assert (refused.status_code, code_of(refused)) == (429, "RATE_LIMITED")
    assert int(refused.headers["Retry-After"]) > 0
    accounts, day = service.container.accounts, timedelta(days=1)
    accounts.rotate_secret(tenant.client_id, "a-hash", service.cause(), day)  # An operator may.
    assert rotate(tenant, tenant.client_id, "k-1").status_code == 429
    clock.forward(days=1)
    tenant = Tenant(service, tenant.id, peer(tenant).client_id)
    assert rotate(tenant, tenant.client_id, "k-1").status_code == 200


def test_no_secret_is_in_the_log_nor_in_what_is_told(make_service: MakeService) -> None:
    """That none is in a log line is proven of every test."""
    service = make_service()
    tenant, parts = service.tenant(), service.container
    other = tenant.another("lookup")
    secret = rotate(tenant, other, "k-1").json["data"]["client_secret"]
    delete(tenant, other)
    accounts, at = parts.accounts, service.cause().at
    accounts.rotate_secret(tenant.client_id, "hash", Cause(at, "x", "os:alice"), timedelta(0))
    machine = service.register_client(None)
    accounts.rotate_secret(machine, "hash", Cause(at, "x", "os:alice"), timedelta(0))
    assert not [each for each in parts.log.stored(0, 1_000) if secret.encode() in each.state]
    parts.projector.catch_up()
    told = tenant.get("/v1/events?types=client.secret_rotated,client.deleted").json["data"]
    bodies = [(it["type"], it["data"]) for it in (each["body"] for each in told["data"])]
    assert [(name, data["client_id"], data["by"]) for name, data in bodies] == [
        ("client.secret_rotated", other, "partner"),
        ("client.deleted", other, "partner"),
        ("client.secret_rotated", tenant.client_id, "operator"),
    ]
    assert {name for _, data in bodies for name in data} == {"client_id", "by", "position"}
