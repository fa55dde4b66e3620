"""No line of ours names an eSIM, its activation code or its number, whatever happens to it."""

import logging

import pytest

from app.adapters.networks.simulated.identifiers import msisdn_of
from app.adapters.networks.simulated.network import Fault
from tests.app.http.buying import FREE, LINKS, MORE, Buyer, buyer
from tests.app.http.service import Service

pytestmark = pytest.mark.any_database


def everything(shop: Buyer, iccid: str) -> list[int]:
    """Call each operation on a link by its ICCID, well and badly; return the statuses."""
    path = f"{LINKS}/{iccid}"
    plans = {name: {"add": [shop.plans[name]]} for name in (FREE, MORE, Fault.PROVIDER_ERROR.value)}
    replies = [
        shop.get(path),
        shop.get(f"{path}/"),
        shop.get(f"{path}x"),
        shop.get(f"{path}/network-status?live=x"),
        shop.get(f"{path}/network-status?live=1"),
        shop.get(f"{path}/history"),
        shop.get(f"{path}/topup-plans"),
        shop.get(LINKS, query_string={"search": iccid}),
        shop.get(LINKS, query_string={"search": msisdn_of(iccid)}),
        *(shop.open("PUT", f"{path}/plans", json=body) for body in plans.values()),
        shop.open("PUT", f"{path}/plans", json={"add": [iccid]}),
        shop.post(f"{path}/suspend"),
        shop.post(f"{path}/reactivate"),
        shop.post(f"{path}/suspend", json={iccid: 1}),
        shop.post(path),
        shop.service.client.get(path),
    ]
    return [reply.status_code for reply in replies]


def test_no_line_names_what_must_not_be_logged(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    shop = buyer(service)
    caplog.set_level(logging.DEBUG)
    links = [shop.link(), shop.link(Fault.UNREACHABLE.value), shop.link(Fault.LOST_REPLY.value)]
    statuses = [status for link in links for status in everything(shop, link["iccid"])]
    assert {200, 401, 404, 405, 422, 502, 503} <= set(statuses)
    written = [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert len(written) >= len(statuses)
    for link in links:
        for canary in (link["iccid"], link["lpa_profile"], msisdn_of(link["iccid"])[1:]):
            assert not [line for line in written if canary in line], canary


def test_an_error_that_nobody_expected_names_nothing_either(
    service: Service, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = buyer(service)
    link = shop.link(FREE)

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError(link["iccid"], link["lpa_profile"])

    monkeypatch.setattr(service.container.network, "usage", fail)
    reply = shop.get(f"{LINKS}/{link['iccid']}")
    assert reply.status_code == 500
    assert link["iccid"] not in reply.text
    assert "ZeroDivisionError" in caplog.text
    assert link["iccid"] not in caplog.text
    assert link["lpa_profile"] not in caplog.text
