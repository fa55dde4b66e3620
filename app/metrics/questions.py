"""What is asked at each scrape: how far followers are, what waits, and for how long."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from prometheus_client.core import GaugeMetricFamily, Metric

from app.metrics.asking import Asker
from app.metrics.roles import WITH_BROKER, WORKING, Role
from projections.engine.health import Lag


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many messages of a queue wait, and how many were given up."""

    name: str
    messages: int
    dead: int


@dataclass(frozen=True, slots=True)
class Ages:
    """For how many seconds the oldest unfinished work has lasted or not moved; 0 for none."""

    job_s: float
    job_idle_s: float
    link_s: float


class Watched(Protocol):
    """What is asked; every method may raise, or hang while a database is away."""

    def follower_lags(self) -> list[tuple[Lag, float | None]]:
        """How far each follower is behind, and for how many seconds, where that can be told."""
        ...

    def ages(self) -> Ages:
        """How old unfinished work is."""
        ...

    def queue_states(self) -> list[QueueState]:
        """What waits in each queue."""
        ...

    def provider_is_up(self) -> bool:
        """Whether lookups are let through to the provider."""
        ...


def askers(watched: Watched, role: Role) -> list[Asker[list[Metric]]]:
    """Return the questions of a process."""
    parts: dict[str, Callable[[], list[Metric]]] = {
        "followers": lambda: _followers(watched.follower_lags()),
        "work": lambda: _work(watched.ages()),
    }
    if role in WITH_BROKER:
        parts["broker"] = lambda: _queues(watched.queue_states())
    if role in WORKING:
        parts["provider"] = lambda: [provider_up(up=watched.provider_is_up())]
    return [Asker(name, ask) for name, ask in parts.items()]


def provider_up(*, up: bool) -> Metric:
    """Return the state of the circuit."""
    return GaugeMetricFamily("lookup_provider_up", "0 while the circuit is open.", float(up))


def _followers(lags: Iterable[tuple[Lag, float | None]]) -> list[Metric]:
    events = GaugeMetricFamily("follower_lag_events", "Events left to follow.", labels=["name"])
    seconds = GaugeMetricFamily(
        "follower_lag_seconds", "Since when it has not been at the end.", labels=["name"]
    )
    failed = GaugeMetricFamily("follower_failed", "1 when it has stopped.", labels=["name"])
    for lag, lag_s in lags:
        events.add_metric([lag.name], lag.events)
        failed.add_metric([lag.name], float(lag.failure is not None))
        if lag_s is not None:
            seconds.add_metric([lag.name], lag_s)
    return [events, seconds, failed]


def _work(ages: Ages) -> list[Metric]:
    return [
        GaugeMetricFamily(
            "oldest_unfinished_job_seconds", "Age of the oldest unfinished job.", ages.job_s
        ),
        GaugeMetricFamily(
            "oldest_unfinished_job_idle_seconds",
            "Since when the longest idle unfinished job has not moved.",
            ages.job_idle_s,
        ),
        GaugeMetricFamily(
            "oldest_unfinished_link_seconds",
            "Age of the oldest unfinished link or change of its plans or status.",
            ages.link_s,
        ),
    ]


def _queues(states: Iterable[QueueState]) -> list[Metric]:
    waiting = GaugeMetricFamily(
        "queue_messages", "Messages that wait for a worker.", labels=["queue"]
    )
    dead = GaugeMetricFamily(
        "queue_dead_messages", "Messages that were given up.", labels=["queue"]
    )
    for state in states:
        waiting.add_metric([state.name], state.messages)
        dead.add_metric([state.name], state.dead)
    return [waiting, dead]
