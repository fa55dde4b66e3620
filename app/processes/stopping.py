"""How a process learns that it should end."""

import signal
from socket import socket, socketpair
from threading import Event, Thread
from types import FrameType

ASKS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals() -> Event:
    """Return what is set by SIGTERM or SIGINT; a second signal ends the process at once.

    A thread sets it: a handler runs inside the main thread, which may just hold the lock of the
    event that it waits for, and would then wait for itself for ever.
    """
    stop = Event()
    hears, told = socketpair()
    told.settimeout(0)  # Python wants it so: nothing may wait inside a signal.
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    Thread(target=_hear, args=(hears, told, stop), name="signals", daemon=True).start()
    for number in ASKS:
        signal.signal(number, _next_one_ends)
    return stop


def _next_one_ends(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)


def _hear(hears: socket, _told: socket, stop: Event) -> None:
    """Read the numbers of signals; the other end is only kept open."""
    while not set(hears.recv(64)) & set(ASKS):
        pass
    stop.set()
