"""The order of the checks, where it is one operation's own; `test_every_operation` has the rest."""

from typing import Any
from uuid import UUID

import pytest

from domain.links.link import Link
from tests.app.http.buying import FREE, LINKS, buyer
from tests.app.http.service import Service

pytestmark = pytest.mark.any_database

BAD_BODY = {"data": b"{", "headers": {"Content-Type": "application/json"}}
LARGE = {"data": b" " * 2_000_000, "headers": {"Content-Type": "application/json"}}
FOREIGN = {"data": b"x", "headers": {"Content-Type": "text/plain"}}


READS = ("", "/network-status?live=true", "/history", "/topup-plans")


@pytest.mark.parametrize(
    ("wrong", "status"), [(BAD_BODY, 400), (LARGE, 413), (FOREIGN, 415)], ids=["400", "413", "415"]
)
def test_a_read_refuses_a_body_before_it_asks_the_network(
    service: Service, wrong: dict[str, Any], status: int
) -> None:
    shop = buyer(service)
    link, log = shop.link(FREE), service.container.log
    version = log.get(Link, UUID(link["id"])).version
    service.container.bare_network.deactivate(log.get(Link, UUID(link["id"])).endpoint_id)
    for more in READS:
        assert shop.get(f"{LINKS}/{link['id']}{more}", **wrong).status_code == status, more
        assert shop.get(f"{LINKS}/none{more}", **wrong).status_code == 404, more
    assert service.container.readings.find([UUID(link["id"])])[UUID(link["id"])].status is None
    assert log.get(Link, UUID(link["id"])).version == version
