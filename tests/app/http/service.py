"""A whole service over a temporary directory, and the organizations that call it."""

import gzip
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException
from werkzeug.test import TestResponse

from app.http import docs
from app.http.application import ENCODED, create_app
from app.http.edge import openapi
from app.processes.runtime import Runtime
from app.settings import Settings
from domain.accounts.organization import OF_MACHINES, SCOPES, Organization
from domain.cause import Cause, Clock, utc_now
from projections.engine.freshness import wait_until_projected
from tests.app.cli.shell import Shell
from tests.app.http.described import described, differences, operation_of
from tests.app.http.remembered import build_paths_once, remembered
from tests.installation import Parts
from tests.seeds import sqlite_seed
from tests.support.webhooks import KeepingSender

WAIT_S = 20.0
LOOK_S = 0.02
DEFAULTS = {
    "TOKEN_ALGORITHM": "ES256",  # A key of it is made in no time.
    "PRICE_PER_LOOKUP": "0.005",
    "SANDBOX": "true",
    "NETWORK_BASE_PLAN": "base-1",
    "PUBLIC_URL": "https://api.example",
    "LINK_CANCEL_DAYS": "14",
}

openapi.register = remembered(openapi.register)  # For each app that a test makes.
build_paths_once()


class DescribedClient(FlaskClient):
    """A client that holds every reply to the OpenAPI document."""

    def open(self, *args: Any, **options: Any) -> TestResponse:
        reply = super().open(*args, **options)
        differences = differences_of(self.application, reply)
        assert not differences, (reply.request.method, reply.request.path, differences)
        return reply


def differences_of(app: Flask, reply: TestResponse) -> list[str]:
    """Say what a reply has that the document does not tell; nothing for what is no operation."""
    if reply.request.environ["REQUEST_URI"].startswith("//"):  # `path` has one of them.
        return []
    try:
        routes = app.url_map.bind("api.example")
        rule, _ = routes.match(reply.request.path, reply.request.method, return_rule=True)
    except HTTPException:
        return []
    document = described(app.extensions[docs.DOCUMENT][""])
    path = re.sub(r"<(?:path:)?(\w+)>", r"{\1}", rule.rule)
    if ENCODED.search(reply.request.environ.get("REQUEST_URI", "")):
        return []
    operation = operation_of(document, path, reply.request.method)
    if operation is None:
        return []
    return differences(document, operation, reply.status_code, reply.headers, body_of(reply))


def body_of(reply: TestResponse) -> bytes:
    """Return a body as a client reads it that takes gzip."""
    packed = reply.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(reply.data) if packed else reply.data


