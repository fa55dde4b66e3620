"""The link that a path names, by id or ICCID: read from the log itself, so that it is never old."""

import re
from uuid import UUID

from app.authorization import Caller
from app.http.identifiers import parse_id
from app.http.request_context import container
from domain.errors import NotFound
from domain.links.esim import Esim, esim_id
from domain.links.link import Link as LinkAggregate

_ICCID = re.compile(r"[0-9]{18,22}", re.ASCII)  # ITU-T E.118; the check digit is not looked at.


def find_link(caller: Caller, identifier: str) -> LinkAggregate:
    """Return a link of the caller; NotFound for any other, and for one that is not active yet."""
    link_id = _holder_of(identifier) if _ICCID.fullmatch(identifier) else parse_id(identifier)
    link = container().log.find(LinkAggregate, link_id)
    if link is None or link.organization_id != caller.organization_id or not link.is_visible:
        raise NotFound
    return link


def _holder_of(iccid: str) -> UUID:
    """Return the one link that an eSIM belongs to."""
    parts = container()
    esim = parts.log.find(Esim, esim_id(parts.network.name, iccid))
    if esim is None or esim.link_id is None:
        raise NotFound
    return esim.link_id
