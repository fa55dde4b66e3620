"""A broker that loses, doubles, delays and reorders what it has confirmed."""

from tests.simulation.clock import SimulatedClock
from tests.simulation.hazards import Hazards
from workers.routes import Message

LATE_MAX_S = 90.0


class BrokerAway(Exception):
    """Raised when nothing was confirmed; the message may have landed all the same."""


class Broker:
    """All queues of the installation; they outlive every process."""

    def __init__(self, clock: SimulatedClock, hazards: Hazards) -> None:
        self._clock, self._hazards = clock, hazards
        self._waiting: list[tuple[float, Message]] = []  # Each from when on it may be taken.
        self.confirmed: set[Message] = set()
        self.away_until_s = 0.0

    @property
    def is_away(self) -> bool:
        return self._clock.elapsed_s < self.away_until_s

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def publish(self, message: Message) -> None:
        """Take a message and confirm it; it may still be lost."""
        if self.is_away:
            raise BrokerAway
        if not self._hazards.strikes("a message is lost"):
            self._put(message)
            if self._hazards.strikes("a message comes twice"):
                self._put(message)
        if self._hazards.strikes("a publish is not confirmed"):
            raise BrokerAway
        self.confirmed.add(message)

    def backlog(self, queue: str) -> int:
        if self.is_away:
            raise BrokerAway
        return sum(1 for _, message in self._waiting if message.queue == queue)

    def take(self) -> Message | None:
        """Deliver any message that is due."""
        now = self._clock.elapsed_s
        due = [] if self.is_away else [n for n, (at, _) in enumerate(self._waiting) if at <= now]
        return (
            self._waiting.pop(self._hazards.draw("which message").choice(due))[1] if due else None
        )

    def give_back(self, message: Message) -> None:
        """Put back what was not acknowledged."""
        self._waiting.append((self._clock.elapsed_s, message))

    def purge(self) -> int:
        """Drop all messages; return how many."""
        count = len(self._waiting)
        self._waiting.clear()
        return count

    def _put(self, message: Message) -> None:
        late_s = 0.0
        if self._hazards.strikes("a message is late"):
            late_s = self._hazards.draw("how late").uniform(0.0, LATE_MAX_S)
        self._waiting.append((self._clock.elapsed_s + late_s, message))
