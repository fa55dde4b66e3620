"""Nothing of another organization is ever visible: it answers as if it did not exist."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from werkzeug.test import TestResponse

from app.adapters.lookups.sandbox import SLOW
from app.http.edge.operation import Group, Operation
from tests.app.http.buying import FREE, LINKS, MISSING, Buyer
from tests.app.http.service import Service, Tenant
from tests.plan_files import import_plans, plan

pytestmark = pytest.mark.each_database

IN_PATH = re.compile(r"<(\w+)>")
Sent = Mapping[str, Any]


def own_plan(tenant: Tenant) -> str:
    plan_id = str(uuid4())
    import_plans(tenant.service.container, plan(id=plan_id, organization_id=str(tenant.id)))
    return plan_id


@cache
def shop_of(tenant: Tenant) -> Buyer:
    return Buyer(tenant)


def link_of(tenant: Tenant) -> str:
    return str(shop_of(tenant).link(FREE)["id"])


@cache
def webhook_of(tenant: Tenant) -> str:
    return tenant.webhook()


@cache
def delivery_of(tenant: Tenant) -> str:
    webhook_id = webhook_of(tenant)
    return f"{webhook_id}/{tenant.test_delivery(webhook_id)}"


def cancelled_job_of(tenant: Tenant) -> str:
    """Return a job that was cancelled before its number was answered, which takes seconds."""
    job_id: str = tenant.create_job([SLOW]).json["data"]["job_id"]
    assert tenant.open("DELETE", f"/number-lookup/bulk/{job_id}").status_code == 200
    return job_id


# What an id in a path can name: whoever adds an operation says here how to make one of it.
# In a path with two ids, what it returns has both of them, with a slash between.
SAMPLES: dict[tuple[str, str], Callable[[Tenant], str]] = {
    ("read_job", "job_id"): lambda tenant: tenant.finished_job(["+971508245915"])["job_id"],
    ("read_results", "job_id"): lambda tenant: tenant.finished_job(["+971508245915"])["job_id"],
    ("cancel_job", "job_id"): cancelled_job_of,
    ("read_lookup", "lookup_id"): lambda tenant: tenant.look_up("+971508245915").json["meta"][
        "lookup_id"
    ],
    ("read_transaction", "transaction_id"): lambda tenant: tenant.transactions()[0]["id"],
    ("read_plan", "plan_id"): own_plan,
    ("read_plan_coverage", "plan_id"): own_plan,
    ("read_link_request", "request_id"): link_of,
    ("delete_webhook", "webhook_id"): lambda tenant: tenant.webhook(),
    ("rotate_client_secret", "client_id"): lambda tenant: tenant.another(),
    ("delete_client", "client_id"): lambda tenant: tenant.another(),
}
OF_LINKS = "read_link change_link_plans list_topup_plans suspend_link reactivate_link rename_link"
OF_LINKS += " cancel_link end_link read_link_qr list_link_history read_network_status play_link"
OF_LINKS += " hand_over_link revoke_handover"
SAMPLES |= {(name, "identifier"): link_of for name in OF_LINKS.split()}
OF_WEBHOOKS = "read_webhook change_webhook rotate_webhook_secret send_test_webhook list_deliveries"
OF_WEBHOOKS += " redeliver_failed"
SAMPLES |= {(name, "webhook_id"): webhook_of for name in OF_WEBHOOKS.split()}
OF_DELIVERIES = [("read_delivery", "webhook_id"), ("read_delivery", "delivery_id")]
OF_DELIVERIES += [("redeliver", "webhook_id"), ("redeliver", "delivery_id")]
SAMPLES |= dict.fromkeys(OF_DELIVERIES, delivery_of)
OF_EVERYBODY = {"month"}  # Each organization has statements of its own of the same months.
# The bodies of those that need one.
BODIES: dict[str, Callable[[Tenant], dict[str, Any]]] = {
    "change_link_plans": lambda tenant: {"add": [shop_of(tenant).plans[FREE]]},
    "rename_link": lambda _: {"name": "Van 13"},
    "play_link": lambda _: {"action": "install"},
    "redeliver_failed": lambda _: {"since": "2026-11-21T00:00:00Z"},
}

NUMBER = "+971508245915"
# What the operations without an id in their path are sent: it succeeds. They come in this order.
WITHOUT_ID: dict[str, Callable[[Tenant], dict[str, Any]]] = {
    "issue_token": lambda tenant: {"data": credentials_of(tenant), "headers": {}},
    "key_set": lambda _: {},
    "server_metadata": lambda _: {},
    "look_up": lambda _: {"json": {"phone_number": NUMBER}},
    "create_job": lambda _: {"json": {"phone_numbers": [NUMBER]}},
    "list_jobs": lambda _: {"query_string": {"status": "completed"}},
    "list_plans": lambda _: {"query_string": {"country": "FR"}},
    "list_regions": lambda _: {},
    "create_link": lambda tenant: {"json": {"plan_id": shop_of(tenant).plans[FREE]}},
    "list_links": lambda _: {"query_string": {"status": "active", "search": FREE}},
    "read_wallet": lambda _: {},
    "list_transactions": lambda _: {"query_string": {"kind": "deposit"}},
    "read_account": lambda _: {},
    "list_clients": lambda _: {},
    "change_account": lambda _: {"json": {"low_balance_threshold": "5.00"}},
    "make_deposit": lambda tenant: {"json": deposit_for(tenant), "headers": payments_of(tenant)},
    "list_statements": lambda _: {},
    "read_statement": lambda tenant: {"path": {"month": month_with_entries(tenant)}},
    "read_usage": lambda _: {"query_string": {"group_by": "day"}},
    "create_webhook": lambda _: {"json": {"url": "https://hooks.example/"}},
    "list_webhooks": lambda _: {},
    "read_sandbox": lambda _: {},
    "deposit_play_money": lambda _: {"json": {"amount": "5.00", "reference": str(uuid4())}},
    "move_clock": lambda _: {"json": {"hours": 1}},
    "reset_sandbox": lambda tenant: end_links(tenant) or {"json": {}},
    "script_failure": lambda _: {"json": {"operation": "lookup", "failure": None}},
    "list_events": lambda _: {"query_string": {"types": "wallet.deposited"}},
    "number_lookup_health": lambda _: {},
    "livez": lambda _: {},
    "readyz": lambda _: {},
}


def end_links(tenant: Tenant) -> None:
    for each in tenant.get(f"{LINKS}?per_page=100").json["data"]["data"]:
        if each["status"] != "ended":
            assert tenant.open("DELETE", f"{LINKS}/{each['id']}").status_code == 200


def month_with_entries(tenant: Tenant) -> str:
    """Return the month in which its money was paid in, which may just have ended."""
    charged_at: str = tenant.transactions()[-1]["charged_at"]
    return charged_at[:7]


def credentials_of(tenant: Tenant) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": tenant.client_id,
        "client_secret": f"s-{tenant.client_id}",
    }


def deposit_for(tenant: Tenant) -> dict[str, str]:
    return {"organization": str(tenant.id), "amount": "5.00", "reference": str(uuid4())}


def payments_of(tenant: Tenant) -> dict[str, str]:
    machine = tenant.service.register_client(None, ["deposits"])
    return {"Authorization": f"Bearer {tenant.service.token(machine)}"}


class Case(NamedTuple):
    """An operation, where it is, and a request that it would do."""

    operation: Operation
    ids: Mapping[str, str]
    sent: Sent

    @property
    def method(self) -> str:
        return self.operation.line.split()[0]

    def path(self, **ids: str) -> str:
        """Return the path, with these ids in place of those that are there."""
        known = {**self.ids, **ids}
        return IN_PATH.sub(lambda name: known[name[1]], self.operation.line.split()[1])

    def __str__(self) -> str:
        return self.operation.name


def operations(service: Service) -> Iterator[Operation]:
    for group in service.app.blueprints.values():
        if isinstance(group, Group):
            yield from group.operations


def case_of(operation: Operation, tenant: Tenant) -> Case:
    names = IN_PATH.findall(operation.line)
    if not names or (operation.name, names[0]) not in SAMPLES:
        sent = dict(WITHOUT_ID[operation.name](tenant))
        return Case(operation, sent.pop("path", {}), sent)
    ids = dict(zip(names, SAMPLES[operation.name, names[0]](tenant).split("/"), strict=True))
    body = BODIES.get(operation.name, lambda _: {} if operation.body else None)(tenant)
    return Case(operation, ids, {"json": body})


def ask(tenant: Tenant, case: Case, *, path: str = "", **sent: Any) -> TestResponse:
    """Send a request of the right caller, with `sent` in place of what stands in the case."""
    own = case.sent.get("headers", {})
    headers = {**own, **sent.pop("headers", {})}
    of_body = {"json", "data"}
    dropped = of_body if of_body & sent.keys() else set()
    given = {**{name: it for name, it in case.sent.items() if name not in dropped}, **sent}
    return tenant.open(case.method, path or case.path(), **{**given, "headers": headers})


def test_what_belongs_to_another_organization_does_not_exist(
    service: Service, acme: Tenant, rival: Tenant
) -> None:
    for operation in operations(service):
        for name in {*IN_PATH.findall(operation.line)} - OF_EVERYBODY:
            case = case_of(operation, acme)
            own, foreign = ask(acme, case), ask(rival, case)
            missing = ask(rival, case, path=case.path(**{name: MISSING}))
            assert own.status_code in {200, 201, 202}, case
            assert foreign.status_code == missing.status_code == 404, case
            assert foreign.json["error"] == missing.json["error"], case
            assert set(foreign.headers.keys()) == set(missing.headers.keys()), case


def others(service: Service) -> dict[str, Operation]:
    """Return each operation without an id in its path, by its name."""
    return {each.name: each for each in operations(service) if each.name in WITHOUT_ID}


def send(tenant: Tenant, operation: Operation) -> TestResponse:
    reply = ask(tenant, case_of(operation, tenant))
    assert reply.status_code in {200, 201, 202}, (operation.name, reply.text)
    return reply


def test_every_other_operation_succeeds(service: Service, acme: Tenant) -> None:
    """With those above it is the walk over every operation, on each database."""
    found = others(service)
    assert found.keys() == WITHOUT_ID.keys()
    for name in WITHOUT_ID:
        send(acme, found[name])


def test_what_another_organization_does_changes_no_reply(service: Service) -> None:
    """It finds what lists, counts or adds up more than what is the caller's."""
    quiet, busy = service.tenant(), service.tenant()
    own_plan(quiet)
    reads = {name: it for name, it in others(service).items() if name.startswith(("list_", "read"))}
    del reads["readyz"]

    def seen() -> dict[str, Any]:
        return {name: send(quiet, it).json["data"] for name, it in reads.items()}

    before = seen()
    for make in {*SAMPLES.values()}:
        make(busy)
    assert {name for name, data in seen().items() if data != before[name]} == set()
    mine = {name: send(busy, it).json["data"] for name, it in reads.items()}
    same = {name for name, data in mine.items() if data == before[name]}
    assert same <= {"list_regions", "read_sandbox"}


def test_the_transactions_of_another_cannot_be_found_by_reference(
    acme: Tenant, rival: Tenant
) -> None:
    job_id = acme.finished_job(["+971508245915"])["job_id"]
    assert acme.transactions(reference=job_id)
    assert rival.transactions(reference=job_id) == []
