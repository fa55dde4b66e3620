"""Replies that wait for a commit, where no thread may wait for it."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Response

from domain.at_once import WouldWait
from domain.errors import Conflict, Refused, ServiceUnavailable
from domain.lookups.single import Begun, LookupResult


@dataclass(frozen=True, slots=True)
class Later:
    """What a view returns to a thread that must not wait: what has begun, and how it is shown."""

    begun: Begun
    show: Callable[[LookupResult], Response]

    def end(self) -> Response:
        """Return the reply, once there is an outcome; WouldWait if nothing was committed.

        Nobody knows that of an outcome that is not known: what then is raised is the reply.
        """
        self.begun.leave()
        try:
            return self.show(self.begun.result())
        except ServiceUnavailable:
            raise
        except (Conflict, Refused):
            raise WouldWait from None
