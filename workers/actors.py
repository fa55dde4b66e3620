"""Dramatiq actors: thin shells that turn a message into a call of a service."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import dramatiq
from dramatiq import Broker

from workers.fees import MonthlyFees
from workers.links import Provisioning
from workers.lookup_turns import LookupTurns
from workers.plan_changes import PlanChanges

# The log and the sweep repeat work. The broker may try once more at once, not for days.
RETRIES_MAX = 1
RETRY_MS = 500

logger = logging.getLogger(__name__)


RETRIES: dict[str, Any] = {
    "max_retries": RETRIES_MAX,
    "min_backoff": RETRY_MS,
    "max_backoff": RETRY_MS,
}


@dataclass(frozen=True)
class Services:
    """What actors call, made when the first message comes: who only publishes needs none of it."""

    lookup_turns: Callable[[], LookupTurns]
    provisioning: Callable[[], Provisioning]
    plan_changes: Callable[[], PlanChanges]
    monthly_fees: Callable[[], MonthlyFees]


def register(broker: Broker, services: Services) -> None:
    """Declare every actor at a broker."""

    @dramatiq.actor(broker=broker, queue_name="lookup", **RETRIES)
    def work_slice(job_id: str, slice_index: int) -> None:
        services.lookup_turns().answer(UUID(job_id), slice_index)

    @dramatiq.actor(broker=broker, queue_name="provision", **RETRIES)
    def work_link(link_id: str) -> None:
        services.provisioning().work(UUID(link_id))

    @dramatiq.actor(broker=broker, queue_name="provision", **RETRIES)
    def work_plan_change(change_id: str) -> None:
        services.plan_changes().work(UUID(change_id))

    @dramatiq.actor(broker=broker, queue_name="billing", **RETRIES)
    def charge_fees() -> None:
        services.monthly_fees().run()
