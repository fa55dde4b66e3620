"""The order of the checks, which all operations share, proven for each.

The operations are those that the application knows, so a new one is tested as soon as it is there.
The order is that of a thread, and of the loop of the server, which answers what it can by itself.
What each of them replies stands in the recordings of `tests/net`.
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

import pytest

from app.http.edge.callers import authenticate
from domain.links.link import Link
from tests.app.http.buying import FREE, LINKS, MISSING, buyer
from tests.app.http.edge.test_isolation import Case, Sent, ask, case_of, operations
from tests.app.http.over_http import OverHttp, serving
from tests.app.http.service import Service, Tenant, code_of, fields_of

pytestmark = pytest.mark.slow

JSON = {"Content-Type": "application/json"}
UNREADABLE: Mapping[str, Sent] = {
    "BAD_REQUEST": {"data": b"{", "headers": JSON},
    "PAYLOAD_TOO_LARGE": {"data": b" " * 2_000_000, "headers": JSON},
    "UNSUPPORTED_MEDIA_TYPE": {"data": b"x", "headers": {"Content-Type": "text/plain"}},
}
BAD_KEY = {"Idempotency-Key": "two words"}
WRONG: tuple[Sent, ...] = (
    UNREADABLE["BAD_REQUEST"],
    {"data": b"x", "headers": {"Content-Type": "text/plain", **BAD_KEY}},
    {"json": {"more": 1}, "headers": BAD_KEY},
)


@pytest.fixture(scope="module")
def cases(service: Service, acme: Tenant) -> list[Case]:
    """Each operation that needs a token, with a request of its own."""
    found = [case_of(each, acme) for each in operations(service) if each.group.scope is not None]
    assert len(found) > 30
    return found


@pytest.fixture(params=["thread", "loop"])
def by_both(
    request: pytest.FixtureRequest, service: Service, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Let the application be asked as it is, or through its server."""
    if request.param == "thread":
        yield
        return
    with serving(service.container, many=True) as port:
        client = OverHttp(service.app, service.app.response_class)
        client.port = port
        monkeypatch.setattr(service, "client", client)
        yield


@pytest.mark.usefixtures("by_both")
def test_whose_token_it_is_comes_before_all_else(service: Service, cases: list[Case]) -> None:
    suspended, inactive = service.tenant(scopes=["wallet"]), service.tenant()
    for tenant, status in ((suspended, "suspended"), (inactive, "inactive")):
        tenant.set_status(status)
        service.until(lambda tenant=tenant: tenant.get("/v1/wallet").status_code == 403)  # type: ignore[misc]  # It is bound at once.
    for case in cases:
        path = case.path(**dict.fromkeys(case.ids, "none"))
        for wrong in WRONG:
            nobody = service.client.open(path, method=case.method, **wrong)
            assert (nobody.status_code, code_of(nobody)) == (401, "UNAUTHORIZED"), case
            assert nobody.headers["WWW-Authenticate"].startswith("Bearer "), case
        if case.operation.who is authenticate:
            for tenant, code in ((suspended, "SUSPENDED"), (inactive, "INACTIVE")):
                refused = tenant.open(case.method, path, **WRONG[0])
                assert refused.status_code == 403, case
                assert code_of(refused) == f"ORGANIZATION_{code}", case


@pytest.mark.usefixtures("by_both")
def test_the_scope_comes_before_path_and_input(service: Service, cases: list[Case]) -> None:
    callers = {scope: service.tenant(scopes=[scope]) for scope in ("plans", "wallet")}
    machine = service.register_client(None, ["wallet"])
    payments = {"Authorization": f"Bearer {service.token(machine)}"}
    for case in cases:
        scope = case.operation.group.scope
        other = callers["plans" if scope != "plans" else "wallet"]
        path = case.path(**dict.fromkeys(case.ids, "none"))
        for wrong in WRONG:
            own = payments if case.operation.who is not authenticate else {}
            sent = {**wrong, "headers": {**wrong.get("headers", {}), **own}}
            reply = other.open(case.method, path, **sent)
            assert (reply.status_code, code_of(reply)) == (403, "INSUFFICIENT_SCOPE"), case
            assert f'scope="{scope}"' in reply.headers["WWW-Authenticate"], case


