"""Bugs to be planted: each is one that somebody could write, and that some seed has to find."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import filterfalse
from typing import Any

import pytest
from eventsourcing.persistence import IntegrityError
from msgspec.structs import replace

from domain.accounts.committer import Committer
from domain.accounts.wallet import Refund
from domain.cause import Cause
from domain.errors import Conflict
from domain.links import lost_order
from domain.links.esim import Esim
from domain.log.log import Log, Recorded
from domain.lookups.bulk_job import BulkJob
from domain.lookups.single import SingleLookup
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected, Unavailable
from projections.engine.positions import Fenced, Positions
from projections.stores.counters import Counters
from tests.simulation.machine import Machine
from tests.simulation.world import World
from workers.routes import Dispatcher, messages_for
from workers.work import Work

Plant = Callable[[pytest.MonkeyPatch], None]


def the_dispatcher_moves_before_it_publishes(patch: pytest.MonkeyPatch) -> None:
    prepare = Dispatcher.prepare

    def asks(self: Any, rows: Sequence[Recorded]) -> bool:
        self.rows = rows
        return any(map(messages_for, (each.event for each in rows)))

    patch.setattr(Dispatcher, "prepare", asks)
    patch.setattr(Dispatcher, "finish", lambda self: prepare(self, self.rows))


def a_key_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    run = SingleLookup.run

    def unkeyed(self: SingleLookup, request: Any, cause: Cause) -> Any:
        object.__setattr__(request, "key", f"{request.key}-{self.log.head()}")
        return run(self, request, cause)

    patch.setattr(SingleLookup, "run", unkeyed)


def an_esim_keeps_no_record_of_who_holds_it(patch: pytest.MonkeyPatch) -> None:
    def without(call: Callable[..., int]) -> Callable[..., int]:
        return lambda *args: call(*(each for each in args if not isinstance(each, Esim)))

    for owner, name in ((Log, "append"), (Committer, "commit")):
        patch.setattr(owner, name, without(getattr(owner, name)))


def a_lease_is_for_ever(patch: pytest.MonkeyPatch) -> None:
    claim, holders = Counters.claim, dict[tuple[str, str], str]()

    def claimed(self: Counters, name: str, key: str, holder: str, until: datetime) -> bool:
        is_free = holders.setdefault((name, key), holder) == holder
        return is_free and claim(self, name, key, holder, until)

    patch.setattr(Counters, "claim", claimed)


def still_open(job: BulkJob, slice_index: int) -> list[int]:
    items = job.items_of(slice_index)
    return [i for i in items if i not in job.completed and i not in job.failed]


def ends_now(job: BulkJob, cause: Cause) -> None:
    job.record(BulkJob.Finished, cause, organization_id=job.organization_id)


def is_cancel(reason: Sequence[Any]) -> bool:
    return any(isinstance(it, BulkJob) and it.cancelled_count for it in reason)


def the_order_of_anybody_is_adopted(patch: pytest.MonkeyPatch) -> None:
    """List older orders too, all under the reference of the newest call."""
    references: list[str] = []

    def order(call: Callable[..., Any], plan: Any, reference: str, **options: Any) -> Any:
        references.append(reference)
        return call(plan, reference, **options)

    def orders(call: Any, plan: Any, since: datetime, *more: Any, **options: Any) -> list[Any]:
        found = call(plan, since - timedelta(days=1), *more, **options)
        return [replace(each, reference=references[-1]) for each in found]

    at_the_network(order=order, orders=orders, stores_reference=True)(patch)


def instead(owner: object, name: str, other: object) -> Plant:
    """Plant another function, or fact, in the place of one."""
    return lambda patch: patch.setattr(owner, name, other)


def borne(error: type[Exception], owner: type, name: str) -> Plant:
    """Plant that an error of a call counts as a success."""
    call = getattr(owner, name)

    def called(self: Any, *args: Any) -> Any:
        with suppress(error):
            return call(self, *args)
        return self.head() if isinstance(self, Log) else None

    return instead(owner, name, called)


def of_a_clock(**off: float) -> Plant:
    """Plant how far the clock of one process is off."""
    opened = World.open

    def open_with_it(world: World, name: str) -> Machine:
        machine = opened(world, name)
        if name == "p0":
            machine.clock = lambda: world.clock() + timedelta(**off)
        return machine

    return instead(World, "open", open_with_it)


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


def of_commits(commit: Callable[..., int]) -> Plant:
    """Plant what becomes of a commit of entries; given are the real call and the log."""
    real = Committer.commit_entries

    def committed(self: Any, *told: Any) -> int:
        return commit(partial(real, self), self._log, *told)

    return instead(Committer, "commit_entries", committed)


def of_entries(change: Callable[[Sequence[Any]], Sequence[Any]]) -> Plant:
    """Plant other entries in a commit."""
    return of_commits(lambda commit, _, owner, its, *more: commit(owner, change([*its]), *more))


def apart(is_meant: Callable[[Sequence[Any]], object]) -> Plant:
    """Plant that entries are committed behind their reason, and not with it."""

    def in_two(commit: Any, log: Log, owner: Any, entries: Any, cause: Cause, *reason: Any) -> int:
        if is_meant(reason) and entries:
            log.append(*reason)
            reason = ()
        return int(commit(owner, entries, cause, *reason))

    return of_commits(in_two)


def alone(commit: Any, _: Log, owner: Any, entries: Any, cause: Cause, *reason: Any) -> int:
    return int(commit(owner, entries, cause, *(() if entries else reason)))


def is_refund(entry: Any) -> bool:
    return isinstance(entry, Refund)


def twice(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    call(*args, **options)
    return call(*args, **options)


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def if_unknown(error: type[ProviderError] | None) -> Callable[..., Any]:
    """Tell another error where the outcome of a call is unknown; None: call again."""

    def told(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        try:
            return call(*args, **options)
        except OutcomeUnknown:
            if error is not None:
                raise error from None
            return call(*args, **options)

    return told


def made_up(**facts: Any) -> Callable[..., Any]:
    """Make up some facts of what a look has shown."""

    def look(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        found = call(*args, **options)
        return found and replace(found, **facts)

    return look


# Each with its kind of network, and a seed that has found it.
PLANTS: Mapping[str, tuple[Plant, str, int]] = {
    "a_refund_is_booked_twice": (of_entries(lambda it: [*it, *filter(is_refund, it)]), "stock", 1),
    "a_failure_is_not_refunded": (of_entries(lambda it: [*filterfalse(is_refund, it)]), "stock", 1),
    "a_lost_race_calls_all_the_same": (instead(Log, "claim", Log.append), "stock", 8),
    "a_late_endpoint_is_left_there": (at_the_network(find_endpoint=nothing), "stock", 2),
    "an_undo_is_forgotten": (at_the_network(remove_endpoint=nothing), "stock", 3),
    "a_removed_plan_stays_on": (at_the_network(remove_plan=nothing), "stock", 12),
    "an_esim_is_never_released": (at_the_network(release_esim=nothing), "stock", 5),
    "an_esim_is_freed_too_early": (at_the_network(settles_after=timedelta()), "stock", 12),
    "an_order_is_placed_twice": (at_the_network(order=twice), "order", 0),
    "a_plan_is_added_twice": (at_the_network(add_plan=twice), "order", 2),
    "an_order_is_not_taken_back": (at_the_network(take_back=lambda *_, **__: True), "order", 0),
    "a_lost_order_is_settled_too_early": (at_the_network(settles_after=timedelta()), "order", 0),
    "a_conflict_counts_as_committed": (borne(IntegrityError, Log, "insert_once"), "stock", 0),
    "the_fence_is_open": (borne(Fenced, Positions, "advance"), "stock", 0),
    "a_claim_is_given_twice": (borne(Conflict, Log, "claim"), "stock", 3),
    "jobs_are_not_swept": (instead(Work, "_free_slices", lambda *_: iter(())), "stock", 6),
    "links_are_not_swept": (instead(Work, "_send", nothing), "stock", 0),
    "an_item_is_settled_again": (instead(BulkJob, "open_items", BulkJob.items_of), "stock", 1),
    "a_job_ends_too_early": (instead(BulkJob, "finish_if_settled", ends_now), "stock", 3),
    "a_cancelled_job_goes_on": (instead(BulkJob, "open_items", still_open), "stock", 2),
    "a_cancelled_job_is_refunded_after_its_commit": (apart(is_cancel), "stock", 4),
    "an_older_order_is_adopted": (instead(lost_order, "APART", timedelta(days=1)), "order", 3),
    "a_charge_is_left_out": (of_entries(lambda it: [*filter(is_refund, it)]), "stock", 0),
    "a_charge_is_doubled": (of_entries(lambda it: [*it, *filterfalse(is_refund, it)]), "stock", 0),
    "a_clock_is_a_day_behind": (of_a_clock(hours=-25), "stock", 15),
    "an_entry_is_committed_without_its_reason": (of_commits(alone), "stock", 0),
    "an_entry_is_committed_behind_its_reason": (apart(bool), "stock", 0),
    "an_endpoint_is_made_up": (at_the_network(find_endpoint=made_up(endpoint_id="?")), "stock", 1),
    "usage_shows_no_plans": (at_the_network(usage=made_up(addons=[])), "order", 8),
    "orders_are_never_seen": (at_the_network(orders=lambda *_, **__: ()), "order", 0),
    "an_unknown_order_counts_as_none": (at_the_network(order=if_unknown(Unavailable)), "order", 0),
    "a_creation_is_given_up": (at_the_network(create_endpoint=if_unknown(Rejected)), "stock", 50),
    "an_addition_is_repeated_at_once": (at_the_network(add_plan=if_unknown(None)), "order", 8),
    "events_are_passed_over": (the_dispatcher_moves_before_it_publishes, "stock", 0),
    "a_key_is_forgotten": (a_key_is_forgotten, "stock", 1),
    "an_esim_has_no_record": (an_esim_keeps_no_record_of_who_holds_it, "stock", 0),
    "the_order_of_anybody_is_adopted": (the_order_of_anybody_is_adopted, "order", 0),
    "a_lease_is_for_ever": (a_lease_is_for_ever, "stock", 12),
}
