"""What the phone asks for when an eSIM is installed: told to the partner, sealed, never logged."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.cause import utc_now
from tests.app.http.buying import LINKS, buyer
from tests.app.http.links.test_odd_esims import PACKAGE, AiraloShop
from tests.app.http.service import Service
from tests.seeds import sqlite_seed
from tests.support.providers.airalo import CLIENT_ID, CLIENT_SECRET, AiraloServer
from tests.support.providers.server import Request

TOLD = {"4711-A": "4711-A", 1234: "1234", " ": None, None: None}


@pytest.fixture
def server() -> Iterator[AiraloServer]:
    with AiraloServer(utc_now) as made:
        made.offer(PACKAGE)
        yield made


@pytest.fixture
def airalo(server: AiraloServer, tmp_path: Path) -> Iterator[Service]:
    sqlite_seed().copy(tmp_path)
    running = Service(
        tmp_path,
        NETWORK_PROVIDER="airalo",
        SANDBOX="false",
        AIRALO_URL=server.url,
        AIRALO_CLIENT_ID=CLIENT_ID,
        AIRALO_CLIENT_SECRET=CLIENT_SECRET,
    ).start()
    yield running
    running.stop()


def test_the_code_of_an_esim_reaches_its_partner_and_no_log_line(
    airalo: Service, server: AiraloServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shop, codes = AiraloShop(airalo.tenant(), server), iter(TOLD)
    code: Any = None

    def tell(_: Request, told: Any) -> Any:
        if "confirmation_code" in told.get("data", {}):
            told["data"]["confirmation_code"] = code
        return told

    server.mangle = tell
    made = {}
    for code in codes:
        made[shop.link()["id"]] = TOLD[code]
    code = "another"  # What was told first is kept.
    assert {each: shop.read({"id": each})["confirmation_code"] for each in made} == made
    airalo.until_projected("links")
    listed = shop.get(LINKS).json["data"]["data"]
    assert {each["id"]: each["confirmation_code"] for each in listed} == made
    log = airalo.container.log
    stored = b"".join(log.mapper.to_stored_event(each.event).state for each in log.read(0, 999))
    assert b"4711-A" not in stored
    assert "4711-A" not in " ".join(f"{each.getMessage()} {vars(each)}" for each in caplog.records)


def test_it_is_fetched_with_a_code_that_was_missing_at_the_activation(
    airalo: Service, server: AiraloServer
) -> None:
    shop = AiraloShop(airalo.tenant(), server)

    def tell(_: Request, told: Any) -> Any:
        if "confirmation_code" in told.get("data", {}):
            told["data"] |= {"confirmation_code": "4711-A"} | ({} if known else {"iccid": "8"})
        return told

    known = False
    server.mangle = tell
    link = shop.link()
    assert (link["lpa_profile"], link["confirmation_code"]) == (None, None)
    known = True
    for _ in range(2):
        read = shop.read(link)
        assert (read["confirmation_code"], bool(read["lpa_profile"])) == ("4711-A", True)


def test_a_simulated_phone_asks_for_four_digits_if_the_iccid_ends_in_0(service: Service) -> None:
    shop = buyer(service)
    network: Any = service.container.network
    links = [shop.link() for _ in range(4)]
    for link in links:
        code = network.lpa(link["iccid"], timeout_s=5.0)
        assert (link["lpa_profile"], link["confirmation_code"]) == (
            code.lpa,
            code.confirmation_code,
        )
        assert (link["confirmation_code"] is not None) is link["iccid"].endswith("0")
