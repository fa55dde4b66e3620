"""The reply of every operation that ends in a link: what it is like now, as far as is known."""

from collections.abc import Mapping
from typing import Any

from flask import Response

from app.http.commanding import current_cause
from app.http.envelope import success
from app.http.link_view import show_link
from app.http.request_context import container
from domain.commands.link_readings import LinkReading
from domain.link import Link


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
    bought = {each.activation.plan.plan_id for each in reading.plans}
    return show_link(reading, container().known_plans.terms_of(bought))


def stale_meta(*, stale: bool) -> dict[str, Any]:
    """Return what `meta` says about how fresh the data are."""
    return {"stale": True} if stale else {}
