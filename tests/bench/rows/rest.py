"""What all our processes take of the processor while nobody asks for anything."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from threading import Event

from tests.bench.engine import on_postgres
from tests.bench.processor import spent_s
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
    name, beside = "at rest, processor time of a second", figures[1] if figures[1:] else None
    yield Row(name, figures[0], beside, "ms", Aim(ours_max=50))


def _of_a_second(pids: Mapping[str, int]) -> float:
    """Return the processor's milliseconds of all these processes in a second."""
    spent = {role: spent_s([pid]) for role, pid in pids.items()}
    Event().wait(REST_S)
    ms = {role: (spent_s([pid]) - spent[role]) / REST_S * MS for role, pid in pids.items()}
    told(f"at rest, ms a second: {', '.join(f'{role} {each:.0f}' for role, each in ms.items())}")
    return sum(ms.values())
