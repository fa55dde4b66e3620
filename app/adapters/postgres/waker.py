"""Wakes followers on PostgreSQL: a thread listens for the notifications of the log's commits."""

import time
from collections.abc import Collection
from select import POLLIN, poll
from threading import Event, Lock, Thread

import psycopg
from psycopg.pq.abc import PGconn

from app.adapters.postgres.connection import BoundedConnection
from domain.log.signal import Signal, Streams
from projections.engine.complaint import Complaint
from projections.engine.follower import IDLE_S

CHANNEL = "log_events"
WORK_CHANNEL = "log_work"  # Of commits that ask for work: the dispatcher has no use for others.
LISTEN_S = 0.2  # How often the listener looks whether it should end.
CLOSE_S = 2.0
RETRY_S = 1.0
PACE_S = 0.002  # Between two looks at what has come.
PROBE_S = 5.0  # A quiet connection is asked so often whether it still hears.
PROBE_ANSWER_S = 5.0
STREAMS_MAX = 240  # A notification holds 8,000 bytes.
NONE = "-"  # Followers are woken by it, and nobody who waits for one stream.


class PostgresWaker:
    """Listens from the first wait on; data never depends on it, every wait is bounded."""

    def __init__(self, appended: Signal, conninfo: str, channel: str = CHANNEL) -> None:
        self._appended = appended
        self._conninfo = conninfo
        self._channel = channel
        self._lock = Lock()
        self._stop = Event()
        self._thread: Thread | None = None

    @property
    def count(self) -> int:
        """A mark of the present moment, for `wait`."""
        return self._appended.count

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Wait, at most so long, until the log has grown since the mark."""
        self.start()
        return self._appended.wait(seen, timeout_s)

    def start(self) -> None:
        """Begin to listen."""
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = Thread(target=self._run, name="listener", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        with self._lock:
            self._stop.set()
            thread = self._thread
        if thread is not None:
            thread.join(CLOSE_S)

    def _run(self) -> None:
        what = f"LISTEN on the log (who waits looks each {IDLE_S} s instead)"
        complaint = Complaint(what, expected=psycopg.Error)
        while not self._stop.is_set():
            try:
                self._listen(complaint)
            except Exception as error:  # noqa: BLE001  # Whatever it is, followers look by themselves.
                complaint.of(error)
                self._stop.wait(RETRY_S)

    def _listen(self, complaint: Complaint) -> None:
        with BoundedConnection.open(self._conninfo) as connection:
            connection.execute(f"LISTEN {self._channel}")
            complaint.over()
            self._appended.hears_others = True
            self._appended.call()  # What came while nobody listened.
            try:
                self._hear_all(connection)
            finally:
                self._appended.hears_others = False

    def _hear_all(self, connection: BoundedConnection) -> None:
        connection.answer_s = PROBE_ANSWER_S
        waiting = poll()
        waiting.register(connection.fileno(), POLLIN)
        heard_at = time.monotonic()
        while not self._stop.is_set():
            if waiting.poll(LISTEN_S * 1_000):
                self._hear(connection.pgconn)
                heard_at = time.monotonic()
                self._stop.wait(PACE_S)
            elif time.monotonic() > heard_at + PROBE_S:
                connection.run("SELECT")  # One that is deaf would be quiet for ever.
                self._appended.call()  # The driver has dropped what came before its answer.
                heard_at = time.monotonic()

    def _hear(self, server: PGconn) -> None:
        """Take all that has come, as one call: under load it is many commits."""
        server.consume_input()  # Raises when the connection is lost.
        payloads = set[bytes]()
        while (news := server.notifies()) is not None:
            payloads.add(news.extra)
        if payloads:
            self._appended.call(hear(payloads))


def tell(streams: Streams) -> str:
    """Name the streams of a commit, for who waits for one; empty when they are too many."""
    if not streams:
        return NONE
    return ",".join(streams) if len(streams) <= STREAMS_MAX else ""


def hear(payloads: Collection[bytes]) -> Streams | None:
    """Return the streams of notifications; None when one does not tell them."""
    texts = (payload.decode(errors="replace") for payload in payloads)
    # The release before wrote them with hyphens.
    named = (text.replace("-", "").split(",") for text in texts if text != NONE)
    told = {each for streams in named for each in streams}
    return None if "" in told else told  # They were too many.
