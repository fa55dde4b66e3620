"""Every place where a process is killed: commits, publishing, provider calls, acks, positions."""

import random
from collections import deque
from collections.abc import Mapping, Sequence

from tests.faults.failpoints import WHENS, Failpoint
from tests.faults.programme import Lane

PLACES: Mapping[str, Sequence[str]] = {
    "web": (
        "commit number_lookup.answered",
        "commit bulk_job.created",
        "commit bulk_job.cancelled",
        "commit link.requested",
        "commit plan_change.requested",
        "commit link.status_requested",
        "commit link.suspended",
        "commit link.end_requested",
        "commit link.ended",
        "look up",
        "network suspend",
        "network remove_endpoint",
    ),
    "worker": (
        "commit bulk_job.slice_started",
        "commit bulk_job.items_completed",
        "commit bulk_job.items_failed",
        "commit link.esim_reserved",
        "commit link.endpoint_requested",
        "commit link.activated",
        "commit link.provisioning_failed",
        "commit link.endpoint_found",
        "commit link.endpoint_removed",
        "commit link.esim_released",
        "commit plan_change.plan_addition_started",
        "commit plan_change.plan_addition_done",
        "commit plan_change.plan_removal_started",
        "commit plan_change.plan_removal_done",
        "commit plan_change.failed",
        "commit monthly_fee.due",
        "commit monthly_fee.charged",
        "look up",
        "network available_esims",
        "network lpa",
        "network create_endpoint",
        "network find_endpoint",
        "network remove_endpoint",
        "network release_esim",
        "network add_plan",
        "network remove_plan",
        "ack",
    ),
    "dispatcher": ("publish", "position"),
    "projector": ("position",),
    "clock": ("publish", "position"),
}
WORKER_LANES = 3  # One more than there are workers: now and then none is left for a moment.
PASSAGE_MAX = 3


def lanes(times: int, seed: int) -> list[Lane]:
    """Return each failpoint so many times, in an order and at passages that the seed decides."""
    chance = random.Random(seed)
    of_worker = _failpoints("worker", times, chance)
    others = [
        _failpoints("web", times, chance),
        [
            p
            for role in ("dispatcher", "projector", "clock")
            for p in _failpoints(role, times, chance)
        ],
    ]
    split = [of_worker[start::WORKER_LANES] for start in range(WORKER_LANES)]
    return [
        Lane(deque((point, chance.randint(1, PASSAGE_MAX)) for point in points))
        for points in [*split, *others]
    ]


def _failpoints(role: str, times: int, chance: random.Random) -> list[Failpoint]:
    points = [Failpoint(role, place, when) for place in PLACES[role] for when in WHENS] * times
    chance.shuffle(points)
    return points
