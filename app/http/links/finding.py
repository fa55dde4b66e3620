"""Finds links for requests and replies with them.

A link that a path names, by id or ICCID, is read from the log itself, so it is never old. The list
comes from the read model, with what the network told last.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec.structs import asdict, replace

from app.bootstrap.container import Container
from app.http.edge.input import parse_id
from app.http.edge.replies import Answer, filters_of, part_of, wait_for
from app.http.edge.request import Given
from app.http.links.replies import Link, LinkDetail, Offered, show_link, show_row
from app.security.authorization import Caller
from domain.errors import NotFound
from domain.links.esim import ICCID, holder_of
from domain.links.link import Link as LinkAggregate
from domain.links.network import NetworkReading
from domain.links.readings import LinkReading, usage_of
from projections.models.links import LinkFilter, LinkRow


def load_link(caller: Caller, given: Given[Any], identifier: str) -> LinkAggregate:
    """Return a link of the caller; NotFound for any other, and for one that is not active yet.

    An eSIM names the link that it belongs to, or that had it last.
    """
    log, names = given.parts.log, given.parts.network_names
    is_esim = ICCID.fullmatch(identifier)
    link_id = holder_of(log, names, identifier, or_last=True) if is_esim else parse_id(identifier)
    link = log.find(LinkAggregate, link_id) if link_id is not None else None
    if link is None or link.organization_id != caller.organization_id or not link.is_visible:
        raise NotFound
    return link


# Phone numbers are stored apart from the read model, so matches are passed on as ids: at most this
# many, because a part of a number that more links share is no useful search.
NUMBERS_MAX = 10_000


def list_items(
    parts: Container, organization_id: UUID, query: Mapping[str, Any]
) -> tuple[list[Link], int]:
    """Return one page of links, and how many match in all."""
    wait_for(parts, parts.links.name)
    wanted = LinkFilter(**filters_of(query))
    if wanted.search:
        wanted = replace(wanted, also=_with_number(parts, organization_id, wanted.search))
    rows, total = parts.links.page(parts.views, organization_id, wanted, part_of(query))
    seen = parts.readings.load([row.id for row in rows])
    now = parts.clock()
    return [_item(parts, row, seen.get(row.id, NetworkReading()), now) for row in rows], total


def _with_number(parts: Container, organization_id: UUID, search: str) -> Collection[UUID]:
    """Return the links whose phone number contains the search term."""
    digits, letters = (any(map(kind, search)) for kind in (str.isdigit, str.isalpha))
    if letters or not digits:  # Phone numbers hold digits and no letters.
        return ()
    return parts.readings.with_msisdn(organization_id, search, NUMBERS_MAX)


def _item(parts: Container, row: LinkRow, seen: NetworkReading, now: datetime) -> Link:
    plans = usage_of(row.current_activations, row.activations, seen.usage, now)
    code = parts.link_readings.open_code(row.organization_id, row.id, row.lpa)
    return show_row(row, plans, seen.usage, code, _offered(parts, row.network))


def _offered(parts: Container, network: str | None) -> Offered:
    return parts.networks.of(network).capabilities, parts.link_ending.cancel_within


def show_read(
    given: Given[Any],
    link: LinkAggregate,
    kind: type[LinkDetail] = LinkDetail,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Answer:
    """Answer with a link, after asking the network for its usage and status.

    `more` is what the reply of another kind has besides. If the network cannot be reached the reply
    shows what it told last, with `meta.stale`.
    """
    parts = given.parts
    reading = parts.link_readings.read(link, given.cause(parts.clock()), live=True)
    given.stale = reading.stale
    data = link_data(parts, reading)
    return Answer(kind(**asdict(data), **more) if more else data, headers=headers)


def link_data(parts: Container, reading: LinkReading) -> LinkDetail:
    """Return a link with its plans and the networks that the plans can use at present."""
    bought = {each.activation.plan.plan_id for each in reading.plans}
    offered = _offered(parts, reading.link.network)
    plans = parts.views.read(parts.plans.by_id, bought)
    return show_link(reading, {each: plan.terms for each, plan in plans.items()}, offered)
