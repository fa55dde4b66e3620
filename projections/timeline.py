"""The timeline of a link, failed ones too: every event about it, in the order of the log."""

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import to_builtins

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.refund_by_hand import RefundByHand
from domain.accounts.wallet import Wallet, kind_of
from domain.cost import Cost
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim
from domain.links.link import Link, named
from domain.links.lost_order import LostOrder
from domain.links.plan_change import Addition, PlanChange, Removal
from domain.log.aggregate import Event
from domain.log.log import Log
from domain.money import format_amount
from domain.personal import Vault, open_text

Facts = dict[str, Any]

# The fields that are shown. Others are not, so that no activation code ever gets out by mistake.
SHOWN = (
    *("iccid", "endpoint_id", "addon_id", "adopted", "order_reference", "placed_at", "network"),
    *("item", "attempt", "deadline", "until", "code", "details", "settled_at", "status"),
    *("installed_at", "first_used_at", "index", "change_id", "activation_id", "percent"),
    *("expires_at", "actor", "handover_id"),
)


class TimelineEntry(NamedTuple):
    """One event; `what` is its topic, `facts` are JSON values."""

    position: int
    at: datetime
    what: str
    facts: Facts


def timeline_of(log: Log, vault: Vault, link: Link, entries: Iterable[int]) -> list[TimelineEntry]:
    """Return every event about a link, whoever owns it; `entries` are positions of its money."""
    own = log.streams([link.id, *link.changes, LostOrder.id_of(link.id)])
    # Those of a lost order too. An eSIM may have been another link's before and after.
    iccids = {iccid for each in own if (iccid := getattr(each.event, "iccid", None))}
    esims = log.streams([Esim.id_of(link.network, each) for each in iccids])
    own += [each for each in esims if getattr(each.event, "link_id", None) == link.id]
    own += [each for position in entries for each in log.read(position - 1, 1)]
    return [
        TimelineEntry(position, event.timestamp, event.TOPIC, to_builtins(_facts(event, vault)))  # type: ignore[attr-defined]  # every concrete event has one
        for position, event in sorted(own, key=attrgetter("position"))
    ]


def _facts(event: Event, vault: Vault) -> Facts:
    fields = vars(event)
    facts = {name: fields[name] for name in SHOWN if fields.get(name) is not None}
    if isinstance(event, PlanChange.Event):
        facts["change_id"] = event.originator_id
    if isinstance(event, RefundByHand):
        facts |= {"reference": event.reference, "reason": event.reason}
    if isinstance(event, Wallet.Moved):
        facts |= _entry(event)
    for value in fields.values():
        facts |= _bought(value)
    if isinstance(event, PlanChange.Requested):
        facts["remove"] = [_step(each) for each in event.removals]
        facts["add"] = [_step(each) for each in event.additions]
    if isinstance(event, PlanChange.Failed | PlanChange.Returned | Link.Ended):
        facts["refunds"] = [_bought(each) for each in event.refunds]
    match event:
        case Link.Renamed():
            link_id, sealed = event.originator_id, named(event)
            facts["name"] = open_text(vault, event.organization_id, link_id, sealed)
        case Link.EndRequested():
            facts["kind"] = event.kind
        case Link.Ended():
            facts["reason"] = event.reason
    return {**facts, "request_id": event.request_id}


def _entry(event: Wallet.Moved) -> Facts:
    return {
        "kind": kind_of(event),
        "amount": format_amount(abs(event.amount_micros)),
        "currency": event.currency,
        "transaction_id": event.transaction_id,
        "description": event.description,
    }


def _bought(value: object) -> Facts:
    """Return plan, price or refund as shown; nothing for any other value."""
    match value:
        case BoughtPlan():
            return {"plan": value.name, "provider_plan_id": value.provider_plan_id}
        case PaidPrice():
            paid = {"amount": format_amount(value.amount_micros), "currency": value.currency}
            return {**paid, "transaction_id": value.transaction_id}
        case Cost():
            return {"cost": f"{format_amount(value.amount_micros)} {value.currency}"}
        case Repayment():
            # The currency is in the wallet's entry of the same commit.
            back = format_amount(value.amount_micros)
            return {"refunded": back, "transaction_id": value.transaction_id}
        case _:
            return {}


def _step(step: Removal | Addition) -> Facts:
    price = _bought(getattr(step, "price", None))
    return {"activation_id": step.activation_id, **_bought(step.plan), **price}
