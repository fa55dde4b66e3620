"""Usage that nobody reads: the clock of a service knows it, and so do its lists."""

from datetime import timedelta
from uuid import UUID

from domain.catalogue.plan import SIMULATED
from domain.links.link import Link
from tests.app.http.buying import LINKS, Buyer, buyer
from tests.app.http.conftest import MakeService
from tests.app.http.service import Service
from tests.installation import wait_until


def told(service: Service, link_id: str) -> list[str]:
    link = service.container.log.get(Link, UUID(link_id))
    (activation,) = link.activations
    shares = {each for each in (50, 80, 100) if each <= link.usage_told.get(activation, 0)}
    return [*map(str, sorted(shares)), *(["ends"] if activation in link.expiry_told else [])]


def in_list(shop: Buyer) -> dict[str, object]:
    (item,) = shop.get(LINKS).json["data"]["data"]
    return dict(item)


def test_an_aged_network_is_seen_in_lists_and_told_without_a_reader(
    make_service: MakeService,
) -> None:
    service = make_service().start()
    container = service.container
    shop = buyer(service)
    link = shop.link()
    service.until_projected("links")
    wait_until(lambda: container.reading_turns.newest() > 0)
    assert in_list(shop)["data_used_mb"] == 0.0

    container.simulated_clock.advance(timedelta(days=6, hours=12))
    container.reading_turns.hasten(SIMULATED)

    wait_until(lambda: told(service, link["id"]) == ["50", "80", "100", "ends"])
    service.until_projected("links")
    wait_until(lambda: in_list(shop)["data_remaining_mb"] == 0.0)
    assert in_list(shop)["installed_at"] is not None
    assert in_list(shop)["first_used_at"] is not None


def test_without_it_nobody_reads(make_service: MakeService) -> None:
    service = make_service(READINGS_REFRESH_S="0").start()
    shop = buyer(service)
    shop.link()
    service.until_projected("links")
    assert service.container.reading_turns.newest() == 0
    assert service.container.observed.reading_ages() == {}
