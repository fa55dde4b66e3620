"""The limiter: who may go on now, who waits, and whose turn is next; for all and for each owner.

An owner is whoever must not hold up the others, such as an organization. None stands for ourselves,
who are never refused a place in the queue.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Any
from uuid import UUID

from domain.blocking import blocking
from domain.errors import RateLimited, ServiceUnavailable

MIXED_S = 1.0  # So long after another owner came last an owner is not alone.

Owner = Hashable
Go = Callable[[], object]


def share_of(total: int) -> int:
    """Return how many of these slots, places or threads one owner may have: half of them."""
    return max(1, total // 2)


@dataclass(eq=False)
class Limiter:
    """Slots, of which an owner has at most its share; who finds none waits in a queue of its owner.

    The queues are served in turn. They have `places` together, half of them for one owner; without
    places nobody waits. `alone` is the share of an owner while no other one comes or waits.
    `beyond_share` and `full` are the texts of refusals. `shown` is entered while `slot` has one.
    """

    total: int
    share: int
    alone: int = 0  # 0: no more than the share.
    places: int = 0
    wait_s: float = 0.0  # For a slot, at most.
    beyond_share: str = ""
    full: str = ""
    shown: Callable[[], AbstractContextManager[object]] = nullcontext
    count: int = field(default=0, init=False)  # Of all that run.
    _running: dict[Owner, int] = field(default_factory=dict, init=False)  # Who has none is out.
    _queues: dict[Owner, deque[Go]] = field(default_factory=dict, init=False)  # Next turn first.
    _waiting: int = field(default=0, init=False)
    _last: tuple[Owner, float] = field(default=(None, float("-inf")), init=False)  # Who came, when.
    _mixed_until_s: float = field(default=0.0, init=False)
    _lock: Any = field(default_factory=Lock, init=False)

    def count_of(self, owner: Owner) -> int:
        return self._running.get(owner, 0)

    def has_slot(self, owner: Owner) -> bool:
        return self.count < self.total and self.count_of(owner) < self.share

    def require_share(self, owner: Owner) -> None:
        if self.count_of(owner) >= self.share:
            raise RateLimited(self.beyond_share)

    def enter(self, owner: Owner, go: Go) -> bool:
        """Take a slot, or a place in the queue: then `go` is called as soon as the slot is there.

        Returns whether there was one. Raises RateLimited beyond the share of slots or places,
        ServiceUnavailable if all are taken. Who is refused has taken nothing.
        """
        with self._lock:
            before, came_s = self._last
            if owner is not None:  # A probe each second must not cost everybody his slots.
                if owner != before:
                    self._mixed_until_s = came_s + MIXED_S
                self._last = owner, time.monotonic()
            queue = self._queues.get(owner)
            if queue is None and self.count < self.total and self._has_share(owner):
                self._count_up(owner, 1)
                return True
            if not self.places:
                self.require_share(owner)
            elif queue is not None and owner is not None and len(queue) >= share_of(self.places):
                raise RateLimited(self.beyond_share)
            if self._waiting >= self.places and (owner is not None or not self.places):
                raise ServiceUnavailable(self.full)
            self._queues.setdefault(owner, deque()).append(go)
            self._waiting += 1
            due = [*self._due()]  # The share of who waits has grown if the others have gone idle.
        for each in due:
            each()
        return False

    def reacquire(self, owner: Owner) -> None:
        """Take a slot even if there is none: for who had one, and gave it back for a while."""
        with self._lock:
            self._count_up(owner, 1)

    def leave(self, owner: Owner) -> None:
        """Give a slot back; those whose turn it is take it."""
        with self._lock:
            self._count_up(owner, -1)
            due = [*self._due()]
        for go in due:
            go()

    @contextmanager
    def slot(self, owner: Owner) -> Iterator[None]:
        """Have a slot during the block, after `wait_s` at most; raises as `enter` does."""
        ready = Lock()
        ready.acquire()
        if not self.enter(owner, ready.release):
            with blocking():
                in_time = ready.acquire(timeout=self.wait_s)
            if not in_time and self._withdraw(owner, ready.release):
                raise RateLimited(self.beyond_share)
        try:
            with self.shown():
                yield
        finally:
            self.leave(owner)

    def _has_share(self, owner: Owner) -> bool:
        running = self._running.get(owner, 0)
        if running < self.share or running >= self.alone:
            return running < self.share
        others_wait = len(self._queues) > (owner in self._queues)
        return not others_wait and time.monotonic() >= self._mixed_until_s

    def _count_up(self, owner: Owner, by: int) -> None:
        self.count += by
        running = self._running.pop(owner, 0) + by
        if running:
            self._running[owner] = running

    def _due(self) -> Iterator[Go]:
        """Yield what goes on now, of each owner in turn; each has its slot."""
        while self.count < self.total:
            owners = [*islice(filter(self._has_share, self._queues), 1)]
            if not owners:
                return
            self._count_up(owners[0], 1)
            yield self._pop(owners[0], self._queues[owners[0]][0])

    def _withdraw(self, owner: Owner, go: Go) -> bool:
        """Wait no longer; False: the slot has come just now."""
        with self._lock:
            is_there = go in self._queues.get(owner, ())
            if is_there:
                self._pop(owner, go)
            return is_there

    def _pop(self, owner: Owner, go: Go) -> Go:
        """Take out of the queue of an owner, whose next turn comes behind all others."""
        queue = self._queues.pop(owner)
        queue.remove(go)
        self._waiting -= 1
        if queue:
            self._queues[owner] = queue
        return go


# Returns how many items of an organization are open, and as of which position of the log.
ReadOpenItems = Callable[[UUID], tuple[int, int]]


@dataclass(eq=False)
class Accepting:
    """A job that is being accepted; `position` is its place in the log, once it has one."""

    count: int
    position: int | None = None


class OpenItems:
    """Limits the items of jobs that an organization has open: a backlog is promised work.

    It counts those in a read model, and those accepted by this process since, so the limit is exact
    within a process. Other processes may each accept what fits until the read model, which is a
    fraction of a second behind, shows it.
    """

    def __init__(self, read: ReadOpenItems, items_max: int) -> None:
        self._read = read
        self._items_max = items_max
        self._accepted: defaultdict[UUID, set[Accepting]] = defaultdict(set)
        self._lock = Lock()

    @contextmanager
    def accept(self, organization_id: UUID, count: int) -> Iterator[Accepting]:
        """Reserve room for a job, whose position must then be set; RateLimited if there is none."""
        this = Accepting(count)
        with self._lock:  # Held while reading: the jobs dropped below must be in what was read.
            shown, position = self._read(organization_id)
            accepted = self._accepted[organization_id]
            accepted -= {e for e in accepted if e.position is not None and e.position <= position}
            open_count = shown + sum(each.count for each in accepted)
            if open_count + count > self._items_max:
                raise RateLimited(
                    f"{open_count} of at most {self._items_max} numbers of this organization's "
                    "jobs are still open; try again when some have ended."
                )
            accepted.add(this)
        try:
            yield this
        finally:
            if this.position is None:
                with self._lock:
                    self._accepted[organization_id].discard(this)
