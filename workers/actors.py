"""Dramatiq actors: thin shells that turn a message into a call of a service."""

from collections.abc import Callable
from typing import Any, Protocol
from uuid import UUID

import dramatiq
from dramatiq import Broker

from workers.driving import Driving
from workers.fees import MonthlyFees
from workers.routes import Queue
from workers.webhooks import WebhookWork
from workers.work import Work


class Services(Protocol):
    """What actors call; made at the first message, because a mere publisher needs none of it."""

    @property
    def due_work(self) -> Work: ...
    @property
    def provisioning(self) -> Driving: ...
    @property
    def plan_changes(self) -> Driving: ...
    @property
    def lost_orders(self) -> Driving: ...
    @property
    def monthly_fees(self) -> MonthlyFees: ...
    @property
    def webhook_work(self) -> WebhookWork: ...


def register(broker: Broker, services: Services, is_shut: Callable[[], bool]) -> None:
    """Declare the actors; while the gate is shut they do nothing, and beats ask again."""

    def declare(name: str, queue: Queue, work: Callable[..., object]) -> None:
        def run(*arguments: Any) -> None:
            if not is_shut():
                work(*arguments)

        actor = dramatiq.actor(actor_name=name, broker=broker, queue_name=queue)
        actor(run)

    def endpoints(organization_id: str, endpoint_id: str) -> None:
        services.webhook_work.deliver(UUID(organization_id), UUID(endpoint_id))

    def fees() -> None:
        services.monthly_fees.run()

    declare("work_slice", "lookup", lambda job, index: services.due_work.answer(UUID(job), index))
    declare("work_link", "provision", lambda it: services.provisioning.work(UUID(it)))
    declare("work_plan_change", "provision", lambda it: services.plan_changes.work(UUID(it)))
    declare("work_lost_order", "provision", lambda it: services.lost_orders.work(UUID(it)))
    declare("charge_fees", "billing", fees)
    declare("tell_endpoint", "webhook", endpoints)
