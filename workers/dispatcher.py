"""The dispatcher follows the log and publishes what events ask for, at least once.

Which event asks for which message stands in `workers/routes.py`.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from domain.log.aggregate import Event
from domain.log.log import EventRef, Recorded
from projections.engine.consumer import Consumer
from projections.engine.positions import Position, Source
from projections.engine.read_model import Batch
from workers.routes import ROUTES, Publisher, messages_for

logger = logging.getLogger(__name__)


class Dispatcher(Consumer):
    """Publishes first, then moves its position; a message may come twice, but is never lost.

    Without a position in this log the dispatcher starts at the head, so it never publishes the
    whole log again; what that leaves out is asked for by the beats of workers.
    """

    name = "dispatcher"
    uses = tuple(ROUTES)
    batch_max = 200  # Limits what is published twice after a crash in the middle of a batch.
    pace_s = 0.005  # Partners wait for what it sends, and its batches cost next to nothing.

    def __init__(
        self,
        source: Source,
        publisher: Publisher,
        around: Callable[[Event], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`around` is entered while the messages of an event are published."""
        super().__init__(source)
        self._publisher, self._around = publisher, around

    def start(self, lost: Position | None) -> EventRef | None:
        del lost
        head = self._log.head()
        if head:
            logger.warning("the dispatcher starts at position %d", head)
        return self.ref_at(head)

    def prepare(self, rows: Sequence[Recorded]) -> bool:
        """Publish what events ask for; return whether that was anything."""
        published = 0
        for _, event in rows:
            messages = [*messages_for(event)]
            if messages:
                with self._around(event):
                    for message in messages:
                        self._publisher.publish(message)
            published += len(messages)
        return published > 0

    def follow(self, connection: Any, batch: Batch) -> None:
        """Store nothing."""

    def is_transient(self, error: Exception) -> bool:  # noqa: ARG002  # Whatever it is.
        """Blame no event: it is the broker that is away."""
        return True
