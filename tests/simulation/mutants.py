"""Bugs to be planted: each is one that somebody could write, and that some seed has to find."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from domain.accounts.committer import Committer
from domain.accounts.wallet import Refund, Wallet
from domain.cause import Cause
from domain.links import lost_order
from domain.links.esim import Esim
from domain.links.link import Link
from domain.log.log import Log, Recorded
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import SingleLookup
from projections.engine.positions import Fenced, Positions
from workers.dispatcher import Dispatcher
from workers.routes import messages_for
from workers.work import Work

Plant = Callable[[pytest.MonkeyPatch], None]


def the_dispatcher_moves_before_it_publishes(patch: pytest.MonkeyPatch) -> None:
    prepare = Dispatcher.prepare

    def asks(self: Any, rows: Sequence[Recorded]) -> bool:
        self.rows = rows
        return any(map(messages_for, (each.event for each in rows)))

    patch.setattr(Dispatcher, "prepare", asks)
    patch.setattr(Dispatcher, "finish", lambda self: prepare(self, self.rows))


def a_refund_is_booked_twice(patch: pytest.MonkeyPatch) -> None:
    once = Wallet.refund

    def twice(self: Wallet, refund: Refund, cause: Cause) -> None:
        once(self, refund, cause)
        once(self, refund, cause)

    patch.setattr(Wallet, "refund", twice)


def a_failure_is_not_refunded(patch: pytest.MonkeyPatch) -> None:
    fail = Link.fail

    def kept(self: Link, *args: Any) -> None:
        fail(self, *args)

    patch.setattr(Link, "fail", kept)


def an_intent_is_appended_like_any_event(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "claim", Log.append)


def jobs_are_not_swept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Work, "_free_slices", lambda *_: iter(()))


def links_are_not_swept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Work, "_ask", lambda *_: None)


def a_conflict_counts_as_committed(patch: pytest.MonkeyPatch) -> None:
    insert_once = Log.insert_once

    def insert(self: Log, stored: Sequence[StoredEvent]) -> int:
        try:
            return insert_once(self, stored)
        except IntegrityError:
            return self.head()

    patch.setattr(Log, "insert_once", insert)


def a_key_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    run = SingleLookup.run

    def unkeyed(self: SingleLookup, request: Any, cause: Cause) -> Any:
        object.__setattr__(request, "key", f"{request.key}-{self.log.head()}")
        return run(self, request, cause)

    patch.setattr(SingleLookup, "run", unkeyed)


def the_fence_is_open(patch: pytest.MonkeyPatch) -> None:
    advance = Positions.advance

    def passed(*args: Any) -> None:
        with suppress(Fenced):
            advance(*args)

    patch.setattr(Positions, "advance", passed)


def an_esim_keeps_no_record_of_who_holds_it(patch: pytest.MonkeyPatch) -> None:
    append, commit = Log.append, Committer.commit

    def kept(aggregates: Sequence[Any]) -> list[Any]:
        return [each for each in aggregates if not isinstance(each, Esim)]

    patch.setattr(Log, "append", lambda self, *each: append(self, *kept(each)))
    patch.setattr(
        Committer,
        "commit",
        lambda self, wallet, change, *each: commit(self, wallet, change, *kept(each)),
    )


def a_settled_item_is_settled_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BulkJob, "open_items", BulkJob.items_of)


def a_job_ends_with_its_first_items(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        BulkJob,
        "finish_if_settled",
        lambda self, cause: self.record(
            BulkJob.Finished, cause, organization_id=self.organization_id
        ),
    )


def a_cancelled_job_goes_on(patch: pytest.MonkeyPatch) -> None:
    def still_open(self: BulkJob, slice_index: int) -> list[int]:
        items = self.items_of(slice_index)
        return [i for i in items if i not in self.completed and i not in self.failed]

    patch.setattr(BulkJob, "open_items", still_open)


def a_cancelled_job_is_refunded_after_its_commit(patch: pytest.MonkeyPatch) -> None:
    commit = Committer.commit_entries

    def in_two(self: Any, owner: Any, entries: Any, cause: Cause, *changed: Any) -> int:
        is_cancel = any(isinstance(it, BulkJob) and it.cancelled_count for it in changed)
        if is_cancel:
            self._log.append(*changed)
        return commit(self, owner, entries, cause, *(() if is_cancel else changed))

    patch.setattr(Committer, "commit_entries", in_two)


def an_order_is_adopted_though_it_is_older_than_the_intent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lost_order, "APART", timedelta(days=1))


# Each with its kind of network, and seeds that have found it.
PLANTS: Mapping[Plant, Sequence[Any]] = {
    the_dispatcher_moves_before_it_publishes: ("stock", 0),
    a_refund_is_booked_twice: ("stock", 0),
    a_failure_is_not_refunded: ("stock", 0),
    an_intent_is_appended_like_any_event: ("stock", 3),
    jobs_are_not_swept: ("stock", 6),
    links_are_not_swept: ("stock", 0),
    a_conflict_counts_as_committed: ("stock", 0),
    a_key_is_forgotten: ("stock", 1),
    the_fence_is_open: ("stock", 0),
    an_esim_keeps_no_record_of_who_holds_it: ("stock", 0),
    a_settled_item_is_settled_again: ("stock", 1),
    a_job_ends_with_its_first_items: ("stock", 3),
    a_cancelled_job_goes_on: ("stock", 2),
    a_cancelled_job_is_refunded_after_its_commit: ("stock", 4),
    an_order_is_adopted_though_it_is_older_than_the_intent: ("order", 3),
}
