"""The reply of every operation that ends in a link: what it is like now, as far as is known."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from flask import Response

from app.container import Container
from app.http.commanding import current_cause
from app.http.envelope import success
from app.http.link_view import show_link
from app.http.request_context import container
from domain.commands.link_readings import LinkReading
from domain.link import Link
from domain.plan import PlanTerms


def reply_link(
    link: Link, more: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Reply with a link whose usage and status have been asked of the network just now.

    What the network does not tell is what it told last, and `meta.stale` says so.
    """
    reading = container().link_readings.read(link, current_cause(), live=True)
    data = {**link_data(reading), **(more or {})}
    return success(data, meta=stale_meta(stale=reading.stale), headers=headers)


def link_data(reading: LinkReading) -> dict[str, Any]:
    """Return a link with its plans and the networks that they reach at present."""
    parts = container()
    bought = {each.activation.plan.plan_id for each in reading.plans}
    return show_link(reading, _present_terms(parts, bought))


def stale_meta(*, stale: bool) -> dict[str, Any]:
    """Return what `meta` says about how fresh the data are."""
    return {"stale": True} if stale else {}


def _present_terms(parts: Container, plan_ids: set[UUID]) -> dict[UUID, PlanTerms]:
    with parts.views.reading() as connection:
        rows = parts.plans.by_id(connection, plan_ids)
    return {plan_id: row.terms for plan_id, row in rows.items()}