@pytest.mark.usefixtures("by_both")
def test_what_the_path_names_comes_before_the_input(acme: Tenant, cases: list[Case]) -> None:
    for case in cases:
        for name in case.ids if case.operation.resource is not None else ():
            for wrong in WRONG:
                for other in (MISSING, "none"):
                    path = f"{case.path(**{name: other})}?page=0&more=1"
                    reply = acme.open(case.method, path, **wrong)
                    assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND"), case


def test_what_costs_money_or_plays_refuses_unknown_parameters(
    acme: Tenant, cases: list[Case]
) -> None:
    played = [each for each in cases if "/v1/sandbox" in each.operation.line]
    strict = [each for each in cases if each.operation.buys]
    strict += [each for each in played if each.method != "GET"]
    assert len(strict) == 9
    for case in strict:
        reply = ask(acme, case, path=f"{case.path()}?dryRun=true", json={"more": 1})
        query = case.operation.query
        known = "none" if query is None else ", ".join(sorted(query().fields))
        said = f"Unknown parameter; this operation takes: {known}."
        assert fields_of(reply) == {"dryRun": [said]}, case
        assert "ignored" not in reply.json["meta"], "what is refused is not ignored"


def test_the_key_comes_behind_the_input(acme: Tenant, cases: list[Case]) -> None:
    keyed = [case for case in cases if case.operation.key]
    assert len(keyed) == 10
    for case in keyed:
        for key in ("two words", "é", "x" * 256):
            headers = {"Idempotency-Key": key}
            assert list(fields_of(ask(acme, case, headers=headers))) == ["Idempotency-Key"], case
            wrong = fields_of(ask(acme, case, json={"more": 1}, headers=headers))
            assert "Idempotency-Key" not in wrong, case


def test_a_limit_comes_behind_the_input(acme: Tenant, cases: list[Case]) -> None:
    acme.change(lambda own: own.set_rate_limit(1, acme.service.cause()))
    acme.service.until_projected("organizations")

    def exhausted() -> bool:  # A minute may end at any time.
        return acme.get("/v1/account").status_code == 429

    try:
        for case in cases:
            if case.operation.who is not authenticate:
                continue
            acme.service.until(exhausted)
            if case.operation.body is not None:
                assert ask(acme, case, json={"more": 1}).status_code == 422, case
            if case.operation.key:
                assert ask(acme, case, headers=BAD_KEY).status_code == 422, case
            if case.operation.resource is not None:
                path = case.path(**dict.fromkeys(case.ids, "none"))
                assert ask(acme, case, path=path).status_code == 404, case
    finally:
        acme.change(lambda own: own.set_rate_limit(None, acme.service.cause()))
        acme.service.until(lambda: acme.get("/v1/account").status_code == 200)


def test_what_is_named_is_bounded(acme: Tenant) -> None:
    query = "&".join(f"{number}{'x' * 100}" for number in range(500))
    for path in ("/v1/wallet", "/v1/transactions/none"):
        reply = acme.get(f"{path}?{query}")
        names = reply.json["meta"]["ignored"]
        assert [len(each) for each in names] == [64] * 10
    assert "ignored" not in acme.get("/v1/wallet?").json["meta"]
    assert "ignored" not in acme.get("/v1/transactions?page=1").json["meta"]
    named = acme.get("/v1/wallet", query_string={"page_no\x00": "2"}).json["meta"]["ignored"]
    assert named == ["page_no\ufffd"]
    refused = acme.post("/v1/links?dryRun=true", json={})
    assert (refused.status_code, "ignored" in refused.json["meta"]) == (422, False)


@pytest.mark.parametrize("code", UNREADABLE)
def test_a_read_refuses_a_body_before_it_asks_the_network(service: Service, code: str) -> None:
    shop, log = buyer(service), service.container.log
    link = shop.link(FREE)
    known = log.get(Link, UUID(link["id"]))
    network = service.container.bare_network
    network.play(known.endpoint_id, lambda it, now: it.stopped("inactive", now))
    for more in ("", "/network-status?live=true", "/history", "/topup-plans"):
        assert code_of(shop.get(f"{LINKS}/{link['id']}{more}", **UNREADABLE[code])) == code, more
        assert shop.get(f"{LINKS}/none{more}", **UNREADABLE[code]).status_code == 404, more
    assert service.container.readings.load([known.id])[known.id].status is None
    assert log.get(Link, known.id).version == known.version
