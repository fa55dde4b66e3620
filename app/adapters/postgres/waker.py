"""Wakes followers on PostgreSQL: a thread listens for notifications of commits to the log."""

import os
from collections.abc import Collection
from select import POLLIN, poll
from threading import Event, Lock, Thread

import psycopg

from app.adapters.postgres.connection import BoundedConnection
from domain.log.signal import Signal, Streams
from projections.engine.complaint import Complaint
from projections.engine.follower import IDLE_S

CHANNEL = "log_events"
WORK_CHANNEL = "log_work"  # For commits that ask for work; the dispatcher needs no others.
CLOSE_S = 2.0
RETRY_S = 1.0
# Pause between two readings of notifications: who waits for one hears of it 5 ms later on average,
# and a busy service wakes each listener a hundred times a second instead of once per commit.
PACE_S = 0.01
PROBE_S = 5.0  # How often a quiet connection is asked whether it still works.
PROBE_ANSWER_S = 5.0
STREAMS_MAX = 240  # Names of streams in one notification, which has room for 8,000 bytes.
# Names no stream: wakes followers, but no waiter for a certain stream. A commit of mere steps, such
# as that of a lookup, tells nobody: followers look by themselves, and are hurried (`Log.hurry`).
NONE = "-"


class PostgresWaker:
    """Calls a signal for the commits of all processes; else waits end by time limits."""

    def __init__(self, appended: Signal, conninfo: str, channel: str) -> None:
        self._appended = appended
        self._conninfo = conninfo
        self._channel = channel
        self._lock = Lock()
        self._stop = Event()
        self._end = -1  # Ends the wait of the thread, which nothing else wakes at rest.
        self._thread: Thread | None = None

    def start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._end = os.eventfd(0)
                thread = Thread(target=self._run, name="listener", daemon=True)
                thread.start()
                self._thread = thread

    def close(self) -> None:
        with self._lock:
            thread = None if self._stop.is_set() else self._thread
            self._stop.set()
            if thread is not None:
                os.eventfd_write(self._end, 1)
        if thread is not None:
            thread.join(CLOSE_S)
            if not thread.is_alive():
                os.close(self._end)

    def _run(self) -> None:
        what = f"LISTEN on the log (who waits looks each {IDLE_S} s instead)"
        complaint = Complaint(what, expected=psycopg.Error)
        while not self._stop.is_set():
            try:
                self._listen(complaint)
            except Exception as error:  # noqa: BLE001  # Whatever the error, followers also look by themselves.
                complaint.of(error)
                self._stop.wait(RETRY_S)

    def _listen(self, complaint: Complaint) -> None:
        with BoundedConnection.open(self._conninfo) as connection:
            connection.execute(f"LISTEN {self._channel}")
            complaint.over()
            self._appended.hears_others = True
            self._appended.call()  # For commits made while nobody listened.
            try:
                self._hear_all(connection)
            finally:
                self._appended.hears_others = False

    def _hear_all(self, connection: BoundedConnection) -> None:
        connection.answer_s = PROBE_ANSWER_S
        heard, server = set[str](), connection.pgconn
        # Of what comes before the answer to a question; else the driver would drop it.
        connection.add_notify_handler(lambda notice: heard.add(notice.payload))
        waiting = poll()
        waiting.register(connection.fileno(), POLLIN)
        waiting.register(self._end, POLLIN)
        while not self._stop.is_set():
            if is_news := bool(waiting.poll(PROBE_S * 1_000)):
                server.consume_input()  # Raises when the connection is lost.
                while (news := server.notifies()) is not None:
                    heard.add(news.extra.decode(errors="replace"))
            else:  # Otherwise a broken connection would seem quiet for ever.
                connection.run("SELECT")
            if heard:  # Under load many. A call for nothing would outdate what requests remember.
                self._appended.call(streams_of(heard))
                heard.clear()
            if is_news:
                self._stop.wait(PACE_S)


def payload_of(streams: Streams) -> str:
    """Return the names of a commit's streams, for threads that wait for one; "" if too many."""
    if not streams:
        return NONE
    return ",".join(streams) if len(streams) <= STREAMS_MAX else ""


def streams_of(payloads: Collection[str]) -> Streams | None:
    """Return the streams that notifications name; None if one of them names none."""
    named = (text.split(",") for text in payloads if text != NONE)
    ids = {each for streams in named for each in streams}
    return None if "" in ids else ids  # One commit had too many streams to name.
