"""Reads the values that operators watch, for `app/watch/gauges.py` and `doctor`."""

from collections import Counter
from collections.abc import Callable, Mapping
from math import inf, nan
from typing import TYPE_CHECKING, get_args

import msgspec
from prometheus_client.core import Metric
from sqlalchemy import func, select, text

from app.adapters.circuit import GuardedNetwork
from app.watch.gauges import (
    AUDITING,
    WITH_BROKER,
    WORKING,
    Asker,
    AuditState,
    ProcessName,
    WebhookState,
    behind_s,
    show_audit,
    show_database,
    show_followers,
    show_providers,
    show_queues,
    show_readings,
    show_webhooks,
    show_work,
)
from domain.errors import ServiceUnavailable
from domain.webhooks.endpoint import DisabledReason
from projections.audit.covering import ChangedCheckpoint
from projections.engine.database import from_micros
from projections.engine.positions import Lag, lags
from workers.routes import QUEUES

if TYPE_CHECKING:
    from app.bootstrap.container import Container


CONNECTIONS = """
    SELECT (SELECT sum(numbackends)::int FROM pg_stat_database),
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
"""
# No rows for a role that may not read the statistics of others.
STANDBYS = """
    SELECT concat_ws('@', application_name, host(client_addr)),
    max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)) FROM pg_stat_replication
    WHERE state IN ('streaming', 'catchup') AND replay_lsn IS NOT NULL GROUP BY 1
"""


class Observed:
    """Answers from the parts of a process; raises while a database or broker is out of reach."""

    def __init__(self, parts: "Container") -> None:
        self._parts = parts

    def watch(self, parts: "Container") -> None:
        """Answer from the parts of another container from now on."""
        self._parts = parts

    def askers(self, role: ProcessName) -> list[Asker[list[Metric]]]:
        """Return the questions of a process."""
        parts: dict[str, Callable[[], list[Metric]]] = {
            "followers": lambda: show_followers(self.follower_lags()),
            "work": lambda: show_work(*self.ages()),
        }
        if role in WITH_BROKER:
            parts["broker"] = lambda: show_queues(self.queue_states())
        if role in AUDITING:
            parts["audit"] = lambda: show_audit(self.audit_state())
            parts["database"] = lambda: show_database(*self.database_load())
            parts["readings"] = lambda: show_readings(self.reading_ages())
            parts["webhooks"] = lambda: show_webhooks(self.webhook_state())
        if role in WORKING:
            parts["provider"] = lambda: show_providers(self.providers_up())
        return [Asker(name, ask) for name, ask in parts.items()]

    def follower_lags(self) -> list[tuple[Lag, float | None]]:
        self._require_database()
        parts = self._parts
        known = lags(parts.log, parts.views, parts.positions)
        return [(lag, behind_s(parts.log, lag, parts.clock())) for lag in known]

    def ages(self) -> tuple[float, float, float]:
        """Return the ages of the oldest job, of its last progress, and of the oldest link."""
        self._require_database()
        parts, now = self._parts, self._parts.clock()
        jobs = parts.jobs.jobs.c
        begun_at = select(func.min(jobs.created_at)).where(jobs.finished_at.is_(None))
        with parts.views.reading() as connection:
            idle = parts.jobs.unfinished(connection, now, 1)
            job_at = connection.execute(begun_at).scalar_one()
            link_at = parts.unfinished.oldest(connection)
        return (
            0.0 if job_at is None else (now - from_micros(job_at)).total_seconds(),
            max(0.0, (now - idle[0].moved_at).total_seconds()) if idle else 0.0,
            0.0 if link_at is None else (now - link_at).total_seconds(),
        )

    def reading_ages(self) -> Mapping[str, float]:
        self._require_database()
        parts, now = self._parts, self._parts.clock()
        if not parts.settings.readings_refresh_s:
            return {}
        oldest = parts.reading_turns.oldest(parts.networks.names)
        return {name: (now - at).total_seconds() for name, at in oldest.items()}

    def audit_state(self) -> AuditState:
        self._require_database()
        parts, now = self._parts, self._parts.clock()
        first = parts.log.read(0, 1)
        begun_at = first[0].event.timestamp if first else now
        audit, backup = parts.notes.newest("audit"), parts.notes.newest("backup")
        outside_s = None
        if parts.settings.checkpoint_sink:
            store = parts.checkpoint_store
            try:
                kept = store.newest(delivered=True) or store.covering(0)
                outside_at = kept.signed.checkpoint.at if kept else begun_at
                outside_s = (now - outside_at).total_seconds()
            except ChangedCheckpoint:
                outside_s = inf  # A changed checkpoint does not tell what was delivered.
        return AuditState(
            age_s=(now - (audit.at if audit else begun_at)).total_seconds(),
            failures=len(msgspec.json.decode(audit.value)["failures"]) if audit else 0,
            outside_s=outside_s,
            months_overdue=len(parts.month_end.overdue()),
            backup_s=(now - (backup.at if backup else begun_at)).total_seconds(),
        )

    def database_load(self) -> tuple[float, float, Mapping[str, int]]:
        """Return the connections, how many there may be, and how far each standby is behind."""
        self._require_database()
        with self._parts.views.reading() as connection:
            if connection.dialect.name != "postgresql":
                return nan, nan, {}
            used, most = connection.execute(text(CONNECTIONS)).one()
            behind = {name: int(lag) for name, lag in connection.execute(text(STANDBYS))}
        return used, most, behind

    def webhook_state(self) -> WebhookState:
        self._require_database()
        parts = self._parts
        pending, since = parts.webhook_deliveries.backlog()
        late_s = 0.0 if since is None else (parts.clock() - since).total_seconds()
        with parts.views.reading() as connection:
            rows = parts.webhook_endpoints.all(connection)
        disabled = Counter(each.disabled for each in rows if each.disabled is not None)
        known = {reason: disabled[reason] for reason in get_args(DisabledReason)}
        return WebhookState(pending, max(0.0, late_s), known)

    def queue_states(self) -> list[tuple[str, int, int]]:
        try:
            return self._queue_states()
        except Exception:  # noqa: BLE001  # The broker closes a connection that was idle for long.
            return self._queue_states()

    def _queue_states(self) -> list[tuple[str, int, int]]:
        broker = self._parts.broker
        return [(name, broker.backlog(name), broker.dead(name)) for name in QUEUES]

    def providers_up(self) -> Mapping[tuple[str, str], bool]:
        parts = self._parts
        found = {("lookup_provider_up", each.name): each.is_up() for each in parts.lookups}
        for name in parts.networks.names:
            network = parts.networks.of(name)
            is_up = not isinstance(network, GuardedNetwork) or network.is_up()
            found["network_provider_up", name] = is_up
        for _, name in [*found]:
            found["provider_drained", name] = parts.drains.has(name)
        return found

    def _require_database(self) -> None:
        """Raise if there is no database, because opening a SQLite file would create it."""
        if not self._parts.persistence.exists():
            raise ServiceUnavailable
