"""Reads the values that operators watch, for `app/watch/gauges.py` and `doctor`."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from math import inf, nan
from typing import TYPE_CHECKING, get_args

import msgspec
from sqlalchemy import func, select, text

from app.adapters.circuit import GuardedNetwork
from app.watch.gauges import (
    AUDITING,
    DECIDING,
    PROVIDER_GAUGES,
    WITH_BROKER,
    ProcessName,
    SharedQuery,
    Values,
    behind_s,
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
# Every role may read these. A slot never used has no status; one that is lost keeps nothing, NULL.
SLOTS = """
    SELECT slot_name, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)
    FROM pg_replication_slots WHERE NOT active AND wal_status IS NOT NULL
"""


class Observed:
    """Answers from the parts of a process; raises while a database or broker is out of reach."""

    def __init__(self, parts: "Container") -> None:
        self._parts = parts

    def watch(self, parts: "Container") -> None:
        """Answer from the parts of another container from now on."""
        self._parts = parts

    def queries(self, role: ProcessName) -> list[SharedQuery[Values]]:
        parts: dict[str, Callable[[], Values]] = {"followers": self.followers, "work": self.work}
        if role in WITH_BROKER:
            parts["broker"] = self.queues
        if role in AUDITING:
            parts |= {"audit": self.audit, "database": self.database_load}
            parts |= {"readings": self.readings, "webhooks": self.webhooks}
        if role in DECIDING:
            parts["provider"] = self.providers_up
        return [SharedQuery(name, read) for name, read in parts.items()]

    def follower_lags(self) -> list[tuple[Lag, float | None]]:
        parts = self._opened()
        known = lags(parts.source)
        return [(lag, behind_s(parts.log, lag, parts.clock())) for lag in known]

    def followers(self) -> Values:
        found = self.follower_lags()
        return {
            "follower_lag_events": {lag.name: lag.behind for lag, _ in found},
            "follower_lag_seconds": {lag.name: s for lag, s in found if s is not None},
            "follower_failed": {lag.name: float(lag.failure is not None) for lag, _ in found},
        }

    def work(self) -> Values:
        parts, now = self._opened(), self._parts.clock()
        jobs = parts.jobs.jobs.c
        oldest = select(func.min(jobs.created_at), func.min(jobs.moved_at))
        with parts.views.reading() as connection:
            found = connection.execute(oldest.where(jobs.finished_at.is_(None))).one()
            link_at = parts.due_list.oldest(connection)
        job_at, moved_at = map(from_micros, found)
        return {
            "oldest_unfinished_job_seconds": _age_s(now, job_at),
            "oldest_unfinished_job_idle_seconds": max(0.0, _age_s(now, moved_at)),
            "oldest_unfinished_link_seconds": _age_s(now, link_at),
        }

    def readings(self) -> Values:
        parts, now = self._opened(), self._parts.clock()
        oldest: Mapping[str, datetime] = {}
        if parts.settings.readings_refresh_s:
            oldest = parts.reading_schedule.oldest(parts.networks.names)
        return {"oldest_reading_seconds": {name: _age_s(now, at) for name, at in oldest.items()}}

    def audit(self) -> Values:
        """Return ages of audit, delivered checkpoint and backup, and what the audit has found.

        Until there is a first one, the age is that of the log, so that an alert fires on none as
        well. That of the checkpoint is NaN without a sink, so that none fires.
        """
        parts, now = self._opened(), self._parts.clock()
        first = parts.log.read(0, 1)
        started_at = first[0].event.timestamp if first else now
        audit, backup = parts.notes.newest("audit"), parts.notes.newest("backup")
        outside_s = nan
        if parts.settings.checkpoint_sink:
            store = parts.checkpoint_store
            try:
                stored = store.newest(delivered=True) or store.covering(0)
                outside_s = _age_s(now, stored.signed.checkpoint.at if stored else started_at)
            except ChangedCheckpoint:
                outside_s = inf  # A changed checkpoint does not tell what was delivered.
        return {
            "audit_failures": len(msgspec.json.decode(audit.value)["failures"]) if audit else 0,
            "audit_age_seconds": _age_s(now, audit.at if audit else started_at),
            "checkpoint_outside_age_seconds": outside_s,
            "months_overdue": len(parts.month_end.overdue()),
            "backup_age_seconds": _age_s(now, backup.at if backup else started_at),
        }

    def database_load(self) -> Values:
        """Return the connections, their limit, and what standbys and slots are behind."""
        used, most, behind, retained = nan, nan, dict[str, float](), dict[str, float]()
        with self._opened().views.reading() as connection:
            if connection.dialect.name == "postgresql":
                used, most = connection.execute(text(CONNECTIONS)).one()
                behind = {name: int(lag) for name, lag in connection.execute(text(STANDBYS))}
                retained = {name: int(size) for name, size in connection.execute(text(SLOTS))}
        return {
            "database_connections": used,
            "database_connections_max": most,
            "database_replication_lag_bytes": behind,
            "database_inactive_slot_bytes": retained,
        }

    def webhooks(self) -> Values:
        parts = self._opened()
        pending, since = parts.webhook_deliveries.backlog()
        rows = parts.views.read(parts.webhook_endpoints.all)
        disabled = Counter(each.disabled for each in rows if each.disabled is not None)
        return {
            "webhook_deliveries_pending": pending,
            "webhook_delivery_late_seconds": max(0.0, _age_s(parts.clock(), since)),
            "webhook_endpoints_disabled": {
                each: disabled[each] for each in get_args(DisabledReason)
            },
        }

    def queues(self) -> Values:
        broker = self._parts.broker
        return {"queue_messages": {name: broker.backlog(name) for name in QUEUES}}

    def providers_up(self) -> Mapping[str, Mapping[str, float]]:
        parts = self._parts
        lookups = {each.name: float(each.is_up()) for each in parts.lookups}
        networks = dict[str, float]()
        for name in parts.networks.names:
            network = parts.networks.of(name)
            networks[name] = float(not isinstance(network, GuardedNetwork) or network.is_up())
        drained = {name: float(parts.gate.is_drained(name)) for name in (*lookups, *networks)}
        found = (lookups, networks, drained)
        return dict(zip(PROVIDER_GAUGES, found, strict=True))

    def _opened(self) -> "Container":
        """Return the parts; raise without a database, because opening a SQLite file makes it."""
        if not self._parts.persistence.exists():
            raise ServiceUnavailable
        return self._parts


def _age_s(now: datetime, at: datetime | None) -> float:
    """Return for how long something lasts; 0 if there is nothing."""
    return 0.0 if at is None else (now - at).total_seconds()
