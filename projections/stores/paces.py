"""Paces the calls to providers with a rate limit, for all processes together.

Losing the table may cause refusals of a provider (429), which callers handle anyway.
"""

from threading import Lock

from sqlalchemy import BigInteger, Column, MetaData, String, Table, text

from domain.cause import AHEAD_MAX, Clock
from projections.engine.database import Database, to_micros
from projections.engine.hot_reads import HotStatement
from projections.stores.faults import Faults

SECOND = 1_000_000  # In microseconds.

# The generic cell rate algorithm: `next_at` is when the next call would be due at a steady pace. It
# may lie at most `burst` calls in the past. A caller who cannot wait that long takes no turn.
_TURN = HotStatement(
    text(
        "INSERT INTO provider_paces (provider, next_at) VALUES (:provider, :earliest + :step)"
        " ON CONFLICT (provider) DO UPDATE SET next_at = :step + CASE"
        " WHEN provider_paces.next_at < :earliest OR provider_paces.next_at > :ahead"
        " THEN :earliest ELSE provider_paces.next_at END"
        " WHERE provider_paces.next_at <= :latest OR provider_paces.next_at > :ahead"
        " RETURNING next_at"
    )
)


class SqlPaces:
    """One row for each provider that limits its callers."""

    def __init__(self, database: Database, clock: Clock, faults: Faults) -> None:
        self._database = database
        self._clock = clock
        self._faults = faults
        # Threads would queue for the row anyway, and each would hold a connection meanwhile.
        self._one_at_a_time = Lock()
        self.metadata = MetaData()
        Table(
            "provider_paces",
            self.metadata,
            Column("provider", String, primary_key=True),
            Column("next_at", BigInteger, nullable=False),
        )

    def turn(self, provider: str, calls_per_s: float, burst: int, within_s: float) -> float | None:
        """Take the next turn; return in how many seconds it is, or None if that is too late.

        After a pause `burst` calls may come at once. If the store fails, the turn is now.
        """
        if not self._one_at_a_time.acquire(timeout=within_s):
            return None
        try:
            return self._turn(provider, round(SECOND / calls_per_s), burst, within_s)
        finally:
            self._one_at_a_time.release()

    def _turn(self, provider: str, step: int, burst: int, within_s: float) -> float | None:
        now = self._clock()
        with self._faults.swallowed("take a turn"):
            found = self._database.rows(
                _TURN,
                provider=provider,
                step=step,
                earliest=to_micros(now) - step * (burst - 1),
                latest=to_micros(now) + int(min(within_s, AHEAD_MAX.seconds) * SECOND),
                ahead=to_micros(now + AHEAD_MAX),
            )
            if not found:
                return None
            wait_s = (int(found[0][0]) - step - to_micros(now)) / SECOND
            if wait_s > 0:
                return wait_s
        return 0.0
