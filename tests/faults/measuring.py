"""Figures beside the faults: how quick the same system is when nothing happens to it."""

import statistics

from tests.faults.load import FAILING
from tests.faults.programme import Programme

QUIET_RUNS = 5


def quiet_recovery(programme: Programme) -> None:
    """Measure what "recovery" takes after no fault at all: the time of the work itself."""
    for _ in range(QUIET_RUNS):
        programme.inflict("none, for comparison", int)
    first_items(programme, "undisturbed")


def first_items(programme: Programme, when: str) -> None:
    """Note how long after its 202 the first items of a job were settled.

    A number that fails holds its slice up until it has been asked for three times.
    """
    settled_at = programme.observer.settled_at
    jobs = [
        job
        for job in programme.load.ledger.of("job")
        if job.id in settled_at and FAILING not in job.request["phone_numbers"]
    ]
    waits = sorted(1_000 * max(0.0, settled_at[job.id] - job.answered_at) for job in jobs)
    assert waits
    found = (
        f"median {statistics.median(waits):.0f} ms, longest {waits[-1]:.0f} ms, {len(waits)} jobs"
    )
    programme.report.figures.append((f"from 202 to the first settled items, {when}", found))


def patience(programme: Programme) -> None:
    """Note how long clients had to ask until they were answered, repeats included."""
    for kind, name in (("lookup", "lookup"), ("job", "job accepted"), ("link", "link")):
        promises = programme.load.ledger.of(kind)  # type: ignore[arg-type]  # From the line above.
        waits = sorted(each.answered_at - each.began_at for each in promises)
        found = f"median {statistics.median(waits):.1f} s, longest {waits[-1]:.1f} s"
        programme.report.figures.append(
            (f"{name}: until answered, with repeats, over all failpoints", found)
        )
