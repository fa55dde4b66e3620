"""One caller holds up no other: whose requests wait, for how many, and what needs no thread."""

import json
import socket
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from threading import Event, current_thread
from types import SimpleNamespace
from typing import Any
from wsgiref.types import StartResponse

import pytest

from app.http.edge.request import current_request_id
from app.http.server import loop as server_loop
from app.http.server.threads import COMPUTING_MAX
from app.security.tokens import TokenVerifier
from domain import limiter
from domain.errors import Unauthorized
from tests.app.http.over_http import HOST, Answer, Behind, read_all
from tests.app.http.service import Service, Tenant
from tests.servers.guard import wait_for

PATIENCE_S = 20.0
THREADS_OF_ONE = 4  # While others come.
HELD = "/v1/account"  # Requests to it end when they are told.


class House(Behind):
    """A service behind its server, in which one operation can be held up."""

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.go, self.held = Event(), 0
        self._answer, self.bridge.loop.app = self.bridge.loop.app, self._held

    def _held(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == HELD:
            self.held += 1
            assert self.go.wait(PATIENCE_S)
        return self._answer(environ, start)

    def send(
        self, path: str, token: str | None = None, *more: str, method: str = "GET"
    ) -> Callable[[], Answer]:
        """Send a request over a connection of its own; return what reads its reply."""
        connection = self.stack.enter_context(socket.create_connection((HOST, self.port), 20))
        lines = [f"{method} {path} HTTP/1.1", "Host: a", "Connection: close", *more]
        lines += [] if token is None else [f"Authorization: {token}"]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return lambda: Answer(read_all(connection))

    def ask(self, path: str, token: str | None = None, *more: str, method: str = "GET") -> Answer:
        return self.send(path, token, *more, method=method)()

    def fill(self, tenant: Tenant, count: int) -> list[Callable[[], Answer]]:
        """Send so many requests that are held up."""
        self.ask("/v1/wallet", token_of(tenant))  # So the token is known.
        return [self.send(HELD, token_of(tenant)) for _ in range(count)]

    def close(self) -> None:
        self.go.set()
        super().close()


def token_of(tenant: Tenant) -> str:
    return tenant.headers["Authorization"]


def forged(tenant: Tenant, number: int = 0) -> str:
    """Return a token that claims to be a tenant's."""
    head, payload, signature = token_of(tenant).split(".")
    claims = json.loads(urlsafe_b64decode(payload + "==")) | {"jti": f"forged-{number}"}
    text = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"{head}.{text}.{signature}"


@pytest.fixture
def house(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(limiter, "MIXED_S", 1_000.0)  # After the first nobody is alone.
    made = House(service)
    assert made.ask("/v1/wallet", token_of(service.tenant())).status == 200
    yield made
    made.close()


def test_what_a_forged_token_claims_fills_nobodys_places(house: House) -> None:
    victim = house.service.tenant()
    house.ask("/v1/wallet", token_of(victim))
    house.send(HELD, token_of(victim))
    assert wait_for(lambda: house.held == 1, PATIENCE_S)
    forgeries = [house.send("/v1/wallet", forged(victim, number)) for number in range(100)]
    assert house.ask("/v1/wallet", token_of(victim)).status == 200
    assert {each().status for each in forgeries} == {401}


def test_a_machine_client_is_an_owner_of_its_own_whatever_it_names(house: House) -> None:
    victim, client_id = house.service.tenant(), house.service.register_client(None)
    machine = f"Bearer {house.service.token(client_id)}"
    named = f"X-Organization-Id: {victim.id}"
    assert house.ask("/v1/wallet", machine, named).status == 200
    for _ in range(20):
        house.send(HELD, machine, named)
    assert wait_for(lambda: house.held == THREADS_OF_ONE, PATIENCE_S)
    house.send(HELD, token_of(victim))
    assert wait_for(lambda: house.held == THREADS_OF_ONE + 1, PATIENCE_S)


def test_what_nobody_may_have_needs_no_thread(house: House) -> None:
    tenant = house.service.tenant()
    for _ in range(COMPUTING_MAX // THREADS_OF_ONE):
        house.fill(house.service.tenant(), 30)
    assert wait_for(lambda: house.held == COMPUTING_MAX, PATIENCE_S)
    refused = {
        ("/nothing", None): (404, "NOT_FOUND"),
        ("/nothing", token_of(tenant)): (404, "NOT_FOUND"),
        ("/v1//wallet", None): (404, "NOT_FOUND"),
        ("/v1/wallet", None): (401, "UNAUTHORIZED"),
        ("/v1/wallet", "Basic eA=="): (401, "UNAUTHORIZED"),
        ("/v1/wallet", "Bearer x"): (401, "UNAUTHORIZED"),
        ("/v1/wallet", forged(tenant)): (401, "UNAUTHORIZED"),
        ("/v1/links/x/qr", None): (401, "UNAUTHORIZED"),
    }
    for asked, told in refused.items():
        answer = house.ask(*asked)
        assert (answer.status, answer.code()) == told, asked
    answer = house.ask("/v1/wallet", token_of(tenant), method="PATCH")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert house.held == COMPUTING_MAX


def test_no_context_outlives_its_request(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, loop, owner = list[object](), house.bridge.loop, house.bridge.loop.owner
    monkeypatch.setattr(loop, "owner", lambda it: seen.append(current_request_id()) or owner(it))
    house.ask("/v1/wallet HTTP/1.1\r\nHost: a\r\n\r\nGET /v1/wallet")
    assert seen == [None, None]


def test_few_wrong_tokens_of_an_address_are_checked_on_the_loop(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, on_loop = house.service.tenant(), list[bool]()
    prove = TokenVerifier._prove  # noqa: SLF001  # The test stands between.

    def noted(self: TokenVerifier, token: str) -> Any:
        try:
            return prove(self, token)
        except Unauthorized:  # Else a thread tries again: the keys were to be read anew.
            on_loop.append(current_thread().name.startswith("loop"))
            raise

    monkeypatch.setattr(TokenVerifier, "_prove", noted)
    monkeypatch.setattr(server_loop, "time", SimpleNamespace(monotonic=lambda: 1_000.0))
    asked = [house.send("/v1/wallet", forged(tenant, number)) for number in range(60)]
    assert {each().status for each in asked} == {401}
    assert on_loop.count(True) == server_loop.WRONG_MAX
    assert on_loop.count(False) == 60 - server_loop.WRONG_MAX
    assert house.ask("/v1/wallet").status == 401, "what needs no check is refused at once"


@pytest.mark.parametrize("path", ["/readyz", "/number-lookup/health"])
def test_all_callers_of_a_probe_share_what_one_has_asked_for(
    house: House, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    looks, log = list[float](), house.service.container.log
    monkeypatch.setattr(log, "fault", lambda it=log.fault: looks.append(time.monotonic()) or it())
    began_s = time.monotonic()
    asked = [house.send(path, None, f"X-Request-Id: r{number}") for number in range(200)]
    answers = [each() for each in asked]
    assert [each.headers["x-request-id"] for each in answers] == [f"r{n}" for n in range(200)]
    assert len({each.body for each in answers}) <= 2 + (time.monotonic() - began_s)
    assert 1 <= len(looks) <= 2 + (time.monotonic() - began_s)
    assert house.ask(path, method="HEAD").body == b""
