"""What every operation of the document says to the same few mistakes."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.net.house import House, house
from tests.net.net import Net, Partner
from tests.net.operations import Operation, operations
from tests.seeds import Seed

CLIENTS = "/v1/account/clients"
MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"
NOTHING = {"month": "2025-01"}
Ids = Mapping[str, str]


def path_of(operation: Operation, ids: Ids = NOTHING) -> str:
    """Return the path of an operation on these resources, or on none that is there."""
    return re.sub(r"\{(\w+)\}", lambda match: ids.get(match[1], MISSING), operation.path)


def owner(net: Net) -> tuple[Partner, Ids]:
    """Return a partner who has one of each, and their ids by their names in paths."""
    acme = net.partner()
    lookup = acme.look_up()["meta"]
    link, plan = acme.buy(), acme.plan("Germany 3 GB")
    webhook = acme.ask("POST", "/v1/webhooks", {"url": "http://127.0.0.1:9/"}).data["id"]
    told = acme.ask("POST", f"/v1/webhooks/{webhook}/test").data["delivery_id"]
    net.until(lambda: acme.data(f"/v1/webhooks/{webhook}/deliveries")["data"])
    return acme, {
        "lookup_id": lookup["lookup_id"],
        "transaction_id": lookup["charge"]["transaction_id"],
        "job_id": acme.job("+14155552671")["job_id"],
        "identifier": link["id"],
        "request_id": link["id"],
        "plan_id": plan,
        "webhook_id": webhook,
        "delivery_id": told,
        "client_id": another(acme, "lookup").client_id,
        "month": "2026-03",
    }


def another(partner: Partner, scope: str) -> Partner:
    """Return another client of an organization, with one scope."""
    made = partner.net.quietly("client", "create", "--org", partner.id, "--scope", scope)
    return Partner(partner.net, scope, made, partner.id)


def callers(partner: Partner) -> Callable[[Operation], Partner]:
    """Tell who calls an operation: the partner, or his client that may manage clients."""
    keys = another(partner, "clients")
    return lambda operation: keys if operation.path.startswith(CLIENTS) else partner


def each(net: Net, status: int) -> Iterator[Operation]:
    """Go through the operations of partners that can answer with a status."""
    document = json.loads(net.ask("GET", "/openapi.json", {}, None).body)
    for operation in operations(document):
        if status in operation.statuses and not operation.path.startswith("/auth"):
            yield operation


def scoped(acme: Partner, scope: str) -> Partner:
    acme.headers = {"Authorization": f"Bearer {acme.token(scope=scope).json['access_token']}"}
    return acme


def test_without_a_token(net: Net) -> None:
    nobody = net.stranger()
    for operation in each(net, 401):
        nobody.call(operation.method, path_of(operation))


def test_without_the_scope(net: Net) -> None:
    plans, lookups = scoped(net.partner(), "plans"), scoped(net.partner(name="Other"), "lookup")
    for operation in each(net, 403):
        caller = lookups if operation.path.startswith("/v1/plans") else plans
        caller.call(operation.method, path_of(operation))


def test_with_a_body_that_is_text(net: Net) -> None:
    acme, ids = owner(net)
    caller = callers(acme)
    for operation in each(net, 415):
        caller(operation).call(
            operation.method, path_of(operation, ids), body="x", Content_Type="text/plain"
        )


def test_with_a_body_that_is_not_json(net: Net) -> None:
    acme, ids = owner(net)
    caller = callers(acme)
    for operation in each(net, 400):
        path = path_of(operation, ids)
        caller(operation).call(operation.method, path, body="{", Content_Type="application/json")


def test_with_a_body_that_has_more(net: Net) -> None:
    acme, ids = owner(net)
    caller = callers(acme)
    for operation in each(net, 422):
        if operation.method != "GET":
            caller(operation).call(operation.method, path_of(operation, ids), {"more": 1})


def test_of_nothing_that_is_there(net: Net) -> None:
    caller = callers(net.partner(""))
    for operation in each(net, 404):
        caller(operation).call(
            operation.method, path_of(operation), *([{}] if operation.has_body else [])
        )


def test_over_the_rate_limit(net: Net) -> None:
    acme, ids = owner(net)
    caller = callers(acme)
    assert net.quietly("org", "set", acme.id, "--rate-limit", "1")["rate_limit"] == 1
    bodies = {
        ("POST", "/v1/webhooks"): {"url": "https://hooks.example/"},
        ("POST", "/v1/webhooks/{webhook_id}/redeliver"): {"since": "2026-03-01"},
        ("POST", "/v1/links"): {"plan_id": ids["plan_id"]},
        ("PATCH", "/v1/links/{identifier}"): {"name": None},
        ("PUT", "/v1/links/{identifier}/plans"): {"add": [ids["plan_id"]]},
        ("POST", "/number-lookup"): {"phone_number": "+14155552671"},
        ("POST", "/number-lookup/bulk"): {"phone_numbers": ["+14155552671"]},
        ("PATCH", "/v1/account"): {"low_balance_threshold": None},
        ("POST", "/v1/sandbox/clock"): {"hours": 1},
        ("POST", "/v1/sandbox/deposits"): {"amount": "5.00", "reference": "tests-1"},
        ("POST", "/v1/sandbox/links/{identifier}"): {"action": "install"},
        ("PUT", "/v1/sandbox/failures"): {"operation": "lookup", "failure": None},
    }
    for operation in each(net, 429):
        net.until(lambda: acme.ask("GET", "/v1/account").status == 429)
        body = bodies.get((operation.method, operation.path), {} if operation.has_body else None)
        if not operation.path.startswith(("/.well-known", "/v1/deposits")):  # Of all; of machines.
            caller(operation).call(operation.method, path_of(operation, ids), body)


@pytest.fixture
def doomed(tmp_path: Path, migrated: Seed) -> Iterator[House]:
    """A house that will lose its database."""
    with house(tmp_path, migrated) as made:
        yield made.start()


@pytest.mark.each_database
def test_without_a_database(doomed: House, net: Net) -> None:
    net.enter(doomed)
    demo, nobody = net.demo(), net.stranger()
    demo.ask("GET", "/v1/account")
    doomed.lose_database()
    # The loop remembers demo for a while, and each file is looked at every 50 ms only.
    first = (("GET", "/v1/account"), ("POST", "/number-lookup"))
    net.until(lambda: all(demo.ask(*asked).status == 503 for asked in first))
    net.until(lambda: demo.token().status == 503)
    for path in ("/livez", "/number-lookup/health", "/.well-known/jwks.json"):
        nobody.get(path)
    ready = nobody.ask("GET", "/readyz")
    shown = {name: ready.json[name] for name in ("ok", "database", "signing_keys")}
    net.note("GET /readyz (nobody)", f"-> {ready.status}", f"but for its words: {shown}")
    kind = "application/x-www-form-urlencoded"
    form = f"grant_type=client_credentials&client_id={demo.client_id}&client_secret={demo.secret}"
    nobody.post("/auth/token", body=form, Content_Type=kind)
    for operation in each(net, 401):
        demo.call(operation.method, path_of(operation))
