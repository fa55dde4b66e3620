"""The clock's part of the monthly fee: it asks for a round, and a worker does it."""

from dataclasses import dataclass

from workers.publisher import Publisher
from workers.routes import fees_message


@dataclass(frozen=True)
class FeeRound:
    """Asks at every turn, unless the last one still waits: rounds are alike, one is enough."""

    publisher: Publisher

    def run(self) -> None:
        """Ask for one round."""
        if not self.publisher.backlog("billing"):
            self.publisher.publish(fees_message())
