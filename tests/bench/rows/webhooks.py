"""Webhooks with a thousand endpoints and a hundred thousand deliveries that wait for them.

Every endpoint takes what it is told at once, so only what it costs us is measured.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from uuid import UUID, uuid4

from app.bootstrap.container import Container
from app.bootstrap.known_keys import ensure_keys
from domain.cause import utc_now
from domain.webhooks.commands import Draft
from domain.webhooks.ports import Delivery, Sent
from tests.bench.installation import cause, installation, new_organization
from tests.bench.row import Aim, Row

ORGANIZATIONS, EACH, WAITING = 100, 10, 100
TOLD = 500
BEATS = 20

_numbers = count()


class Accepting:
    """Every endpoint takes what it is told."""

    @staticmethod
    def send(url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        assert url
        assert headers
        assert body
        return Sent(200, None, 1)


@contextmanager
def prepared() -> Iterator[tuple[Container, UUID]]:
    """Make the endpoints, and what waits for them."""
    with installation() as container:
        vars(container)["webhook_sender"] = Accepting()
        ensure_keys(container)
        container.webhook_planner.step()
        owners = [new_organization(container) for _ in range(ORGANIZATIONS)]
        for owner in owners:
            ids = [_endpoint(container, owner) for _ in range(EACH)]
            with container.views.writing() as connection:
                waiting = [_waiting(owner, each) for each in ids for _ in range(WAITING)]
                container.webhook_deliveries.plan(connection, waiting)
        _plan(container)
        yield container, new_organization(container)


def measure(container: Container, owner: UUID) -> Iterator[Row]:
    began_s = time.monotonic()
    for _ in range(BEATS):
        assert len(container.webhook_deliveries.due(container.clock())) >= ORGANIZATIONS * EACH
    beat_ms = (time.monotonic() - began_s) * 1e3 / BEATS
    yield Row("a beat over 1,000 endpoints", beat_ms, 1_000, "ms", Aim(ratio_max=0.1))
    endpoint_id = _endpoint(container, owner)
    _plan(container)
    for _ in range(TOLD):
        container.accounts.deposit(owner, 1, f"told-{next(_numbers)}", cause())
    container.projector.catch_up()
    began_s = time.monotonic()
    _plan(container)
    plan_ms = (time.monotonic() - began_s) * 1e3 / TOLD
    yield Row("an event planned for one endpoint", plan_ms, 2.0, "ms", Aim(ratio_max=1.0))
    began_s, worked_s = time.monotonic(), time.process_time()
    while container.webhook_deliveries.page(owner, endpoint_id, 0, 1)[0][0].status == "pending":
        container.webhook_work.tell(owner, endpoint_id)
    wall_ms, spent_ms = time.monotonic() - began_s, time.process_time() - worked_s
    yield Row("a delivery, by one thread", wall_ms * 1e3 / TOLD, 20, "ms", Aim(ratio_max=1.0))
    yield Row("its processor time", spent_ms * 1e3 / TOLD, 10, "ms", Aim(ratio_max=1.0))


def _plan(container: Container) -> None:
    container.projector.catch_up()
    while container.webhook_planner.step():
        pass


def _endpoint(container: Container, owner: UUID) -> UUID:
    draft = Draft(owner, "https://a.example/hooks", None, None, None)
    return container.webhooks.register(draft, cause())[0].id


def _waiting(owner: UUID, endpoint_id: UUID) -> Delivery:
    """Return a delivery that is due and waits."""
    facts = {"about": uuid4(), "position": 1, "type": "link.activated", "body": b"{}" * 200}
    told = dict.fromkeys(("attempted_at", "response_status", "duration_ms", "error"))
    now = utc_now()
    return Delivery(
        id=uuid4(),
        endpoint_id=endpoint_id,
        organization_id=owner,
        created_at=now,
        status="pending",
        attempts=0,
        retries=0,
        next_attempt_at=now,
        **facts,
        **told,
    )
