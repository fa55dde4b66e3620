"""The reply of every operation that ends in a link: what it is like now, as far as is known."""

from collections.abc import Mapping

from flask import Response
from msgspec.structs import asdict

from app.http.commanding import current_cause
from app.http.envelope import success
from app.http.link_replies import ChangedLink, LinkDetail, show_link
from app.http.request_context import container
from domain.links.link import Link as LinkAggregate
from domain.links.readings import LinkReading
from domain.money import format_amount


def reply_link(
    link: LinkAggregate, kept_micros: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Reply with a link whose usage and status have been asked of the network just now.

    After a change of its plans, `kept_micros` is what that cost.
    What the network does not tell is what it told last, and `meta.stale` says so.
    """
    reading = container().link_readings.read(link, current_cause(), live=True)
    data = link_data(reading)
    if kept_micros is not None:
        amount, currency = format_amount(kept_micros), container().settings.currency
        data = ChangedLink(**asdict(data), amount_charged=amount, currency=currency)
    return success(data, stale=reading.stale, headers=headers)


def link_data(reading: LinkReading) -> LinkDetail:
    """Return a link with its plans and the networks that they reach at present."""
    bought = {each.activation.plan.plan_id for each in reading.plans}
    return show_link(reading, container().known_plans.terms_of(bought))
