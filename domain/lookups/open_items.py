"""Limits the items of jobs that an organization has open, because a backlog is promised work."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from uuid import UUID

from domain.errors import RateLimited

# Returns how many items of an organization are open, and as of which position of the log.
ReadOpenItems = Callable[[UUID], tuple[int, int]]


@dataclass(eq=False)
class Accepting:
    """A job that is being accepted; `position` is its place in the log, once it has one."""

    count: int
    position: int | None = None


class OpenItems:
    """Counts the items in a read model, and those accepted by this process since.

    So the limit is exact within a process. Other processes may each accept what fits until the read
    model, which is a fraction of a second behind, shows it.
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
            accepted -= {each for each in accepted if _is_shown(each, position)}
            open_count = shown + sum(each.count for each in accepted)
            if open_count + count > self._items_max:
                message = (
                    f"{open_count} of at most {self._items_max} numbers of this organization's "
                    "jobs are still open; try again when some have ended."
                )
                raise RateLimited(message)
            accepted.add(this)
        try:
            yield this
        finally:
            if this.position is None:
                with self._lock:
                    self._accepted[organization_id].discard(this)


def _is_shown(accepted: Accepting, position: int) -> bool:
    return accepted.position is not None and accepted.position <= position
