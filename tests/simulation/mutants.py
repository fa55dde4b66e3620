"""Bugs to be planted: each is one that somebody could write, and that some seed has to find."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import filterfalse
from typing import Any

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from domain.accounts.committer import Committer
from domain.accounts.wallet import Refund
from domain.cause import Cause
from domain.links import lost_order
from domain.links.esim import Esim
from domain.log.log import Log, Recorded
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import SingleLookup
from projections.engine.positions import Fenced, Positions
from tests.simulation.machine import Machine
from tests.simulation.world import World
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


def at_the_network(**answers: Any) -> Plant:
    """Plant what the network does otherwise, whatever code calls it; given is the real call."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        reach = World.reach

        def reached(world: World, machine: Machine) -> Any:
            network = reach(world, machine)
            for call, answer in answers.items():
                real = getattr(network, call)
                vars(network)[call] = partial(answer, real) if callable(answer) else answer
            return network

        patch.setattr(World, "reach", reached)

    return plant


def of_entries(change: Callable[[Sequence[Any]], Sequence[Any]]) -> Plant:
    """Plant what becomes of the entries that are committed with their reason."""
    commit = Committer.commit_entries
    return lambda patch: patch.setattr(
        Committer,
        "commit_entries",
        lambda self, owner, entries, *more: commit(self, owner, change([*entries]), *more),
    )


def is_refund(entry: Any) -> bool:
    return isinstance(entry, Refund)


def twice(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    call(*args, **options)
    return call(*args, **options)


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


# Each with its kind of network, and a seed that has found it.
IN_PARTS: Mapping[Plant, tuple[str, int]] = {
    the_dispatcher_moves_before_it_publishes: ("stock", 0),
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
PLANTS: Mapping[str, tuple[Plant, str, int]] = {
    "a_refund_is_booked_twice": (of_entries(lambda it: [*it, *filter(is_refund, it)]), "stock", 0),
    "a_failure_is_not_refunded": (of_entries(lambda it: [*filterfalse(is_refund, it)]), "stock", 0),
    "a_lost_race_calls_all_the_same": (lambda it: it.setattr(Log, "claim", Log.append), "stock", 3),
    "a_late_endpoint_is_left_there": (at_the_network(find_endpoint=nothing), "stock", 1),
    "an_undo_is_forgotten": (at_the_network(remove_endpoint=nothing), "stock", 2),
    "a_removed_plan_stays_on": (at_the_network(remove_plan=nothing), "stock", 3),
    "an_esim_is_never_released": (at_the_network(release_esim=nothing), "stock", 5),
    "an_esim_is_freed_too_early": (at_the_network(settles_after=timedelta()), "stock", 29),
    "an_order_is_placed_twice": (at_the_network(order=twice), "order", 0),
    "a_plan_is_added_twice": (at_the_network(add_plan=twice), "order", 2),
    "an_order_is_not_taken_back": (at_the_network(take_back=lambda *_, **__: True), "order", 0),
    "a_lost_order_is_settled_too_early": (at_the_network(settles_after=timedelta()), "order", 0),
    **{plant.__name__: (plant, *found) for plant, found in IN_PARTS.items()},
}
