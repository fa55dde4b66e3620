"""An eSIM of a network; at most one unfinished or live link has it."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Self
from uuid import UUID

from domain.cause import Cause
from domain.errors import Conflict
from domain.log.aggregate import Created, Root, fact, sets
from domain.log.log import Log

# The number of an eSIM (ITU-T E.118). Its check digit is not verified.
ICCID_FORM = "[0-9]{18,22}"
ICCID = re.compile(ICCID_FORM)


class Esim(Root):
    """Which link holds an ICCID; `link_id` is None while none does."""

    TOPIC = "esim"

    class Registered(Created):
        """The first reservation of an eSIM begins its stream."""

        TOPIC = "esim.registered"
        SETS = sets("iccid")

        network: str
        iccid: str

    class Reserved(Root.Event):
        TOPIC = "esim.reserved"
        SETS = sets("link_id")

        link_id: UUID

    class Quarantined(Root.Event):
        """Its link failed, but until that moment the network may still create its endpoint."""

        TOPIC = "esim.quarantined"

        link_id: UUID
        until: datetime

    class Released(Root.Event):
        TOPIC = "esim.released"
        SETS = sets(link_id=None, freed_at=fact("timestamp"), freed_by=fact("link_id"))

        link_id: UUID

    iccid: str
    link_id: UUID | None = None
    freed_at: datetime | None = None  # When a link last gave it up, and which one.
    freed_by: UUID | None = None

    @classmethod
    def register(cls, network: str, iccid: str, cause: Cause) -> Self:
        """Begin the stream of an eSIM that no link has had before."""
        stream_id = Esim.id_of(network, iccid)
        return cls.begin(cls.Registered, cause, stream_id, network=network, iccid=iccid)

    def reserve(self, link_id: UUID, cause: Cause) -> None:
        """Give it to a link; saved together with that link."""
        assert self.link_id is None, self.link_id
        self.record(self.Reserved, cause, link_id=link_id)

    def quarantine(self, link_id: UUID, until: datetime, cause: Cause) -> None:
        """Keep it from other links until the network can no longer use it for the failed one."""
        self._require_holder(link_id)
        self.record(self.Quarantined, cause, link_id=link_id, until=until)

    def release(self, link_id: UUID, cause: Cause) -> None:
        """Free it for other links; raises Conflict, as `quarantine`, when others have before."""
        self._require_holder(link_id)
        self.record(self.Released, cause, link_id=link_id)

    def _require_holder(self, link_id: UUID) -> None:
        if self.link_id != link_id:
            raise Conflict(self.id)


def holder_of(
    log: Log, networks: Iterable[str], iccid: str, *, or_last: bool = False
) -> UUID | None:
    """Return the link that holds an ICCID at one of these networks; ICCIDs are unique.

    With `or_last`, if no link holds it, return the link that last gave it up.
    """
    for network in networks:
        esim = log.find(Esim, Esim.id_of(network, iccid))
        if esim is None:
            continue
        if holder := esim.link_id or (esim.freed_by if or_last else None):
            return holder
    return None
