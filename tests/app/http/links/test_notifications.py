"""Notifications of networks: signed ones make us look, and nothing that they say counts."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from app.adapters.networks.esimgo.wire import iccid_of
from app.adapters.networks.simulated.network import SimulatedNetwork
from app.bootstrap import providers
from app.bootstrap.container import Container
from app.http.links.routes import NOTIFICATION_BYTES_MAX
from domain.links import notifications
from domain.links.link import Link
from domain.links.network import Usage
from domain.provider_errors import Unavailable
from tests.app.http.buying import Buyer, buyer
from tests.app.http.service import Service, code_of
from tests.seeds import sqlite_seed
from tests.support.providers.esimgo import KEY, signature

PATH = "/networks/simulated/notifications"


class Signing(SimulatedNetwork):
    """The simulator, which signs notifications as eSIM Go does; `reads` are those of usage."""

    reads = 0
    used = False
    away = False

    def notified(self, headers: Any, body: bytes) -> str | None:
        return iccid_of(headers, body, KEY)

    def usage(self, endpoint_id: str, *, timeout_s: float) -> Usage:
        self.reads += 1
        if self.away:
            raise Unavailable
        usage = super().usage(endpoint_id, timeout_s=timeout_s)
        at = usage.as_of - timedelta(minutes=1)
        return replace(usage, installed_at=at, first_used_at=at) if self.used else usage


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buyer]:
    directory, plain = tmp_path_factory.mktemp("signing"), providers.simulated

    def make(container: Container) -> SimulatedNetwork:
        network = plain(container)
        network.__class__ = Signing
        return network

    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(providers.NETWORKS, "simulated", make)
        sqlite_seed().copy(directory)
        service = Service(directory)
        networks = service.container.networks
        assert isinstance(networks.of(networks.names[0]), Signing)
    yield buyer(service.start())
    service.stop()


@pytest.fixture
def network(shop: Buyer) -> Signing:
    networks = shop.service.container.networks
    found = networks.of(networks.names[0])
    found.reads, found.used, found.away = 0, False, False
    return found


def send(shop: Buyer, body: bytes, headers: dict[str, str] | None = None, path: str = PATH) -> Any:
    given = signature(body) if headers is None else headers
    return shop.service.client.post(path, data=body, headers=given)


def about(iccid: object, remaining: int = 0) -> bytes:
    bundle = {"initialQuantity": 1_000_000_000, "remainingQuantity": remaining}
    return json.dumps({"iccid": iccid, "alertType": "Utilisation", "bundle": bundle}).encode()


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each notification make us look, however short ago we did."""
    monkeypatch.setattr(notifications, "FRESH", timedelta(0))


def test_a_link_that_was_read_just_now_is_not_read_again(shop: Buyer, network: Signing) -> None:
    link = shop.link()
    shop.read(link)
    before = network.reads
    for _ in range(3):
        assert send(shop, about(link["iccid"])).status_code == 204
    assert network.reads == before


@pytest.mark.usefixtures("looking")
@pytest.mark.parametrize("form", ["hex", "base64"])
def test_a_signed_notification_has_its_link_read_and_is_not_believed(
    shop: Buyer, network: Signing, form: str
) -> None:
    link, parts = shop.link(), shop.service.container
    body = about(link["iccid"], remaining=0)
    assert send(shop, body, signature(body, form=form)).status_code == 204
    known = parts.log.get(Link, UUID(link["id"]))
    assert (network.reads, known.first_used_at) == (1, None)
    assert shop.read(link).json["data"]["data_remaining_mb"] > 0
    network.used = True
    for _ in range(2):  # What was recorded and is sent again moves nothing.
        reply = send(shop, body)
        assert (reply.status_code, reply.data) == (204, b"")
        known, version = parts.log.get(Link, known.id), known.version
    assert known.first_used_at is not None
    assert known.installed_at is not None
    assert known.version == version
    reading = parts.readings.load([known.id])[known.id]
    assert reading.usage is not None
    assert reading.usage.first_used_at is not None


WRONG: list[dict[str, str]] = [{}, {"Authorization": "Bearer x"}]
WRONG += [{"X-Signature-SHA256": each} for each in ("", "0" * 64, "é")]


def test_what_the_network_has_not_signed_is_refused(shop: Buyer, network: Signing) -> None:
    link, before = shop.link(), network.reads
    body = about(link["iccid"])
    for headers in WRONG:
        refused = send(shop, body, headers)
        assert (refused.status_code, code_of(refused)) == (401, "UNAUTHORIZED")
        assert "WWW-Authenticate" in refused.headers
    assert network.reads == before
    other = send(shop, body, signature(body, key="another key"))
    changed = send(shop, body + b" ", signature(body))
    told = base64.b64decode(signature(body, form="base64")["X-Signature-SHA256"])
    shouted = send(shop, body, {"X-Signature-SHA256": base64.b64encode(told).decode().swapcase()})
    assert [each.status_code for each in (other, changed, shouted)] == [401] * 3


def test_a_signed_notification_about_no_link_of_ours_is_passed_over_and_a_large_one_refused(
    shop: Buyer, network: Signing
) -> None:
    bodies = [about("8944000000000000001")]  # Nobody's eSIM.
    bodies += [about(8944538532008160222), about("../8944000000000000001"), b"{}", b"", b"not JSON"]
    bodies += [b'{"alertType": "LowBalance"}', b'{"iccid": ["8944000000000000001"]}']
    before, most = network.reads, b" " * NOTIFICATION_BYTES_MAX
    for body in (*bodies, most):
        assert send(shop, body).status_code == 204, body
    assert send(shop, most + b" ").status_code == 413, "before it is read"
    assert network.reads == before


@pytest.mark.usefixtures("looking")
def test_a_network_that_cannot_be_read_is_to_be_told_again(shop: Buyer, network: Signing) -> None:
    link, network.away = shop.link(), True
    reply = send(shop, about(link["iccid"]))
    assert (reply.status_code, code_of(reply)) == (503, "NETWORK_UNAVAILABLE")
    assert reply.headers["Retry-After"]
