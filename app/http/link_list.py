"""The list of links as partners read it: from the read model, with what the network said last."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from app.container import Container
from app.http.age import wait_for
from app.http.link_replies import Link, show_row
from app.http.paging import offset_of
from domain.links.network import Reading
from domain.links.readings import usage_of
from projections.models.link_search import LinkFilter
from projections.models.links import LinkRow

# Phone numbers are kept beside the read model, so what matches there is handed over by id. A part
# of a number that so many links share is no search.
NUMBERS_MAX = 10_000


def list_items(
    parts: Container, organization_id: UUID, query: Mapping[str, Any]
) -> tuple[list[Link], int]:
    """Return one page of links, newest first, and how many there are in all."""
    wait_for(parts, parts.links.name)
    rows, total = find_links(parts, organization_id, query)
    seen = parts.readings.find([row.id for row in rows])
    now = parts.clock()
    return [_item(parts, row, seen.get(row.id, Reading()), now) for row in rows], total


def find_links(
    parts: Container, organization_id: UUID, query: Mapping[str, Any]
) -> tuple[list[LinkRow], int]:
    """Return the links of a page as they are by the log, and how many there are in all."""
    search = query.get("search")
    also = _with_number(parts, organization_id, search) if search else ()
    wanted = LinkFilter(query.get("status"), search, also)
    offset, limit = offset_of(query), query["per_page"]
    return parts.links.page(parts.views, organization_id, wanted, offset=offset, limit=limit)


def _with_number(parts: Container, organization_id: UUID, search: str) -> Collection[UUID]:
    """Return the links whose phone number holds what is searched for."""
    digits, letters = (any(map(kind, search)) for kind in (str.isdigit, str.isalpha))
    if letters or not digits:  # No number holds a letter.
        return ()
    return parts.readings.with_msisdn(organization_id, search, NUMBERS_MAX)


def _item(parts: Container, row: LinkRow, seen: Reading, now: datetime) -> Link:
    plans = usage_of(row.current_activations, row.activations, seen.usage, now)
    lpa = parts.link_readings.open_lpa(row.organization_id, row.id, row.lpa)
    return show_row(row, plans, seen.usage, lpa)
