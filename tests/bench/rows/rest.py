"""What all our processes cost while nobody asks for anything: processor time and wake-ups."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from threading import Event

from tests.bench.engine import on_postgres
from tests.bench.processor import spent_s, wakeups
from tests.bench.row import Aim, Row
from tests.bench.rows.lookups import SINGLE, installation
from tests.bench.side import told

SETTLED_S = 5.0  # After the start.
REST_S = 15.0
MS = 1_000


def measure() -> Iterator[Row]:
    with installation() as made, ExitStack() as stack:
        sides = [stack.enter_context(made.ours())]
        if on_postgres():
            sides.append(stack.enter_context(made.plain(SINGLE, made.plain_database(), 4)))
        Event().wait(SETTLED_S)
        figures = [_of_a_second(each.pids) for each in sides]
    ours, beside = figures[0], figures[1] if len(figures) > 1 else (None, None)
    yield Row("at rest, processor time of a second", ours[0], beside[0], "ms", Aim(ours_max=50))
    yield Row("at rest, wake-ups of a second", ours[1], beside[1], "wake-ups", Aim())


def _of_a_second(pids: Mapping[str, int]) -> tuple[float, float]:
    """Return the processor's milliseconds and the wake-ups of all these processes in a second."""
    spent = {role: spent_s([pid]) for role, pid in pids.items()}
    woken = {role: wakeups([pid]) for role, pid in pids.items()}
    Event().wait(REST_S)
    ms = {role: (spent_s([pid]) - spent[role]) / REST_S * MS for role, pid in pids.items()}
    times = {role: (wakeups([pid]) - woken[role]) / REST_S for role, pid in pids.items()}
    told(f"at rest, ms a second: {_list(ms)}; wake-ups a second: {_list(times)}")
    return sum(ms.values()), sum(times.values())


def _list(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{role} {each:.0f}" for role, each in figures.items())
