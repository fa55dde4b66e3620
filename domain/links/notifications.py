"""Notifications that networks send: each only tells us which link to read.

Somebody who has recorded a signed notification can send it again, so its content is not trusted.
The link is read from its network, and only that reading counts.
"""

from collections.abc import Mapping
from datetime import timedelta

from domain.cause import Cause
from domain.errors import NetworkUnavailable, NotFound, Unauthorized
from domain.links.esim import holder_of
from domain.links.link import Link
from domain.links.network import Forged, Notifying
from domain.links.readings import LinkReadings

FRESH = timedelta(seconds=10)  # A link is not read more often, however many notifications come.
FORGED = "The notification is not signed by this network."


def receive(
    reads: LinkReadings, name: str, headers: Mapping[str, str], body: bytes, cause: Cause
) -> None:
    """Read the link that a notification is about, unless it was read just now.

    It may come twice, late, or forged. Does nothing if no link has the eSIM. Raises NotFound for a
    network without notifications, Unauthorized for a wrong signature, NetworkUnavailable when the
    link cannot be read.
    """
    network = reads.networks.of(name)
    if not reads.networks.is_configured(name) or not isinstance(network, Notifying):
        raise NotFound
    try:
        iccid = network.notified(headers, body)
    except Forged:
        raise Unauthorized(FORGED) from None
    link_id = None if iccid is None else holder_of(reads.log, (name,), iccid)
    link = None if link_id is None else reads.log.find(Link, link_id)
    if link is None or not link.is_visible:
        return
    reading = reads.readings.load([link.id]).get(link.id)
    usage = None if reading is None else reading.usage
    if usage is not None and abs(reads.clock() - usage.as_of) < FRESH:
        return
    if reads.read(link, cause, live=True).stale:
        raise NetworkUnavailable
