"""A read at the end of the events waits on the loop: it holds no thread, and hears what is its."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from app.http.webhooks.events import WAITERS, WAITING_OF_ONE_MAX, Waiter, Waiters
from app.settings import HTTP_THREADS
from tests.app.http.conftest import MakeService
from tests.app.http.over_http import HOST, Answer, Behind, read_all, request, send
from tests.app.http.service import Service, Tenant
from tests.installation import wait_until

WAIT_S = 30
CROWD = 8  # Organizations, each with as many as may wait.


class Server(Behind):
    """A service behind its server, which says how many wait."""

    def __init__(self, service: Service) -> None:
        super().__init__(service, many=False)
        self._waiters: Waiters = self.bridge.loop.app.extensions[WAITERS]  # type: ignore[attr-defined]  # It is Flask.

    def end_of(self, tenant: Tenant) -> str:
        """Return the cursor behind all that has happened to an organization so far."""
        tenant.service.until_projected(tenant.service.container.webhook_messages.name)
        page = send(self.port, request("GET /v1/events HTTP/1.1", tenant)).json()["data"]
        assert not page["has_more"]
        return str(page["next"])

    def until_waiting(self, count: int) -> None:
        wait_until(lambda: self.waiting() == count)

    def waiting(self) -> int:
        return len(self._waiters._waiting)  # noqa: SLF001  # As above.


class Reader:
    """One request that may wait."""

    def __init__(self, server: Server, tenant: Tenant, after: str, query: str = "") -> None:
        line = f"GET /v1/events?wait={WAIT_S}&after={after}{query} HTTP/1.1"
        self._socket = socket.create_connection((HOST, server.port), timeout=WAIT_S / 2)
        self._socket.sendall(request(line, tenant))

    def hang_up(self, *, rudely: bool) -> None:
        if rudely:  # The server hears of it by a reset.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def say_no_more(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def page(self) -> Any:
        answer = self.answer()
        assert answer.status == 200, answer.body
        return answer.json()["data"]

    def answer(self) -> Answer:
        with self._socket:
            return Answer(read_all(self._socket))


@pytest.fixture
def server(service: Service) -> Iterator[Server]:
    with closing(Server(service)) as made:
        yield made


def amounts(page: Any) -> list[str]:
    return [each["body"]["data"]["amount"] for each in page["data"]]


@pytest.mark.each_database
def test_it_is_answered_when_something_happens_to_its_organization(
    server: Server, service: Service
) -> None:
    tenant, other = service.tenant(), service.tenant()
    reader = Reader(server, tenant, server.end_of(tenant))
    bystander = Reader(server, other, server.end_of(other))
    picky = Reader(server, tenant, server.end_of(tenant), "&types=link.failed,job.finished")
    charged = Reader(server, tenant, server.end_of(tenant), "&types=wallet.charged")
    server.until_waiting(4)
    tenant.deposit("7.00")
    page = reader.page()
    assert amounts(page) == ["7.00"]
    server.until_waiting(3)
    other.deposit("8.00")
    assert amounts(bystander.page()) == ["8.00"]
    assert tenant.look_up("+14155552671").status_code == 200
    assert [each["body"]["type"] for each in charged.page()["data"]] == ["wallet.charged"]
    tenant.finished_job(["+14155552671"])
    assert [each["body"]["type"] for each in picky.page()["data"]] == ["job.finished"]
    server.until_waiting(0)


def test_it_is_answered_when_its_time_is_over(server: Server, service: Service) -> None:
    tenant = service.tenant()
    line = f"GET /v1/events?wait=1&after={server.end_of(tenant)} HTTP/1.1"
    began = time.monotonic()
    page = send(server.port, request(line, tenant)).json()["data"]
    assert page["data"] == []
    assert time.monotonic() - began >= 1.0
    tenant.deposit("7.00")
    after = f"GET /v1/events?wait=20&after={page['next']} HTTP/1.1"
    assert amounts(send(server.port, request(after, tenant)).json()["data"]) == ["7.00"]


def test_more_than_there_are_threads_wait_without_one_and_end_with_the_server(
    service: Service,
) -> None:
    tenants = [service.tenant() for _ in range(CROWD)]
    with closing(Server(service)) as server:
        ends = [server.end_of(each) for each in tenants]
        readers = [
            Reader(server, tenant, end)
            for tenant, end in zip(tenants, ends, strict=True)
            for _ in range(WAITING_OF_ONE_MAX)
        ]
        server.until_waiting(CROWD * WAITING_OF_ONE_MAX)
        assert len(readers) > HTTP_THREADS
        wallet = request("GET /v1/wallet HTTP/1.1", tenants[0])
        assert send(server.port, wallet).status == 200
        tenants[0].deposit("7.00")
        told = [each.page() for each in readers[:WAITING_OF_ONE_MAX]]
        assert [amounts(each) for each in told] == [["7.00"]] * WAITING_OF_ONE_MAX
        assert server.waiting() == (CROWD - 1) * WAITING_OF_ONE_MAX
        began = time.monotonic()
    assert [each.page()["data"] for each in readers[WAITING_OF_ONE_MAX:]] == [[]] * (
        len(readers) - WAITING_OF_ONE_MAX
    )
    assert time.monotonic() - began < 10


def test_who_has_too_many_that_wait_is_answered_at_once(server: Server, service: Service) -> None:
    tenant, other = service.tenant(), service.tenant()
    end = server.end_of(tenant)
    readers = [Reader(server, tenant, end) for _ in range(WAITING_OF_ONE_MAX)]
    server.until_waiting(WAITING_OF_ONE_MAX)
    assert Reader(server, tenant, end).page()["data"] == []
    patient = Reader(server, other, server.end_of(other))
    server.until_waiting(WAITING_OF_ONE_MAX + 1)
    for each in (tenant, other):
        each.deposit("7.00")
    for reader in (*readers, patient):
        assert amounts(reader.page()) == ["7.00"]


def test_who_hangs_up_gives_his_place_back_at_once(server: Server, service: Service) -> None:
    tenant = service.tenant()
    end = server.end_of(tenant)
    for end_of_wait in (
        lambda it: it.hang_up(rudely=True),
        lambda it: it.hang_up(rudely=False),
        lambda it: it.say_no_more(),
    ):
        readers = [Reader(server, tenant, end) for _ in range(WAITING_OF_ONE_MAX)]
        server.until_waiting(WAITING_OF_ONE_MAX)
        for each in readers:
            end_of_wait(each)
        server.until_waiting(0)
    assert [each.page()["data"] for each in readers] == [[]] * WAITING_OF_ONE_MAX
    own = "Transfer-Encoding: chunked\r\nAuthorization: " + tenant.headers["Authorization"]
    more = f" HTTP/1.1\r\nHost: a\r\n{own}\r\n\r\n0\r\n\r\nGET /v1/events?wait={WAIT_S}&after={end}"
    hasty = Reader(server, tenant, end, more)  # Both requests are parsed together.
    server.until_waiting(1)
    hasty.say_no_more()  # It has ended before its second request begins to wait.
    assert hasty.answer().body.count(b'"next"') == 2
    server.until_waiting(0)


def test_a_request_that_waits_is_counted_once(server: Server, service: Service) -> None:
    tenant = service.tenant()
    end = server.end_of(tenant)
    tenant.change(lambda it: it.set_rate_limit(1_000, service.cause()))
    service.until_projected("organizations")

    def left(answer: Answer) -> int:
        return int(answer.headers["ratelimit"].split(";")[1].removeprefix("r="))

    wait_until(lambda: "RateLimit" in tenant.get("/v1/wallet").headers)
    ask = request(f"GET /v1/events?after={end} HTTP/1.1", tenant)
    before = left(send(server.port, ask))
    reader = Reader(server, tenant, end)
    server.until_waiting(1)
    tenant.deposit("7.00")
    assert left(reader.answer()) in {before - 1, 999}  # Unless another minute has begun.


def test_what_comes_between_the_read_and_the_wait_is_heard(make_service: MakeService) -> None:
    service = make_service()
    tenant, parts = service.tenant(), service.container
    waiters = Waiters(parts)

    def waiter(*types: str) -> Waiter:
        given: Any = SimpleNamespace(organization_id=tenant.id, extensions={WAITERS: waiters})
        given.query = {"wait": WAIT_S, "types": types}
        return Waiter(given, read_at)

    parts.projector.catch_up()
    read_at = parts.log.head()
    other, late, told = waiter("link.failed"), waiter(), Event()
    assert other.enter(lambda: None)
    tenant.deposit("7.00")
    parts.projector.catch_up()
    wait_until(lambda: waiters._seen == parts.log.head())  # noqa: SLF001  # As above.
    assert late.enter(told.set)
    assert told.wait(WAIT_S)
    for each in (late, other):
        each.leave(again=False)
    wait_until(lambda: not waiters._is_polling)  # noqa: SLF001  # As above.


def test_who_waits_is_answered_when_nobody_can_look(make_service: MakeService) -> None:
    service = make_service()
    tenant, parts = service.tenant(), service.container
    parts.projector.catch_up()
    with closing(Server(service)) as server:
        reader = Reader(server, tenant, server.end_of(tenant))
        server.until_waiting(1)
        with parts.views.writing() as connection:
            parts.webhook_messages.metadata.drop_all(connection)
        tenant.deposit("7.00")
        with parts.views.writing() as connection:
            rows = parts.positions.rows
            connection.execute(rows.update().values(position=parts.log.head()))
        assert reader.answer().status in {500, 503}
