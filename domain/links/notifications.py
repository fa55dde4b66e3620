"""Notifications that networks send: each only tells us which link to read.

Somebody who has recorded a signed notification can send it again, so its content is not trusted.
The link is read from its network, and only that reading counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from domain.cause import Cause
from domain.errors import NetworkUnavailable, NotFound, Unauthorized
from domain.links.esim import holder_of
from domain.links.link import Link
from domain.links.network import Forged, Notifying
from domain.links.readings import LinkReadings

FRESH = timedelta(seconds=10)  # A link is not read more often, however many notifications come.
FORGED = "The notification is not signed by this network."


@dataclass(frozen=True)
class Notifications:
    """Handles notifications, which may come twice, late, or forged."""

    reads: LinkReadings

    def receive(self, name: str, headers: Mapping[str, str], body: bytes, cause: Cause) -> None:
        """Read the link that a notification is about, unless it was read just now.

        Does nothing if no link has the eSIM. Raises NotFound for a network without notifications,
        Unauthorized for a wrong signature, NetworkUnavailable when the link cannot be read.
        """
        network = self.reads.networks.of(name)
        if not self.reads.networks.is_configured(name) or not isinstance(network, Notifying):
            raise NotFound
        try:
            iccid = network.notified(headers, body)
        except Forged:
            raise Unauthorized(FORGED) from None
        link_id = None if iccid is None else holder_of(self.reads.log, (name,), iccid)
        link = None if link_id is None else self.reads.log.find(Link, link_id)
        if link is None or not link.is_visible or self._is_fresh(link):
            return
        if self.reads.read(link, cause, live=True).stale:
            raise NetworkUnavailable

    def _is_fresh(self, link: Link) -> bool:
        reading = self.reads.readings.load([link.id]).get(link.id)
        usage = None if reading is None else reading.usage
        return usage is not None and abs(self.reads.clock() - usage.as_of) < FRESH
