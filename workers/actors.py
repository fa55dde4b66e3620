"""Dramatiq actors: thin shells that turn a message into a call of a service."""

import logging
from uuid import UUID

import dramatiq
from dramatiq import Broker

from workers.bulk_lookup import BulkLookup

# The log and the sweep repeat work. The broker may try once more at once, not for days.
RETRIES_MAX = 1
RETRY_MS = 500

logger = logging.getLogger(__name__)


def register(broker: Broker, bulk_lookup: BulkLookup) -> None:
    """Declare every actor at a broker."""

    @dramatiq.actor(
        broker=broker,
        queue_name="lookup",
        actor_name="work_slice",
        max_retries=RETRIES_MAX,
        min_backoff=RETRY_MS,
        max_backoff=RETRY_MS,
    )
    def work_slice(job_id: str, slice_index: int) -> None:
        bulk_lookup.work(UUID(job_id), slice_index)