class Service:
    """One installation, in a copy of the seed.

    `start` runs its threads; without them authorization and jobs come from the log. Who is not
    `migrated` makes its keys itself.
    """

    def __init__(
        self, directory: Path, *, migrated: bool = True, clock: Clock = utc_now, **environment: str
    ) -> None:
        files = {
            "DATABASE_URL": f"sqlite:///{directory}/service.db",
            "SIGNING_KEYS": str(directory / "keys"),
        }
        self.directory, self.environment = directory, {**DEFAULTS, **files, **environment}
        self.container = Parts(Settings.from_env(self.environment), clock)
        self.sender = self.container.webhook_sender = KeepingSender()  # type: ignore[assignment]  # It has the shape of it.
        if migrated:
            if "DATABASE_URL" not in environment and not (directory / "service.db").exists():
                sqlite_seed().copy(directory)
            self.container.keys.ensure()
            self.container.webhook_key.ensure()
        self.app = create_app(self.container)
        self.app.test_client_class = DescribedClient
        self.client = self.app.test_client()
        self._runtime: Runtime | None = None

    def start(self) -> "Service":
        self._runtime = Runtime(self.container)
        self._runtime.start()
        return self

    @property
    def runs(self) -> bool:
        return self._runtime is not None

    def stop(self) -> None:
        if self._runtime is not None:
            self._runtime.stop()
        else:
            self.container.close()

    def cause(self) -> Cause:
        return Cause(self.container.clock(), "test")

    def tenant(
        self,
        balance: str | None = "100.00",
        *,
        price: str | None = None,
        scopes: Sequence[str] = [each for each in SCOPES if each not in OF_MACHINES],
    ) -> "Tenant":
        """Register an organization with a client of all scopes; `balance` None: no wallet."""
        owner = self.container.organization(balance or "", price=price or "")
        return Tenant(self, owner, self.register_client(owner, scopes))

    def register_client(self, organization_id: UUID | None, scopes: Sequence[str] = ()) -> str:
        """Register a client whose secret is `s-` and its id."""
        client_id = f"cl_{self.container.accounts.new_id().hex}"
        return self.container.client(organization_id, client_id, f"s-{client_id}", scopes)

    def shell(self) -> Shell:
        """Run commands on the installation, as another process does."""
        return Shell(self.directory, self.environment)

    def ask_for_token(self, client_id: str, secret: str = "", **more: str) -> TestResponse:
        secret = secret or f"s-{client_id}"
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
        return self.client.post("/auth/token", data={**form, **more})

    def token(self, client_id: str, **more: str) -> str:
        reply = self.ask_for_token(client_id, **more)
        assert reply.status_code == 200, reply.text
        return str(reply.json["access_token"])

    def until_projected(self, *names: str) -> None:
        """Wait until these read models are where the log is now."""
        parts = self.container
        assert wait_until_projected(parts.source, names, WAIT_S)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition, looking again whenever the log has grown."""
        log = self.container.log
        for _ in range(int(WAIT_S / LOOK_S)):
            seen = log.appended.count
            if holds():
                return
            log.appended.wait(seen, LOOK_S)
        message = "the condition did not come about"
        raise AssertionError(message)


class Tenant:
    """An organization and its client."""

    def __init__(self, service: Service, organization_id: UUID, client_id: str) -> None:
        self.service = service
        self.id = organization_id
        self.client_id = client_id
        self.headers = {"Authorization": f"Bearer {service.token(client_id)}"}

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.open("GET", path, **options)

    def post(self, path: str, **options: Any) -> TestResponse:
        return self.open("POST", path, **options)

    def open(self, method: str, path: str, key: str = "", **options: Any) -> TestResponse:
        """Send a request, perhaps under an `Idempotency-Key`."""
        keyed = {"Idempotency-Key": key} if key else {}
        headers = {**self.headers, **keyed, **options.pop("headers", {})}
        return self.service.client.open(path, method=method, headers=headers, **options)

    def look_up(self, number: str, **headers: str) -> TestResponse:
        return self.post("/number-lookup", query_string={"phone_number": number}, headers=headers)

    def create_job(self, numbers: Sequence[object], **headers: str) -> TestResponse:
        body = {"phone_numbers": list(numbers)}
        return self.post("/number-lookup/bulk", json=body, headers=headers)

    def finished_job(self, numbers: Sequence[str]) -> dict[str, Any]:
        """Create a job and wait for its end."""
        path = f"/number-lookup/bulk/{self.create_job(numbers).json['data']['job_id']}"
        self.service.until(lambda: self.get(path).json["data"]["finished_at"] is not None)
        job: dict[str, Any] = self.get(path).json["data"]
        return job

    def another(self, *scopes: str) -> str:
        """Register another client of the organization."""
        return self.service.register_client(self.id, scopes)

    def webhook(self, url: str = "https://hooks.example/", **more: Any) -> str:
        """Register an endpoint and return its id."""
        reply = self.post("/v1/webhooks", json={"url": url, **more})
        assert reply.status_code == 201, reply.text
        return str(reply.json["data"]["id"])

    def deliveries(self, webhook_id: str) -> list[dict[str, Any]]:
        return list(self.get(f"/v1/webhooks/{webhook_id}/deliveries").json["data"]["data"])

    def test_delivery(self, webhook_id: str) -> str:
        """Have an endpoint told a test, and return the id of the delivery when it is listed."""
        path = f"/v1/webhooks/{webhook_id}"
        told = str(self.post(f"{path}/test").json["data"]["delivery_id"])
        self.service.until(lambda: told in self.get(f"{path}/deliveries").text)
        return told

    def balance(self) -> str:
        return str(self.get("/v1/wallet").json["data"]["balance"])

    def transactions(self, **query: object) -> list[dict[str, Any]]:
        reply = self.get("/v1/transactions", query_string=query)
        entries: list[dict[str, Any]] = reply.json["data"]["data"]
        return entries

    def deposit(self, amount: str) -> None:
        self.service.container.deposit(self.id, amount)

    def change(self, change: Callable[[Organization], None]) -> None:
        self.service.container.accounts.change_organization(self.id, change)

    def set_status(self, status: Any) -> None:
        """Change the status and wait for its row if anybody writes it; before, either is seen."""
        self.change(lambda organization: organization.change_status(status, self.service.cause()))
        if self.service.runs:
            self.service.until_projected("organizations")


def code_of(reply: TestResponse) -> str:
    assert reply.json["success"] is False
    return str(reply.json["error"]["code"])


def fields_of(reply: TestResponse) -> dict[str, list[str]]:
    """Return the fields of a validation error, which both of its shapes must name."""
    assert reply.status_code == 422, reply.text
    assert code_of(reply) == "VALIDATION_ERROR"
    assert reply.json["message"] == reply.json["error"]["message"]
    assert reply.json["errors"] == reply.json["error"]["details"]
    fields: dict[str, list[str]] = reply.json["errors"]
    return fields
