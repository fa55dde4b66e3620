"""Follows the log from outside: sees when work ends and that every rule holds."""

import time
from collections import defaultdict
from threading import Event, Lock, Thread

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.wallet import Wallet
from domain.errors import ServiceUnavailable
from domain.links.link import Link
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event as Fact
from domain.log.log import Stored, decoded
from domain.lookups.bulk_job import BulkJob
from projections.audit.rules import Rules
from tests.installation import Process
from tests.workers.fees import endpoint_of

BATCH_EVENTS_MAX = 500
LOOK_S = 0.05
AWAY_S = 0.2
SLOW = "sandbox-slow"

BEGINS = BulkJob.Created | Link.Requested | PlanChange.Requested | MonthlyFee.Due
ENDS = (
    BulkJob.Finished
    | BulkJob.Cancelled
    | Link.Activated
    | Link.EsimReleased
    | Link.ProvisioningFailed
    | PlanChange.Finished
    | PlanChange.Failed
    | MonthlyFee.Charged
)
SETTLES = BulkJob.ItemsCompleted | BulkJob.ItemsFailed


class Observer:
    """Follows the log in a thread, event by event, with the code of `audit verify`.

    `open` is the work that has begun and has no outcome, by id, with the moment it was seen.
    """

    def __init__(self, process: Process) -> None:
        self._process = process
        self._rules = Rules()
        self._stop = Event()
        self._lock = Lock()
        self.position = 0
        self.failures: list[str] = []
        self.open: dict[str, float] = {}
        self._slow: set[str] = set()
        self.settled_at: dict[str, float] = {}  # The first settled item of a job.
        self.charges: dict[str, list[Wallet.Charged]] = defaultdict(list)  # By transaction.
        self.fees_charged: dict[str, set[str]] = defaultdict(set)  # The months of an organization.
        self.endpoints: set[str] = set()  # Those that links have at the network.
        self._endpoint_of: dict[object, str] = {}
        self.refunded: dict[str, int] = defaultdict(int)  # By charge.
        self._thread = Thread(target=self._run, name="observer", daemon=True)
        self._thread.start()

    def open_since(self, moment: float) -> list[str]:
        """Return the work that was open at a moment and still is."""
        with self._lock:
            return [work for work, seen in self.open.items() if seen <= moment]

    def is_slow(self, work: str) -> bool:
        return work in self._slow

    def net_micros(self, organization_id: object, *kinds: str) -> int:
        """Return what an organization was charged for these kinds, less what it got back."""
        with self._lock:
            charged = [
                charge
                for charges in self.charges.values()
                for charge in charges
                if charge.organization_id == organization_id and charge.kind in kinds
            ]
            return sum(each.amount_micros for each in charged) - sum(
                self.refunded[str(each.transaction_id)] for each in charged
            )

    def is_level(self) -> bool:
        """Tell whether it has seen all that there is."""
        return self.position >= self._process.log.head()

    def broken_promises(self) -> list[str]:
        """Return what the log has announced and not brought; for a log that rests."""
        return [reason for _, reason in self._rules.check_end()]

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        self._process.listen()
        appended = self._process.log.appended
        while not self._stop.is_set():
            seen = appended.count
            try:
                batch = self._process.log.stored(self.position, BATCH_EVENTS_MAX)
            except ServiceUnavailable:
                self._stop.wait(AWAY_S)
                continue
            with self._lock:
                for row in batch:
                    self._note(row)
            if not batch:
                appended.wait(seen, LOOK_S)

    def _note(self, row: Stored) -> None:
        now, recorded = time.monotonic(), decoded(row)
        event = recorded.event
        self.failures += self._rules.check(row, recorded)
        self.position = row.position
        self._note_work(str(event.originator_id), event, now)
        if isinstance(event, Wallet.Charged):
            self.charges[str(event.transaction_id)].append(event)
        elif isinstance(event, MonthlyFee.Charged):
            self.fees_charged[str(event.organization_id)].add(event.month)
        elif isinstance(event, Link.EndpointCreated):
            if event.endpoint_id != endpoint_of(event.originator_id):  # That of a debtor.
                self.endpoints.add(event.endpoint_id)
                self._endpoint_of[event.originator_id] = event.endpoint_id
        elif isinstance(event, Link.EndpointRemoved):
            self.endpoints.discard(event.endpoint_id)
        elif isinstance(event, Link.Ended):
            self.endpoints.discard(self._endpoint_of[event.originator_id])
        elif isinstance(event, Wallet.Refunded):
            self.refunded[str(event.charge_id)] += event.amount_micros

    def _note_work(self, work: str, event: Fact, now: float) -> None:
        if isinstance(event, Link.Requested) and event.plan.provider_plan_id == SLOW:
            self._slow.add(work)  # It takes its whole time whatever happens.
        elif isinstance(event, BEGINS):
            self.open[work] = now
        elif isinstance(event, ENDS):
            self.open.pop(work, None)
        elif isinstance(event, SETTLES):
            self.settled_at.setdefault(work, now)
