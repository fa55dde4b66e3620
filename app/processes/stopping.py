"""How a process learns that it should end."""

import signal
from threading import Event
from types import FrameType


def stop_on_signals() -> Event:
    """Return what is set by SIGTERM or SIGINT; a second signal ends the process at once."""
    stop = Event()

    def ask(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask)
    return stop
