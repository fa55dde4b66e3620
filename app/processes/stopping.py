"""What a supervisor and a process tell each other: signals to end, and notifications to systemd."""

import logging
import os
import signal
import time
from contextlib import suppress
from socket import AF_UNIX, SOCK_DGRAM, socket, socketpair
from threading import Event, Thread

from app.settings import notify_socket

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
CLEAN_END_S = 28.0  # A process ends within 30 s of SIGTERM.
READY, ALIVE = "READY=1", "WATCHDOG=1"
ALIVE_S = 1.0  # Between two signs of life; WatchdogSec= should be twice as long at least.

logger = logging.getLogger(__name__)


def stop_on_signals(cut_off_after_s: float | None = CLEAN_END_S) -> Event:
    """Return an event that SIGTERM or SIGINT sets; a second signal ends the process at once.

    After `cut_off_after_s` the process exits with status 1, because a database or other server that
    hangs may hold up its end. Like a kill, that loses nothing. None: there is no time limit.

    A thread sets the event. A signal handler runs in the main thread, which may hold the event's
    lock because it waits for the event; setting the event there would be a deadlock.
    """
    stop = Event()
    hears, signals = socketpair()
    signals.settimeout(0)  # Python requires it, because nothing may block inside a signal handler.
    signal.set_wakeup_fd(signals.fileno(), warn_on_full_buffer=False)
    Thread(
        target=_hear, args=(hears, signals, stop, cut_off_after_s), name="signals", daemon=True
    ).start()
    for number in STOP_SIGNALS:
        signal.signal(
            number, lambda its, _: signal.signal(its, signal.SIG_DFL)
        )  # The next ends it.
    return stop


def notify(state: str) -> None:
    """Send READY or ALIVE to systemd, if it started this process; never waits (sd_notify(3))."""
    if address := notify_socket():
        with suppress(OSError), socket(AF_UNIX, SOCK_DGRAM) as sender:
            sender.settimeout(0)
            sender.sendto(state.encode(), address)


def wait_alive(stop: Event) -> None:
    while not stop.wait(ALIVE_S if notify_socket() else None):
        notify(ALIVE)


def _hear(hears: socket, _signals: socket, stop: Event, cut_off_after_s: float | None) -> None:
    """Read the numbers of signals; `_signals` is only kept open."""
    while not set(hears.recv(64)) & set(STOP_SIGNALS):
        pass
    stop.set()
    if cut_off_after_s is not None:
        time.sleep(cut_off_after_s)
        logger.critical("stopping took too long; the process exits now")
        os._exit(1)
