"""A publisher whose queue a test can look into, break and work through."""

from uuid import UUID

from tests.installation import Process
from workers.dispatcher import Dispatcher
from workers.routes import Message
from workers.sweep import Sweep


class Refusing(Exception):
    """Raised by a broker that is away."""


class Queue:
    """Keeps what was published; breaks down after `capacity` messages while that is set."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.capacity: int | None = None
        self.waiting: int | None = None

    def publish(self, message: Message) -> None:
        if self.capacity is not None and len(self.messages) >= self.capacity:
            raise Refusing
        self.messages.append(message)

    def backlog(self, queue: str) -> int:
        assert queue == "lookup"
        return self.waiting if self.waiting is not None else len(self.messages)

    def taken(self) -> list[tuple[UUID, int]]:
        """Take all messages; return them as job and slice."""
        taken = [(UUID(str(job)), int(index)) for job, index in map(_arguments, self.messages)]
        self.messages = []
        return taken


def _arguments(message: Message) -> tuple[str | int, ...]:
    assert (message.actor, message.queue) == ("work_slice", "lookup")
    return message.arguments


class Sweeps:
    """Counts how often a sweep was asked for."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def dispatcher_of(process: Process, queue: Queue, sweeps: Sweeps | None = None) -> Dispatcher:
    return Dispatcher(process.source, queue, sweeps or Sweeps())


def sweep_of(process: Process, queue: Queue) -> Sweep:
    return Sweep(process.log, process.views, process.jobs, queue, process.clock)
