"""The monthly fee: each month of each organization is charged once, the oldest month first.

The clock asks for a round, and a worker does it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID

from domain.accounts.monthly_billing import MonthlyBilling
from domain.accounts.monthly_fee import monthly_fee_id
from domain.cause import Cause
from domain.errors import BillingNotConfigured, InsufficientBalance
from domain.log.log import Log
from domain.months import month_of, months_before, next_month
from projections.engine.database import Database
from projections.engine.positions import Positions
from projections.engine.projector import Projector
from projections.models.links import Links
from projections.models.monthly_fees import FeeBook
from projections.models.organizations import Organizations
from workers.cut_off import CutOff
from workers.routes import Publisher, fees_message

# An event that is dated in one month may reach the log in the next: its commit has waited in a
# queue or for locks, or the clock of its process is behind. After this time no such event comes.
COMMITTED_WITHIN = timedelta(seconds=60)
RETRY = timedelta(days=1)  # After a charge that the balance did not cover.
PAUSE = timedelta(minutes=10)  # For an organization whose turn ended by an error.
ORGANIZATIONS_MAX = 2_000  # Per round; for most of them there is nothing to write.
STEPS_MAX = 500  # Per round; each waits for the disk, and so do all other commits.
# In a row; then the log is in trouble, and each further failure would cost a whole time-out.
FAILURES_MAX = 3

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Account:
    """What this process knows of one organization."""

    organization_id: UUID
    settled: str  # The newest month that is frozen, or for which nothing is due.
    owed: list[str] = field(default_factory=list)  # Frozen and not charged, oldest first.
    short_until: datetime | None = None
    paused_until: datetime | None = None

    def is_short(self, now: datetime) -> bool:
        return self.short_until is not None and now < self.short_until

    def has_work(self, month: str, now: datetime) -> bool:
        if self.paused_until is not None and now < self.paused_until:
            return False
        return self.settled < month or (bool(self.owed) and not self.is_short(now))


@dataclass(slots=True)
class _Tally:
    """The result of one round; a step is a frozen fee or an attempted charge."""

    steps: int = 0
    charges: int = 0
    failures: int = 0


@dataclass(eq=False)
class MonthlyFees:
    """Freezes the fees that are due, then charges them; a restarted process charges at once.

    The log decides what is done. The memory of this object only avoids reading settled months
    again.
    """

    log: Log
    billing: MonthlyBilling
    database: Database
    projector: Projector
    positions: Positions
    organizations: Organizations
    links: Links
    fee_book: FeeBook
    cut_off: CutOff
    _month: str = field(default="", init=False)  # Months are frozen up to this one.
    _accounts: dict[UUID, _Account] = field(default_factory=dict, init=False)

    def run(self, organizations_max: int = ORGANIZATIONS_MAX, steps_max: int = STEPS_MAX) -> int:
        """Go on with some organizations that have work; return how many charges were made."""
        if self.cut_off.is_doubted():
            return 0
        now, tally = self.cut_off.now(), _Tally()
        month = month_of(now - COMMITTED_WITHIN)
        if month != self._month:
            self._open(month)
        with_work = (each for each in self._accounts.values() if each.has_work(self._month, now))
        for account in islice(with_work, organizations_max):
            self._visit(account, now, tally)
            if tally.steps >= steps_max or tally.failures == FAILURES_MAX:
                break
        if tally.charges:
            logger.info("monthly fees were charged: %d", tally.charges)
        return tally.charges

    def _open(self, month: str) -> None:
        """Find which organizations may owe a fee, in read models that have reached the head."""
        if not self._reach(self.log.head()):
            logger.warning("monthly fees of %s wait for read models that stopped", month)
            return
        with self.database.reading() as connection:
            organizations = self.organizations.all(connection)
            newest = self.fee_book.newest(connection)
            fees = self.fee_book.owed(connection)
        for row in organizations:
            account = self._account(row.id, month_of(row.created_at))
            account.settled = max(account.settled, newest.get(row.id, ""))
            account.owed = []
        for fee in fees:
            self._account(fee.organization_id, fee.month).owed.append(fee.month)
        self._month = month

    def _reach(self, position: int) -> bool:
        """Project up to a position; False if a read model of the fees has stopped before it."""
        self.projector.catch_up(position)
        found = self.positions.all(self.database)
        needed = (self.organizations.name, self.links.name, self.fee_book.name)
        return all(name in found and found[name].position >= position for name in needed)

    def _account(self, organization_id: UUID, settled: str) -> _Account:
        return self._accounts.setdefault(organization_id, _Account(organization_id, settled))

    def _visit(self, account: _Account, now: datetime, tally: _Tally) -> None:
        try:
            self._freeze(account, tally)
            self._charge(account, now, tally)
            tally.failures = 0
        except Exception:
            logger.exception("the monthly fee of %s failed", account.organization_id)
            account.paused_until = now + PAUSE
            tally.failures += 1

    def _freeze(self, account: _Account, tally: _Tally) -> None:
        """Freeze the fee of each month that has begun, even if older months are not paid."""
        missing = [*months_before(next_month(account.settled), next_month(self._month))]
        if not missing:
            return

        def active_at(moment: datetime) -> Sequence[UUID]:
            with self.database.reading() as connection:
                return self.links.active_at(connection, account.organization_id, moment)

        history = self.log.history(account.organization_id)
        for month in missing:
            if self.billing.freeze(history, month, active_at, self._cause(month)):
                account.owed.append(month)
                tally.steps += 1
            account.settled = month

    def _charge(self, account: _Account, now: datetime, tally: _Tally) -> None:
        """Charge what is owed, oldest first; a fee that cannot be paid holds up later ones."""
        while account.owed and not account.is_short(now):
            month = account.owed[0]
            fee_id = monthly_fee_id(account.organization_id, month)
            tally.steps += 1
            try:
                tally.charges += self.billing.charge(fee_id, self._cause(month))
            except (InsufficientBalance, BillingNotConfigured) as refusal:
                logger.info("%s owes the fee of %s: %s", account.organization_id, month, refusal)
                account.short_until = now + RETRY
            else:
                del account.owed[0]

    def _cause(self, month: str) -> Cause:
        return Cause(self.cut_off.now(), f"monthly-fee-{month}")


def request_round(publisher: Publisher) -> None:
    """Ask for a round, unless one waits already: a second one would add nothing."""
    if not publisher.backlog("billing"):
        publisher.publish(fees_message())
