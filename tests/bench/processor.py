"""What processes have taken of the processor, with all that they have started."""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
US = 1_000_000


def spent_s(roots: Collection[int]) -> float:
    """Return how many seconds these processes and their descendants have taken until now.

    Of those that have ended, too, as their parents are told of it: so it never goes back.
    """
    found = {pid: (parent, ticks) for pid, parent, ticks in _processes()}
    return (
        sum(ticks for pid, (_, ticks) in found.items() if _descends(pid, found, roots))
        / TICKS_PER_S
    )


def us_each(count: int, pids: Collection[int], run: Callable[[], object]) -> float:
    """Return what each of `count` things has cost these processes that one call does, in µs."""
    before_s = spent_s(pids)
    run()
    return (spent_s(pids) - before_s) / count * US


def _descends(pid: int, found: dict[int, tuple[int, int]], roots: Collection[int]) -> bool:
    while pid in found:
        if pid in roots:
            return True
        pid = found[pid][0]
    return False


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yield each process, its parent, and its ticks with those of its children that have ended."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # It has just ended.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), int(fields[1]), sum(map(int, fields[11:15]))
