"""The read of a link with its usage of this moment, against the network's own `usage`."""

from collections.abc import Iterator
from functools import partial
from itertools import cycle
from uuid import UUID

from app.bootstrap.container import Container
from domain.links.create import LinkRequest
from domain.links.link import Link
from tests.bench.installation import cause
from tests.bench.measure import all_times, each_ms, percentile
from tests.bench.partners import new_partner
from tests.bench.reads import reader_of
from tests.bench.row import Aim, Row
from tests.bench.rows.bulk_items import running
from tests.plan_files import import_plans, plan, stored

LINKS = 10
READS = 20
REPEATS = 11
CALL_S = 5.0


def measure() -> Iterator[Row]:
    with running() as container:
        partner = new_partner(container)
        links = _bought(container, partner.organization)
        reader, network = reader_of(container, partner), container.network
        paths = cycle([f"/v1/links/{link.id}" for link in links])
        endpoints = cycle([link.endpoint_id or "" for link in links])
        ours, limit = all_times(
            partial(each_ms, READS, lambda: reader.read(next(paths))),
            partial(each_ms, READS, lambda: network.usage(next(endpoints), timeout_s=CALL_S)),
            repeats=REPEATS,
        )
    yield Row(
        "read of a link with live usage", percentile(ours, 50), percentile(limit, 50), "ms", Aim()
    )


def _bought(container: Container, organization: UUID) -> list[Link]:
    """Buy links as partners do, so that the network knows their endpoints."""
    import_plans(container, plan())
    container.projector.catch_up()
    request = LinkRequest(organization, stored(container).id, "Device", None)
    return [container.link_create.run(request, cause())[0] for _ in range(LINKS)]
