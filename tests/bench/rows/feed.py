"""Pages of events, and each of their events, beside the read of one transaction by its key.

What counts is the processor time of this process and of the database, without a network.
"""

import os
from collections.abc import Callable, Iterator
from itertools import cycle
from statistics import median
from typing import Any
from uuid import UUID, uuid4

from flask.testing import FlaskClient

from app.bootstrap.container import Container
from app.http.application import create_app
from app.http.webhooks.events import cursor_at
from domain.webhooks.commands import Draft
from domain.webhooks.endpoint import WebhookRequest
from tests.bench.installation import Partner, cause, installation, new_partner
from tests.bench.measure import in_turns
from tests.bench.processor import us_each
from tests.bench.row import Aim, Row

EVENTS = 20_000
AT_ONCE = 500
PAGE = 100
CALLS, REPEATS = 200, 5


def measure() -> Iterator[Row]:
    with installation() as container:
        container.webhook_key.ensure()
        partner = new_partner(container)
        _append(container, partner.organization)
        container.projector.catch_up()
        get = _reader(create_app(container).test_client(), partner)
        (entry,) = get("/v1/transactions?per_page=1")["data"]
        after = cycle(_cursors(container, partner.organization))
        sides = [
            lambda: get(f"/v1/events?limit={PAGE}&after={next(after)}"),
            lambda: get(f"/v1/events?limit={PAGE}&after={next(after)}&types=webhook.test"),
            lambda: get(f"/v1/transactions/{entry['id']}"),
        ]
        page, typed, key = map(median, in_turns(*map(_costs, sides), repeats=REPEATS))
    yield Row(f"a page of {PAGE} events, beside a read by key", page, key, "µs", Aim(ratio_max=3))
    yield Row("the same of one type", typed, key, "µs", Aim(ratio_max=3))
    name = "an event of such a page, beside a read by key"
    yield Row(name, page / PAGE, key, "µs", Aim(ratio_max=0.03))


def _costs(call: Callable[[], object]) -> Callable[[], float]:
    return lambda: us_each(CALLS, [os.getpid()], lambda: [call() for _ in range(CALLS)])


def _reader(client: FlaskClient, partner: Partner) -> Callable[[str], Any]:
    headers = {"Authorization": f"Bearer {partner.token}"}

    def get(path: str) -> Any:
        reply = client.get(path, headers=headers)
        assert reply.status_code == 200, reply.text
        return reply.get_json()["data"] if "per_page" in path else len(reply.data)

    return get


def _append(container: Container, organization: UUID) -> None:
    """Append tests of an endpoint, which are one event each."""
    draft = Draft(organization, "https://hooks.example/", None, ["link.failed"], None)
    endpoint, _ = container.webhooks.register(draft, cause())
    kind = WebhookRequest.TestAsked
    for _ in range(EVENTS // AT_ONCE):
        made = [WebhookRequest.make(kind, uuid4(), endpoint, cause()) for _ in range(AT_ONCE)]
        container.log.append(*made)


def _cursors(container: Container, organization: UUID) -> list[str]:
    """Return cursors all over the events."""
    head = container.log.head() - PAGE
    return [cursor_at(organization, position) for position in range(10, head, head // 50)]
