"""Over a real socket: who reads a long download slowly holds up nobody else."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import UUID

import pytest

from app.http.server import gateway
from app.settings import DOWNLOADS_MAX, DOWNLOADS_OF_ONE_MAX
from domain.lookups.bulk_job import SLICE_ITEMS
from projections.models.transactions import COLUMNS, Transaction
from tests.app.http.conftest import MakeService
from tests.app.http.over_http import HOST, Answer, request, send, serving
from tests.app.http.service import Service, Tenant
from tests.installation import PATIENCE_S, numbers, wait_until

# More than the buffers of both sockets take, so that a thread waits for the reader.
WIDE = "x" * 500_000
DOWN = "+15005550001"
LIST = "GET /v1/transactions HTTP/1.1"


@pytest.fixture(scope="module")
def service(share_service: MakeService) -> Service:
    """Which database its tables are read from matters to nothing."""
    return share_service()


@pytest.fixture
def port(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Serve tables that are wide."""
    monkeypatch.setattr(Transaction, "cells", lambda *_: [WIDE] * len(COLUMNS))
    # However slow a thread is: what it still answers at the end nobody would close any more.
    with serving(service.container, finish_s=PATIENCE_S) as port:
        yield port


def tenant_of(service: Service) -> Tenant:
    tenant = service.tenant()
    service.container.projector.catch_up()
    return tenant


def download(tenant: Tenant) -> bytes:
    return request(LIST, tenant, Accept="text/csv")


def lookup(tenant: Tenant) -> bytes:
    body = b'{"phone_number": "+14155550100"}'
    more = {"Content_Type": "application/json", "Content_Length": str(len(body))}
    return request("POST /number-lookup HTTP/1.1", tenant, **more) + body


def begin(stack: ExitStack, port: int, tenant: Tenant) -> tuple[socket.socket, int]:
    """Begin a download and read no further than its status."""
    connection = socket.create_connection((HOST, port), timeout=10)
    stack.enter_context(connection)
    connection.sendall(download(tenant))
    return connection, int(connection.recv(12).split()[1])


def status_of_next(port: int, tenant: Tenant) -> int:
    with ExitStack() as stack:
        return begin(stack, port, tenant)[1]


def test_slow_readers_fill_the_share_of_their_organization_and_nothing_else(
    port: int, service: Service
) -> None:
    slow, other = tenant_of(service), tenant_of(service)
    with ExitStack() as stack:
        begun = [begin(stack, port, slow)[1] for _ in range(DOWNLOADS_OF_ONE_MAX + 2)]
        assert begun == [200] * DOWNLOADS_OF_ONE_MAX + [429] * 2
        refused = send(port, download(slow))
        assert (refused.status, refused.code()) == (429, "RATE_LIMITED")
        assert "downloads" in refused.json()["error"]["message"]
        assert refused.headers["retry-after"] == "1"
        for tenant in (slow, other):
            assert send(port, lookup(tenant)).status == 200
        assert begin(stack, port, other)[1] == 200
    wait_until(lambda: status_of_next(port, slow) == 200)


def test_a_reader_who_takes_too_long_altogether_is_cut_off(
    port: int, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "STREAM_S", 0.5)
    tenant = tenant_of(service)
    with ExitStack() as stack:
        slow = [begin(stack, port, tenant)[0] for _ in range(DOWNLOADS_OF_ONE_MAX)]

        def read_a_little_and_look() -> bool:
            for each in slow:
                each.recv(1_024)
            return status_of_next(port, tenant) == 200

        wait_until(read_a_little_and_look)
        received = b""
        while block := slow[0].recv(1_000_000):
            received = block
        assert not received.endswith(b"0\r\n\r\n")


def test_however_a_download_ends_its_place_is_free_again(
    port: int, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transaction, "cells", lambda *_: ["narrow"] * len(COLUMNS))
    tenant = tenant_of(service)
    wrong = download(tenant)[:-2] + b"Content-Type: application/json\r\nContent-Length: 1\r\n\r\n{"

    def ends(sent: bytes) -> Answer:
        for _ in range(DOWNLOADS_MAX):
            answer: Answer | None = None

            def told() -> bool:
                nonlocal answer
                answer = send(port, sent)
                return answer.status != 429

            wait_until(told)
        return answer

    assert ends(download(tenant)).body.endswith(b"0\r\n\r\n")
    assert ends(request(LIST, tenant, Accept="text/csv", Accept_Encoding="gzip")).status == 200
    assert ends(request(LIST.replace("GET", "HEAD"), tenant, Accept="text/csv")).status == 200
    assert ends(wrong).status == 400

    def fail(*_: object) -> list[str]:
        raise ValueError

    monkeypatch.setattr(Transaction, "cells", fail)
    assert ends(download(tenant)).status == 200  # It was begun, and is cut off.


def test_a_file_whose_first_block_is_empty_is_sent_whole(port: int, service: Service) -> None:
    tenant = tenant_of(service)
    job_id = tenant.create_job([*numbers(SLICE_ITEMS), DOWN]).json["data"]["job_id"]
    for index in range(2):
        service.container.bulk_lookup.work(UUID(job_id), index)
    service.container.projector.catch_up()
    line = f"GET /number-lookup/bulk/{job_id}/results?format=ndjson&status=failed HTTP/1.1"
    size, item, *_ = send(port, request(line, tenant)).body.splitlines()
    assert json.loads(item)["phone_number"] == DOWN
    assert int(size, 16) == len(item) + 1
