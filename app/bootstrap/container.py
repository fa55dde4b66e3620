"""The one place that constructs: settings in, the parts of one installation out, each lazily.

Nothing is opened before it is used, so a process holds only what it needs, and after its fork.
Each file adds a layer to the one before: storage, reading, commands, work, access.

Tokens, client secrets and callers.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from eventsourcing.persistence import StoredEvent
from sqlalchemy import func, select

from app.adapters.queues.in_process import InProcessBroker
from app.adapters.queues.rabbitmq import DurableBroker
from app.bootstrap.work import Work
from app.security.authorization import Authorizer
from app.security.keys import KeyRing, Pepper
from app.security.secrets import SecretHasher
from app.security.tokens import LEEWAY_S, TokenIssuer, TokenVerifier
from app.settings import WAITING_MAX
from app.watch.counted import CountedAnswers, CountedWaiting, WorkLog
from app.watch.gauges import Ages, QueueState, behind_s
from app.watch.logging import note_cause
from app.watch.metrics import Metrics
from domain.errors import ServiceUnavailable
from domain.links.waiting import Waiting
from domain.log.log import Log
from domain.lookups.answers import Answers
from projections.engine.database import from_micros
from projections.engine.health import Lag, lags
from workers.routes import QUEUES


class Access(Work):
    """Who may do what, and what operators see."""

    @cached_property
    def metrics(self) -> Metrics:
        """What operators watch."""
        return Metrics(self, WAITING_MAX)

    @cached_property
    def log(self) -> Log:
        """The event log, whose appends are counted."""
        log = super().log
        log.observer = self._note
        return log

    def _note_store_error(self, store: str) -> None:
        self.metrics.store_failed(store)

    def _note(self, stored: Sequence[StoredEvent]) -> None:
        self.metrics.appended(stored)
        if stored:
            note_cause(lambda: _cause_of(stored[0]))

    @cached_property
    def answers(self) -> Answers:
        """Cache first, then the provider; counted by source."""
        return CountedAnswers(super().answers, self.metrics.looked_up)

    @cached_property
    def waiting(self) -> Waiting:
        """Who may wait for the network, and how many do."""
        return CountedWaiting(WAITING_MAX, self.metrics.waiting)

    @cached_property
    def broker(self) -> InProcessBroker | DurableBroker:
        """The queues; each message that is worked on is a line and a count."""
        broker = super().broker
        broker.add_middleware(WorkLog(self.metrics.worked))
        return broker

    def follower_lags(self) -> list[tuple[Lag, float | None]]:
        """How far each follower is behind, and for how many seconds, where that can be told."""
        self._require_database()
        known = lags(self.log, self.views, self.positions)
        return [(lag, behind_s(self.log, lag, self.clock())) for lag in known]

    def ages(self) -> Ages:
        """How old unfinished work is."""
        self._require_database()
        jobs, now = self.jobs.jobs.c, self.clock()
        begun_at = select(func.min(jobs.created_at)).where(jobs.finished_at.is_(None))
        with self.views.reading() as connection:
            idle = self.jobs.unfinished(connection, now, 1)
            job_at = connection.execute(begun_at).scalar_one()
            link_at = self.unfinished.oldest(connection)
        return Ages(
            job_s=0.0 if job_at is None else (now - from_micros(job_at)).total_seconds(),
            job_idle_s=max(0.0, (now - idle[0].moved_at).total_seconds()) if idle else 0.0,
            link_s=0.0 if link_at is None else (now - link_at).total_seconds(),
        )

    def _require_database(self) -> None:
        """Raise where there is none: to look must not make one."""
        if not self.persistence.exists():
            raise ServiceUnavailable

    def queue_states(self) -> list[QueueState]:
        """What waits in each queue."""
        try:
            return self._queue_states()
        except Exception:  # noqa: BLE001  # The broker closes a connection that was idle for long.
            return self._queue_states()

    def _queue_states(self) -> list[QueueState]:
        broker = self.broker
        return [QueueState(name, broker.backlog(name), broker.dead(name)) for name in QUEUES]

    def provider_is_up(self) -> bool:
        """Whether lookups are let through to the provider."""
        return self.provider.is_up()

    @cached_property
    def keys(self) -> KeyRing:
        """The signing keys."""
        settings = self.settings
        retire_after_s = settings.token_ttl_s + LEEWAY_S
        return KeyRing(settings.signing_keys, settings.token_algorithm, self.clock, retire_after_s)

    @cached_property
    def issuer(self) -> TokenIssuer:
        """Who signs tokens."""
        settings = self.settings
        return TokenIssuer(
            self.keys, settings.issuer, settings.token_audience, settings.token_ttl_s, self.clock
        )

    @cached_property
    def verifier(self) -> TokenVerifier:
        """Who checks tokens."""
        return TokenVerifier(
            self.keys, self.settings.issuer, self.settings.token_audience, self.clock
        )

    @cached_property
    def secret_hasher(self) -> SecretHasher:
        """How client secrets are compared."""
        settings = self.settings
        kept = Pepper(settings.signing_keys, lambda: self.notes.newest("pepper") is not None)
        return SecretHasher(settings.secret_pepper.encode() or kept)

    @cached_property
    def authorizer(self) -> Authorizer:
        """Who may do what, now."""
        return Authorizer(
            self.log, self.views, self.positions, self.organizations, self.clients, self.clock
        )


def _cause_of(event: StoredEvent) -> Mapping[str, Any]:
    """Return which request an event is for, of which organization, and which slice it is about.

    A message for a slice is only a bell: another slice may have been worked on.
    """
    state = msgspec.json.decode(event.state)
    names = ("request_id", "organization_id", "slice_index")
    facts = {name: state[name] for name in names if name in state}
    return facts | ({"job_id": str(event.originator_id)} if "slice_index" in facts else {})


class Container(Access):
    """The parts of one installation in one process."""

    def complete(self) -> None:
        """Construct every part that is still missing, before threads could race to do so."""
        for name in dir(type(self)):
            if isinstance(getattr(type(self), name), cached_property):
                getattr(self, name)

    def close(self) -> None:
        """Commit what waits and let go of the databases."""
        held = self.__dict__
        if "circuit" in held:
            self.circuit.close()
        if "broker" in held:
            self.broker.close()
        if "committer" in held:
            self.committer.close()
        if "lookup_cache" in held:
            self.lookup_cache.close()
        if "waker" in held:
            self.waker.close()
        if "log" in held:
            self.log.close()
        for database in held.get("databases", ()):
            database.close()
