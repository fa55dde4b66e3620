"""What all operations share, proven for each: the order of the checks, their refusals, the keys.

The operations are those that the application knows, so a new one is tested as soon as it is there.
The order is that of a thread, and of the loop of the server, which answers what it can by itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.http.edge.callers import authenticate
from domain.links.link import Link
from tests.app.http.buying import BASIC, FREE, LINKS, buyer
from tests.app.http.edge.test_isolation import (
    IN_PATH,
    MISSING,
    Case,
    Sent,
    ask,
    case_of,
    operations,
    payments_of,
    shop_of,
    webhook_of,
)
from tests.app.http.over_http import OverHttp, serving
from tests.app.http.service import Service, Tenant, code_of, fields_of

pytestmark = [pytest.mark.any_database, pytest.mark.slow]

JSON = {"Content-Type": "application/json"}
UNREADABLE: Mapping[str, Sent] = {
    "BAD_REQUEST": {"data": b"{", "headers": JSON},
    "PAYLOAD_TOO_LARGE": {"data": b" " * 2_000_000, "headers": JSON},
    "UNSUPPORTED_MEDIA_TYPE": {"data": b"x", "headers": {"Content-Type": "text/plain"}},
}
WRONG: tuple[Sent, ...] = (
    *UNREADABLE.values(),
    {"json": {"more": 1}},
    {"json": {}, "headers": {"Idempotency-Key": "two words"}},
)
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}


@pytest.fixture(scope="module")
def cases(service: Service, acme: Tenant) -> list[Case]:
    """Each operation that needs a token, with a request of its own."""
    found = [case_of(each, acme) for each in operations(service) if each.group.scope is not None]
    assert len(found) > 30
    return found


@pytest.fixture(params=["thread", "loop"])
def wrongs(
    request: pytest.FixtureRequest, service: Service, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sequence[Sent]]:
    """Let the application be asked as it is, or through its server; return what else is wrong."""
    if request.param == "thread":
        yield WRONG
        return
    with serving(service.container, many=True) as port:
        client = OverHttp(service.app, service.app.response_class)
        client.port = port
        monkeypatch.setattr(service, "client", client)
        yield [each for each in WRONG if each is not UNREADABLE["PAYLOAD_TOO_LARGE"]]  # At once.


by_both = pytest.mark.usefixtures("wrongs")


def test_whose_token_it_is_comes_before_all_else(
    service: Service, cases: list[Case], wrongs: Sequence[Sent]
) -> None:
    suspended, inactive = service.tenant(scopes=["wallet"]), service.tenant()
    for tenant, status in ((suspended, "suspended"), (inactive, "inactive")):
        tenant.set_status(status)
        service.until(lambda tenant=tenant: tenant.get("/v1/wallet").status_code == 403)  # type: ignore[misc]  # It is bound at once.
    for case in cases:
        path = case.path(**dict.fromkeys(case.ids, "none"))
        for wrong in wrongs:
            nobody = service.client.open(path, method=case.method, **wrong)
            assert (nobody.status_code, code_of(nobody)) == (401, "UNAUTHORIZED"), case
            assert nobody.headers["WWW-Authenticate"].startswith("Bearer "), case
            if case.operation.who is authenticate:
                for tenant, code in ((suspended, "SUSPENDED"), (inactive, "INACTIVE")):
                    refused = tenant.open(case.method, path, **wrong)
                    assert refused.status_code == 403, case
                    assert code_of(refused) == f"ORGANIZATION_{code}", case


def test_the_scope_comes_before_path_and_input(
    service: Service, cases: list[Case], wrongs: Sequence[Sent]
) -> None:
    callers = {scope: service.tenant(scopes=[scope]) for scope in ("plans", "wallet")}
    machine = service.register_client(None, ["wallet"])
    payments = {"Authorization": f"Bearer {service.token(machine)}"}
    for case in cases:
        scope = case.operation.group.scope
        other = callers["plans" if scope != "plans" else "wallet"]
        path = case.path(**dict.fromkeys(case.ids, "none"))
        for wrong in wrongs:
            own = payments if case.operation.who is not authenticate else {}
            sent = {**wrong, "headers": {**wrong.get("headers", {}), **own}}
            reply = other.open(case.method, path, **sent)
            assert (reply.status_code, code_of(reply)) == (403, "INSUFFICIENT_SCOPE"), case
            assert f'scope="{scope}"' in reply.headers["WWW-Authenticate"], case


def test_what_the_path_names_comes_before_the_input(
    acme: Tenant, cases: list[Case], wrongs: Sequence[Sent]
) -> None:
    for case in cases:
        for name in case.ids if case.operation.resource is not None else ():
            for wrong in wrongs:
                for other in (MISSING, "none"):
                    path = f"{case.path(**{name: other})}?page=0&more=1"
                    reply = acme.open(case.method, path, **wrong)
                    assert (reply.status_code, code_of(reply)) == (404, "NOT_FOUND"), case


@by_both
@pytest.mark.parametrize("code", UNREADABLE)
def test_a_body_that_cannot_be_read_is_refused(acme: Tenant, cases: list[Case], code: str) -> None:
    for case in cases:
        unread = UNREADABLE[code]
        reply = ask(acme, case, data=unread["data"], headers=unread["headers"])
        assert code_of(reply) == code, case


def test_a_body_is_an_object_and_holds_nothing_else(acme: Tenant, cases: list[Case]) -> None:
    for case in cases:
        if case.operation.body is not None:
            assert "more" in fields_of(ask(acme, case, json={"more": 1})), case
            for other in (b"[1]", b'"x"', b"3"):
                fields = fields_of(ask(acme, case, data=other, headers=JSON))
                assert fields == {"body": ["The body must be a JSON object."]}, case


def test_a_parameter_is_given_once(acme: Tenant, cases: list[Case]) -> None:
    for case in cases:
        fields = {} if case.operation.query is None else case.operation.query().fields
        for name in (each.data_key or name for name, each in fields.items()):
            reply = ask(acme, case, path=f"{case.path()}?{name}=1&{name}=1", query_string=None)
            assert fields_of(reply) == {name: ["Must be given once."]}, case


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
            reply = ask(acme, case)
            assert (reply.status_code, code_of(reply)) == (429, "RATE_LIMITED"), case
            assert reply.json["error"]["details"] == {"retryable": True}, case
            assert 0 < int(reply.headers["Retry-After"]) <= 60, case
            if case.operation.body is not None:
                assert ask(acme, case, json={"more": 1}).status_code == 422, case
            if case.operation.key:
                headers = {"Idempotency-Key": "two words"}
                assert ask(acme, case, headers=headers).status_code == 422, case
            if case.operation.resource is not None:
                path = case.path(**dict.fromkeys(case.ids, "none"))
                assert ask(acme, case, path=path).status_code == 404, case
    finally:
        acme.change(lambda own: own.set_rate_limit(None, acme.service.cause()))
        acme.service.until(lambda: acme.get("/v1/account").status_code == 200)


@by_both
def test_a_path_takes_no_other_method(service: Service) -> None:
    methods: dict[str, set[str]] = {}
    for operation in operations(service):
        method, path = operation.line.split()
        methods.setdefault(IN_PATH.sub(MISSING, path), set()).add(method)
    for path, right in methods.items():
        for method in METHODS - right:
            reply = service.client.open(path, method=method)
            assert reply.status_code == 405, (method, path)
            said = reply.json.get("error_description")
            if path != "/auth/token":
                assert code_of(reply) == "METHOD_NOT_ALLOWED", (method, path)
                said = reply.json["error"]["message"]
            assert said == f"This path takes only {reply.headers['Allow']}."
            allowed = {each.strip() for each in reply.headers["Allow"].split(",")}
            assert allowed == right | ({"HEAD"} if "GET" in right else set()), path


# Two requests of each operation with a key whose bodies differ.
NUMBERS = ("+971508245915", "+14155552671")
KEYED: Mapping[str, Callable[[Tenant, int], Any]] = {
    "look_up": lambda _, turn: {"phone_number": NUMBERS[turn]},
    "create_job": lambda _, turn: {"phone_numbers": [NUMBERS[turn]]},
    "create_link": lambda tenant, turn: {"plan_id": shop_of(tenant).plans[(FREE, BASIC)[turn]]},
    "change_link_plans": lambda tenant, turn: {"add": [shop_of(tenant).plans[(FREE, BASIC)[turn]]]},
    "create_webhook": lambda _, turn: {"url": f"https://hooks.example/{turn}"},
    "redeliver_failed": lambda _, turn: {"since": f"2026-11-2{turn}"},
    "hand_over_link": lambda _, turn: {"language": ("en", None)[turn]},
}
LIVE = {"usage_as_of", "response_time_ms", "timestamp", "request_id", "as_of"}


def settled(part: Any) -> Any:
    """Return what of a reply may not change when its request is repeated."""
    if isinstance(part, list):
        return [settled(each) for each in part]
    if isinstance(part, dict):
        return {name: settled(each) for name, each in part.items() if name not in LIVE}
    return part


def test_a_key_gives_the_first_outcome_again(service: Service) -> None:
    tenant = service.tenant()
    repeated = 0
    for operation in operations(service):
        if not operation.key:
            continue
        case = case_of(operation, tenant)
        headers = {"Idempotency-Key": str(uuid4())}
        body = KEYED[operation.name](tenant, 0) if operation.name in KEYED else {}
        first = ask(tenant, case, json=body, headers=headers)
        assert first.status_code in {200, 201, 202}, (case, first.text)
        assert "Idempotency-Replayed" not in first.headers, case
        spent = tenant.balance()
        again = ask(tenant, case, json=body, headers=headers)
        assert (again.status_code, again.headers["Idempotency-Replayed"]) == (
            first.status_code,
            "true",
        ), case
        outcome = dict(first.json["data"])  # But for secrets, which are kept hashed.
        outcome |= {"url": None} if case.operation.name == "hand_over_link" else {}
        if case.operation.name == "rotate_client_secret":
            del outcome["client_secret"]
        assert settled(again.json["data"]) == settled(outcome), case
        assert tenant.balance() == spent, case
        if operation.name in KEYED:
            other = ask(tenant, case, json=KEYED[operation.name](tenant, 1), headers=headers)
            assert code_of(other) == "IDEMPOTENCY_KEY_REUSED", case
            (name,) = KEYED[operation.name](tenant, 1)
            said = f"with another {name}; use a new key."
            assert other.json["error"]["message"].endswith(said), case
        repeated += 1
    assert repeated == 10
    assert tenant.webhook() != webhook_of(tenant), "another key, or none, is another request"


def test_a_payment_service_acts_for_no_organization(service: Service, cases: list[Case]) -> None:
    (case,) = [case for case in cases if case.operation.who is not authenticate]
    sent = {**case.sent, "headers": payments_of(service.tenant())}
    reply = service.client.open(case.path(), method=case.method, **sent)
    assert reply.status_code == 201
    assert "RateLimit" not in reply.headers


def test_every_other_operation_names_what_it_ignores(service: Service, acme: Tenant) -> None:
    named = set()
    for operation in operations(service):
        if operation.line.startswith(("GET", "DELETE")):
            case = case_of(operation, acme)
            query = {**case.sent.get("query_string", {}), "dryRun": "true", "page_no\x00": "2"}
            reply = ask(acme, case, query_string=query)
            assert reply.status_code in {200, 202}, (case, reply.text)
            if reply.mimetype == "application/json" and "success" in reply.json:
                assert reply.json["meta"]["ignored"] == ["dryRun", "page_no\ufffd"], case
                named.add(operation.name)
    assert len(named) > 20


def test_what_is_named_is_bounded(acme: Tenant) -> None:
    query = "&".join(f"{number}{'x' * 100}" for number in range(500))
    for path in ("/v1/wallet", "/v1/transactions/none"):
        reply = acme.get(f"{path}?{query}")
        names = reply.json["meta"]["ignored"]
        assert [len(each) for each in names] == [64] * 10
    assert "ignored" not in acme.get("/v1/wallet?").json["meta"]
    assert "ignored" not in acme.get("/v1/transactions?page=1").json["meta"]
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
