"""An installation whose processes take turns by hand, so that what they ask can be counted.

On PostgreSQL each role is a process of its own, as in the Procfile; on SQLite one plays them all.
No thread of theirs runs on its own: whoever was woken works, in one order, on a clock that moves by
a millisecond with each operation. While a request waits, the others do all that there is to do.
PostgreSQL is told that a scan costs a fortune, for at the size of a test it is often the better
plan: a table that is scanned all the same has no index for what it was asked.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest

from app.bootstrap.container import Container
from domain.log.log import with_news
from domain.webhooks.deliveries import Sent
from tests.app.http.service import Service
from tests.budgets.tally import Tally
from tests.installation import SetClock, wait_until
from tests.seeds import Seed
from workers.routes import Message

OTHERS = ("projector", "dispatcher", "worker", "planner")  # The last is beside the dispatcher.
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


class Crew:
    """The processes of one installation; requests come in at its `service`."""

    def __init__(self, directory: Path, seed: Seed, tally: Tally) -> None:
        self.tally, self._seed, self.url = tally, seed, seed.copy(directory)
        self._is_many = self.url.startswith("postgresql")
        self._is_closed, self.scanned = False, set[str]()
        if self._is_many:
            with self.bystander() as server:
                name = urlsplit(self.url).path[1:]
                server.execute(f"ALTER DATABASE {name} SET enable_seqscan = off")
                server.execute("SELECT pg_stat_reset()")
        self._clock = SetClock()
        self._messages, self._heard = deque[Message](), 0
        self._behind = {"projector", "dispatcher"}
        self.service = Service(
            directory, migrated=False, clock=self._clock, DATABASE_URL=self.url, SANDBOX="false"
        )
        self.web = self.service.container
        self.web.role = "web"
        self._others = {role: self._other(role) for role in OTHERS}
        for container in self._containers:
            self._prepare(container)
        self._lend_news()
        self.web.keys.ensure()
        self.web.webhook_key.ensure()
        self.web.prices.refresh()  # As a thread of it does each second.
        self.settle()

    @property
    def _containers(self) -> list[Container]:
        return [self.web, *self._others.values()] if self._is_many else [self.web]

    @property
    def database(self) -> str:
        return "postgresql" if self._is_many else "sqlite"

    def settle(self, *, look: bool = False) -> None:
        """Let everybody do what there is to do; `look`: followers look in any case."""
        self._clock.forward(milliseconds=1)  # What was read at one moment counts from the next on.
        if look:
            self._behind = {"projector", "dispatcher"}
        while self._behind or self._messages:
            if "projector" in self._behind:
                self._behind.discard("projector")
                with self._playing("projector"):
                    self._others["projector"].projector.step()
            self._work()

    def plan(self) -> None:
        """Plan what endpoints are told; the messages wait."""
        with self._playing("planner"):
            planner = self._others["planner"].webhook_planner
            while planner.step():
                pass

    def bystander(self) -> psycopg.Connection[Any]:
        """Return a session of PostgreSQL whose statements do not count."""
        return psycopg.connect(self.url, autocommit=True, application_name="bystander")

    def close(self) -> None:
        """End all of them; then `scanned` has the tables that PostgreSQL has read whole."""
        if self._is_closed:
            return
        self._is_closed = True
        for container in self._containers[1:]:
            container.close()
        self.service.stop()
        if self._is_many:
            with self.bystander() as server:
                # A session tells its numbers as it ends.
                wait_until(lambda: server.execute(SESSIONS).fetchone() == (0,))
                told = server.execute("SELECT relname FROM pg_stat_user_tables WHERE seq_scan > 0")
                self.scanned = {name for (name,) in told}
        self._seed.drop(self.url)

    def _other(self, role: str) -> Container:
        if not self._is_many:
            return self.web
        container = Container(self.web.settings, self._clock)
        container.role = role
        return container

    def _prepare(self, container: Container) -> None:
        """Take its messages, and see each commit of it."""
        parts = vars(container)
        parts["publisher"] = Messages(self._messages)
        parts["webhook_sender"] = Accepting()
        insert = container.log.insert

        def inserted(*args: Any) -> int:
            heard = self._heard
            position = insert(*args)
            if self._is_many and with_news(*args):  # Nobody is told of mere steps.
                wait_until(lambda: self._heard > heard)
            self._behind = {"projector", "dispatcher"}
            return position

        cast("Any", container.log).insert = inserted

    def _lend_news(self) -> None:
        """Let the others work while a request waits, and know what the listener has heard."""
        signal: Any = self.web.log.appended
        watching, call = signal.watching, signal.call

        def called(*args: Any) -> None:
            call(*args)
            self._heard += threading.current_thread().name == "listener"

        @contextmanager
        def lent(*args: Any) -> Iterator[Event]:
            with watching(*args) as event:
                yield cast("Event", News(event, self._work))

        signal.watching, signal.call = lent, called
        if self._is_many:
            self.web.listen()
            wait_until(lambda: self._heard > 0)

    def _work(self) -> None:
        """Dispatch and do the work, as they do while a request waits."""
        while "dispatcher" in self._behind or self._messages:
            with self._playing("dispatcher"):
                self._behind.discard("dispatcher")
                self._others["dispatcher"].dispatcher.step()
            with self._playing("worker"):
                while self._messages:
                    self._do(self._messages.popleft())

    def _do(self, message: Message) -> None:
        worker, first = self._others["worker"], UUID(str(message.arguments[0]))
        match message.actor:
            case "work_slice":
                worker.due_work.answer(first, int(message.arguments[1]))
            case "work_link":
                worker.provisioning.work(first)
            case "work_plan_change":
                worker.plan_changes.work(first)
            case "tell_endpoint":
                worker.webhook_work.deliver(first, UUID(str(message.arguments[1])))
            case _:
                raise AssertionError(message)

    @contextmanager
    def _playing(self, role: str) -> Iterator[None]:
        before, self.tally.playing = self.tally.playing, role
        yield
        self.tally.playing = before


@pytest.fixture
def crew(
    tmp_path: Path, migrated: Seed, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Crew]:
    """Processes for which no time passes, so no recurring work runs."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    made = Crew(tmp_path, migrated, tally)
    yield made
    made.close()


class News:
    """What a request waits for: while it does, the others work."""

    def __init__(self, event: Event, work: Callable[[], None]) -> None:
        self._event, self._work = event, work
        self.clear, self.is_set = event.clear, event.is_set

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until somebody has told, however long the others take by the clock."""
        del timeout_s
        if not self.is_set():
            self._work()
        assert self.is_set(), "nobody has told what this request waits for"
        return True


class Accepting:
    """Every endpoint takes what it is told."""

    @staticmethod
    def send(url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        assert url
        assert body
        assert headers["webhook-signature"]
        return Sent(200, None, 1)


class Messages:
    """The queues, as one process reaches them."""

    def __init__(self, waiting: deque[Message]) -> None:
        self._waiting = waiting
        self.publish = waiting.append

    def backlog(self, queue: str) -> int:
        return sum(each.queue == queue for each in self._waiting)
