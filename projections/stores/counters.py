"""Counters and claims that all processes share, in one table. ARCHITECTURE says what losing costs.

A row counts something under a name and a key, or says who holds it, until a moment. Each operation
is one statement, so that nothing is lost between reading and writing.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from threading import Lock
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    String,
    Table,
    bindparam,
    or_,
    select,
    text,
)

from domain.cause import AHEAD_MAX, Clock
from domain.errors import NotPossible
from projections.engine.database import Database, from_micros, to_micros
from projections.engine.hot_reads import HotStatement, OneOf, run
from projections.engine.in_parts import change_in_parts, in_order
from projections.stores.faults import Faults

LEASES, RATES, THROTTLE, SLICES = "leases", "rate_limits", "throttle", "slices_in_hand"
FEES = "fees_at_rest"
FEE_REST_MAX = timedelta(days=2)  # Longer than any; what lasts longer is of a clock that was ahead.
LAPSING = (LEASES, RATES, THROTTLE, SLICES)
PACES, ATTEMPTS, SIMULATED = "provider_paces", "sandbox_attempts", "simulated_clock"
FAILURES = "sandbox_failures"
# So that every moment that the simulated network computes is a valid date.
SIMULATED_AHEAD_MAX = timedelta(days=3_650)

SECOND = 1_000_000  # In microseconds.
MINUTE = 60 * SECOND
NEVER = 1 << 62  # The end of what never lapses.
_MICROSECOND = timedelta(microseconds=1)


def _upsert(values: str, change: str) -> HotStatement:
    """Return the statement that makes a row, or changes the one that is there."""
    row = f"INSERT INTO counters (name, key, value, until, holder) VALUES (:name, :key, {values})"  # noqa: S608  # Our own.
    return HotStatement(text(f"{row} ON CONFLICT (name, key) DO UPDATE SET {change}"))


# A count goes on if its end is not before `earliest`, and not so late that a clock that was ahead
# must have written it. Otherwise it begins anew.
_COUNT = _upsert(
    ":by, :until, NULL",
    "value = :by + CASE"
    " WHEN counters.until BETWEEN :earliest AND :latest THEN counters.value ELSE 0 END,"
    " until = CASE"
    " WHEN counters.until BETWEEN :earliest AND :latest THEN counters.until ELSE :until END"
    " RETURNING value, until",
)
# The generic cell rate algorithm: `until` is when the next call would be due at a steady pace. It
# may lie at most `burst` calls in the past. A caller who cannot wait that long takes no turn.
_PACE = _upsert(
    "0, :earliest + :step, NULL",
    "until = :step + CASE WHEN counters.until < :earliest OR counters.until > :ahead"
    " THEN :earliest ELSE counters.until END"
    " WHERE counters.until <= :latest OR counters.until > :ahead RETURNING until",
)
# A claim can be replaced if it has lapsed, or if it is our own and the reply to us was lost.
_CLAIM = _upsert(
    "0, :until, :holder",
    "holder = excluded.holder, until = excluded.until WHERE counters.holder = excluded.holder"
    " OR counters.until <= :now OR counters.until > :latest RETURNING 1",
)
_RELEASE = HotStatement(
    text("DELETE FROM counters WHERE name = :name AND key = :key AND holder = :holder RETURNING 1")
)
# What fails next, as `holder` says: so many times, and not after its end.
_SCRIPT = _upsert(
    ":times, :until, :how",
    "value = excluded.value, until = excluded.until, holder = excluded.holder RETURNING 1",
)
_PLAY = HotStatement(
    text(
        "UPDATE counters SET value = value - 1, until = CASE value WHEN 1 THEN 0 ELSE until END"
        " WHERE name = :name AND key = :key"
        " AND holder = :how AND value > 0 AND until > :now RETURNING value"
    )
)


class Counters:
    """One row for each name and key."""

    def __init__(self, database: Database, clock: Clock, faults: Callable[[str], Faults]) -> None:
        """`faults` returns what swallows the errors of a name that requests can do without."""
        self._database = database
        self._clock = clock
        self._faults = {name: faults(name) for name in (LEASES, RATES, PACES)}
        # Threads would queue for the row anyway, and each would hold a connection meanwhile.
        self._one_at_a_time = Lock()
        self.metadata = MetaData()
        self._rows = Table(
            "counters",
            self.metadata,
            Column("name", String, primary_key=True),
            Column("key", String, primary_key=True),
            Column("value", BigInteger, nullable=False),
            Column("until", BigInteger, nullable=False),
            Column("holder", String),
            sqlite_with_rowid=False,
        )
        row = self._rows.c
        named = select(row.key, row.value, row.until, row.holder).where(row.name == bindparam("of"))
        self._all = HotStatement(named)
        self._some = HotStatement(named.where(OneOf(row.key, "keys")))
        running = named.where(row.until > bindparam("now"), row.until <= bindparam("last"))
        self._running = HotStatement(running)
        mine = row.name == bindparam("of"), row.holder == bindparam("mine"), OneOf(row.key, "keys")
        moved = self._rows.update().where(in_order(self._rows, *mine))
        moved = moved.values(holder=bindparam("then"), until=bindparam("new_until"))
        moved = moved.values(value=bindparam("new_value"))
        self._move = HotStatement(moved.returning(row.key))
        # Runs each second and mostly deletes nothing, so it is one statement without a transaction.
        lapsed = row.name == bindparam("of"), row.until <= bindparam("now")
        gone = self._rows.delete().where(in_order(self._rows, *lapsed))
        self._forget = HotStatement(gone.returning(row.key))

    # Counts.

    def count_requests(
        self, organization_id: UUID, minute: int, wanted: int
    ) -> tuple[int, int] | None:
        """Count requests; return the minute that has them, and how many it has in all.

        Another process may be in the next minute already; that minute then counts for all. None if
        the table cannot be reached.
        """
        counted, end = list[tuple[int, int]](), (minute + 1) * MINUTE
        with self._faults[RATES].swallowed("count requests"):
            key, latest = organization_id.hex, end + MINUTE
            counted.append(self._count(RATES, key, wanted, end, end, latest))
        return next(((until // MINUTE - 1, total) for total, until in counted), None)

    def count_failure(self, subject: str, window: timedelta) -> None:
        """Count a wrong secret, in the window that began with the first one."""
        now = self._clock()
        self._count(THROTTLE, subject, 1, to_micros(now + window), *_span(now))

    def failures(self, subjects: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return how often each has failed, and how many microseconds its window still lasts."""
        now = to_micros(self._clock())
        found = self._database.rows(self._some, of=THROTTLE, keys=[*subjects])
        last = now + AHEAD_MAX // _MICROSECOND
        return {row[0]: (row[1], row[2] - now) for row in found if now < row[2] <= last}

    def count_attempt(self, organization_id: UUID, phone_number: str) -> int:
        """Count an attempt at a sandbox number; return the number of attempts so far."""
        key = f"{organization_id.hex} {phone_number}"
        return self._count(ATTEMPTS, key, 1, NEVER, NEVER, NEVER)[0]

    def script_failure(
        self,
        organization_id: UUID,
        attempts: str,
        how: str | None,
        times: int | None,
        until: datetime | None,
    ) -> None:
        """Let these attempts of an organization fail: so many, or until a moment; None: none."""
        end = 0 if how is None else NEVER if until is None else to_micros(until)
        values = {"how": how, "times": NEVER if times is None else times, "until": end}
        name = _scripts(organization_id)
        self._database.rows(_SCRIPT, name=name, key=attempts, **values)
        self.forget(name)  # Also what was played to its end.

    def next_failure(self, organization_id: UUID, fits: Callable[[str, str], bool]) -> str | None:
        """Count an attempt of an organization; return how it has to fail, if at all.

        `fits` tells whether it is one of the attempts that were scripted, and can fail so. What is
        said of fewer comes first. Where nothing is scripted this is one read, and nobody waits for
        a row.
        """
        name, now = _scripts(organization_id), to_micros(self._clock())
        for of, how, *_ in reversed(self.scripted_failures(organization_id)):
            if fits(of, how) and self._database.rows(_PLAY, name=name, key=of, how=how, now=now):
                return how
        return None

    def scripted_failures(
        self, organization_id: UUID
    ) -> list[tuple[str, str, int | None, datetime | None]]:
        """Return what fails next: which attempts, how, how many times yet, and until when."""
        now = to_micros(self._clock())
        rows = self._database.rows(self._all, of=_scripts(organization_id))
        return [
            (
                attempts,
                how,
                None if times > NEVER // 2 else times,
                None if until == NEVER else from_micros(until),
            )
            for attempts, times, until, how in sorted(rows, key=itemgetter(0))
            if times and until > now
        ]

    def reset_sandbox(self, organization_id: UUID) -> None:
        """Forget what an organization has scripted, and how far its time is ahead."""
        row, own = self._rows.c, organization_id.hex
        its = or_(row.name == _scripts(organization_id), row.name.in_((ATTEMPTS, SIMULATED)))
        mine = its, or_(row.key.startswith(own), row.name == _scripts(organization_id))
        gone = self._rows.delete().where(in_order(self._rows, *mine))
        self._database.change(gone, durable=True)

    def simulated_ahead(
        self, owner: Sequence[UUID] = (), connection: Connection | None = None
    ) -> timedelta:
        """Return how far the clock of the simulated network is ahead of ours.

        That of an `owner`, an organization and perhaps one of its links, is as much further ahead
        as each was moved.
        """
        keys = [_clock_of(owner[:some]) for some in range(len(owner) + 1)]
        if connection is None:
            found = self._database.rows(self._some, of=SIMULATED, keys=keys)
        else:
            found = run(connection, self._some, of=SIMULATED, keys=keys).fetchall()
        return sum(int(row[1]) for row in found) * _MICROSECOND

    def advance_simulated(
        self,
        by: timedelta,
        owner: Sequence[UUID] = (),
        also: Callable[[Connection], object] = lambda _: None,
    ) -> timedelta:
        """Set the clock of the simulated network ahead, or that of an owner's links.

        `also` does in the same commit what follows from it. Returns how far it is ahead then;
        raises NotPossible beyond `SIMULATED_AHEAD_MAX`.
        """
        values = {
            "name": SIMULATED,
            "key": _clock_of(owner),
            "by": by // _MICROSECOND,
            "until": NEVER,
        }
        with self._database.writing(durable=True) as connection:
            run(connection, _COUNT, earliest=NEVER, latest=NEVER, **values).fetchall()
            ahead = self.simulated_ahead(owner, connection)
            if ahead > SIMULATED_AHEAD_MAX:
                raise NotPossible("the simulated network would be more than ten years ahead")
            also(connection)
            return ahead

    def _count(  # noqa: PLR0913  # What, where, and which counts go on.
        self, name: str, key: str, by: int, until: int, earliest: int, latest: int
    ) -> tuple[int, int]:
        values = {"by": by, "until": until, "earliest": earliest, "latest": latest}
        [found] = self._database.rows(_COUNT, name=name, key=key, **values)
        return int(found[0]), int(found[1])

    # Paces.

    def reserve(
        self, provider: str, calls_per_s: float, burst: int, within_s: float
    ) -> float | None:
        """Take the next turn of a provider; return in how many seconds it is, None if too late.

        After a pause `burst` calls may come at once. If the store fails, the turn is now.
        """
        if not self._one_at_a_time.acquire(timeout=within_s):
            return None
        try:
            now, wait_s, step = to_micros(self._clock()), 0.0, round(SECOND / calls_per_s)
            values = {
                "earliest": now - step * (burst - 1),
                "latest": now + int(min(within_s, AHEAD_MAX.seconds) * SECOND),
                "ahead": now + AHEAD_MAX // _MICROSECOND,
            }
            with self._faults[PACES].swallowed("take a turn"):
                found = self._database.rows(_PACE, name=PACES, key=provider, step=step, **values)
                if not found:
                    return None
                wait_s = (int(found[0][0]) - step - now) / SECOND
        finally:
            self._one_at_a_time.release()
        return max(0.0, wait_s)

    # Claims.

    def acquire(self, key: UUID, holder: str, until: datetime) -> str | None:
        """Claim the lease of a request until a moment; None when claimed, else who holds it.

        If the store fails the result is also None, because the log would refuse a second request.
        """
        with self._faults[LEASES].swallowed("claim"):
            if not self.claim(LEASES, key.hex, holder, until):
                running = self._database.rows(self._some, of=LEASES, keys=[key.hex])
                # Released between the two statements; the caller's next attempt will claim it.
                return str(running[0][3]) if running else holder
        return None

    def release(self, key: UUID, holder: str) -> None:
        """Release the holder's own lease; if that fails it lapses by itself."""
        with self._faults[LEASES].swallowed("give back"):
            self._database.rows(_RELEASE, name=LEASES, key=key.hex, holder=holder)

    def claim(self, name: str, key: str, holder: str, until: datetime) -> bool:
        """Claim what is free, lapsed, or one's own; tell whether it is claimed."""
        now = self._clock()
        values = {"until": to_micros(until), "now": to_micros(now)}
        latest = to_micros(now + AHEAD_MAX)
        bound = {"name": name, "key": key, "holder": holder, "latest": latest, **values}
        return bool(self._database.rows(_CLAIM, **bound))

    def claims(self, name: str) -> Sequence[Sequence[Any]]:
        """Return key, value, end and holder of the claims that have not lapsed."""
        now = self._clock()
        last = to_micros(now + (FEE_REST_MAX if name == FEES else AHEAD_MAX))
        return self._database.rows(self._running, of=name, now=to_micros(now), last=last)

    def move(  # noqa: PLR0913  # Of whom, and all that it gets.
        self,
        name: str,
        keys: Sequence[str],
        holder: str,
        then: str | None,
        until: datetime,
        value: int = 0,
    ) -> None:
        """Keep a holder's claims until another moment, or leave them to nobody until then.

        `value` is returned by `claims`.
        """
        values = {"of": name, "mine": holder, "then": then, "new_until": to_micros(until)}
        self._database.rows(self._move, keys=[*keys], new_value=value, **values)

    # What is over.

    def forget(self, name: str) -> None:
        """Delete what has lapsed under a name with few rows."""
        self._database.rows(self._forget, of=name, now=to_micros(self._clock()))

    def forget_lapsed(self) -> int:
        """Delete everything that has lapsed; return how many rows."""
        rows, (earliest, latest) = self._rows.c, _span(self._clock())
        lapsed = or_(rows.until < earliest, rows.until > latest)
        parts = [(self._rows.delete(), lapsed, rows.key, rows.name == each) for each in LAPSING]
        return sum(change_in_parts(self._database, *part) for part in parts)

    def clear(self, name: str, *, unheld: bool = False) -> None:
        """Delete all rows of a name, or those that nobody holds."""
        row = self._rows.c
        mine = (row.name == name, *([row.holder.is_(None)] if unheld else ()))
        self._database.change(self._rows.delete().where(in_order(self._rows, *mine)))


def _span(now: datetime) -> tuple[int, int]:
    """Return the first and the last end of what still runs; see AHEAD_MAX."""
    return to_micros(now) + 1, to_micros(now + AHEAD_MAX)


def _clock_of(owner: Sequence[UUID]) -> str:
    return " ".join(each.hex for each in owner)


def _scripts(organization_id: UUID) -> str:
    """Return the name of what an organization has scripted; its keys say for which attempts."""
    return f"{FAILURES} {organization_id.hex}"
