"""The monthly fee: each month of each organization is charged once, the oldest month first.

The clock asks for a round, and a worker records what falls due. From then on it is on the list of
what is due until it is charged, and beats ask for rounds.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from uuid import UUID, uuid4

from domain.accounts.monthly_billing import MonthlyBilling
from domain.accounts.monthly_fee import MonthlyFee
from domain.cause import Cause
from domain.errors import BillingNotConfigured, InsufficientBalance
from domain.log.log import Log
from domain.months import month_of, months_before, next_month
from projections.engine.database import Database
from projections.engine.positions import Positions
from projections.engine.projector import Projector
from projections.models.due import Due, DueList
from projections.models.links import Links
from projections.models.organizations import Organizations
from projections.stores.counters import FEES, Counters
from workers.months import CutOff
from workers.routes import Publisher, fees_message

# An event that is dated in one month may reach the log in the next: its commit has waited in a
# queue or for locks, or the clock of its process is behind. After this time no such event comes.
COMMITTED_WITHIN = timedelta(seconds=60)
RETRY = timedelta(days=1)  # After a charge that the balance did not cover.
PAUSE = timedelta(minutes=10)  # For an organization whose fee ended by an error.
LEASE = timedelta(seconds=3)  # After it another worker may charge the fees of an organization.
STEPS_MAX = 500  # Of each kind per round; each may wait for the disk, and so do all other commits.
# In a row; then the log is in trouble, and each further failure would cost a whole time-out.
FAILURES_MAX = 3

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class MonthlyFees:
    """Freezes the fees that fall due, and charges them; the log decides what is done."""

    log: Log
    billing: MonthlyBilling
    database: Database
    projector: Projector
    positions: Positions
    organizations: Organizations
    links: Links
    due_list: DueList
    counters: Counters
    cut_off: CutOff
    _me: str = field(default_factory=lambda: uuid4().hex, init=False)
    _month: str = field(default="", init=False)  # Months are frozen up to this one.
    # For whom they are not yet: the first month for which something may be due.
    _unsettled: dict[UUID, str] = field(default_factory=dict, init=False)

    def run(self, most: int = STEPS_MAX) -> None:
        """Record what falls due for the next organizations, then charge what is due."""
        self.counters.forget(FEES)
        if self.cut_off.is_doubted():
            return
        month = month_of(self.cut_off.shared_clock() - COMMITTED_WITHIN)
        if month != self._month:
            self._open(month)
        failures, unsettled = 0, [*islice(self._unsettled, most)]
        for organization_id in unsettled:
            failures = 0 if self._freeze(organization_id) else failures + 1
            if failures == FAILURES_MAX:
                return
        if unsettled:
            self.projector.catch_up(self.log.head())  # So that this round charges them.
        self._charge_oldest(most)

    def _open(self, month: str) -> None:
        """Find who may owe a fee for a month, in read models that have reached the head."""
        if not self._reach(self.log.head()):
            logger.warning("monthly fees of %s wait for read models that stopped", month)
            return
        organizations = self.database.read(self.organizations.all)
        first = {row.id: next_month(month_of(row.created_at)) for row in organizations}
        self._unsettled = {each: since for each, since in first.items() if since <= month}
        self._month = month

    def _reach(self, position: int) -> bool:
        """Project up to a position; False if a read model of the fees has stopped before it."""
        self.projector.catch_up(position)
        found = self.positions.all(self.database)
        needed = (self.organizations.name, self.links.name)
        return all(name in found and found[name].position >= position for name in needed)

    def _freeze(self, organization_id: UUID) -> bool:
        """Freeze the fee of each month that has begun, even if older months are not paid."""

        def active_at(moment: datetime) -> Sequence[UUID]:
            return self.database.read(self.links.active_at, organization_id, moment)

        first = self._unsettled.pop(organization_id)
        try:
            every = months_before(first, next_month(self._month))
            ids: dict[UUID | str, str] = {MonthlyFee.id_of(organization_id, it): it for it in every}
            # Months are frozen in order, so what comes before one that is frozen is settled.
            newest = max((ids[fee.originator_id] for fee in self.log.newest(ids)), default="")
            months = [each for each in ids.values() if each > newest]
            history = self.log.history(organization_id) if months else ()
            for month in months:
                self.billing.freeze(history, month, active_at, self._cause(month))
        except Exception:
            logger.exception("the monthly fee of %s failed", organization_id)
            self._unsettled[organization_id] = first  # Its next turn comes behind all others.
            return False
        return True

    def _charge_oldest(self, most: int) -> None:
        """Charge what is due, in the order in which it fell due.

        A fee that cannot be paid holds up later ones of its organization, and nobody else's.
        """
        now, failures = self.cut_off.shared_clock(), 0
        skipped = {key for key, *_ in self.counters.claims(FEES)}
        fees = self.database.read(self.due_list.fees, now, skipped, most)
        for fee in fees:
            until = self.cut_off.shared_clock() + LEASE
            if fee.owner in skipped or not self.counters.claim(FEES, fee.owner, self._me, until):
                skipped.add(fee.owner)
                continue
            if (rest := self._charge(fee)) is not None:
                skipped.add(fee.owner)
                until = self.cut_off.shared_clock() + rest
                self.counters.move(FEES, [fee.owner], self._me, None, until)
            failures = failures + 1 if rest == PAUSE else 0
            if failures == FAILURES_MAX:
                return

    def _charge(self, due: Due) -> timedelta | None:
        """Charge a fee; if that cannot be, return how long to leave its organization alone."""
        owner, month = UUID(due.owner.split()[1]), ""
        try:
            fee = self.log.get(MonthlyFee, due.id)
            month = fee.due.month
            if self.billing.charge(fee, self._cause(month)):
                logger.info("the fee of %s was charged to %s", month, owner)
        except (InsufficientBalance, BillingNotConfigured) as refusal:
            logger.info("%s owes the fee of %s: %s", owner, month, refusal)
            return RETRY
        except Exception:
            logger.exception("the monthly fee of %s failed", owner)
            return PAUSE
        return None

    def _cause(self, month: str) -> Cause:
        return Cause(self.cut_off.shared_clock(), f"monthly-fee-{month}")


def request_round(publisher: Publisher) -> None:
    """Ask for a round, unless one waits already: a second one would add nothing."""
    if not publisher.backlog("billing"):
        publisher.publish(fees_message())
