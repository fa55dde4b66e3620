"""The timeline of each link, failed ones too: every event about it, in the order of the log.

A name stays sealed in it, so it goes with its key.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Column, Connection, Table, Uuid, select

from domain.accounts.paid_price import PaidPrice, Repayment
from domain.accounts.refund_by_hand import RefundByHand
from domain.accounts.wallet import Wallet, kind_and_direction, links_of
from domain.cost import Cost
from domain.links.bought_plan import BoughtPlan
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import Addition, PlanChange, Removal
from domain.log.aggregate import Event
from domain.log.log import Recorded
from domain.money import format_amount
from domain.personal import Sealed, open_text
from projections.engine.database import to_micros
from projections.engine.inserting import insert_many
from projections.engine.read_model import ReadModel
from projections.engine.shape import Stored

Facts = dict[str, Any]

# The fields that are shown. Others are not, so that no activation code ever gets out by mistake.
SHOWN = (
    *("iccid", "endpoint_id", "addon_id", "adopted", "order_reference", "placed_at", "network"),
    *("item", "attempt", "deadline", "until", "code", "details", "settled_at", "status"),
    *("installed_at", "first_used_at", "index", "change_id", "activation_id", "percent"),
    *("expires_at", "actor"),
)
BY_HAND = (Link.RefundedByHand, PlanChange.RefundedByHand)


class TimelineEntry(Struct, frozen=True):
    """One event; `what` is its topic, `facts` are JSON values."""

    position: int
    at: datetime
    what: str
    facts: Facts


STORED = Stored(TimelineEntry)


class Timelines(ReadModel):
    """A row per link and event."""

    name = "timelines"
    uses = (Link.Event, PlanChange.Event, LostOrder.Event, Esim.Event, Wallet.Moved, *BY_HAND)

    def build(self) -> Sequence[Table]:
        """Define the table, which is read by its primary key."""
        self.rows = self.table(
            "link_timelines",
            Column("link_id", Uuid, primary_key=True),
            *STORED.columns("position"),
        )
        return [self.rows]

    def project(self, connection: Connection, batch: Sequence[Recorded]) -> None:
        """Insert a row for each event and each link that the event is about, in one statement."""
        rows: list[dict[str, Any]] = []
        for recorded in batch:
            event = recorded.event
            links = _links_of(event)
            if links:
                row = _row(recorded.position, event)
                rows += [{"link_id": link_id, **row} for link_id in links]
        insert_many(connection, self.rows, rows)

    def of_link(self, connection: Connection, link_id: UUID) -> list[TimelineEntry]:
        """Return every event about a link, whoever owns it."""
        columns = self.rows.c
        told = select(*(columns[name] for name in STORED.names)).where(columns.link_id == link_id)
        entries = map(STORED.read, connection.execute(told.order_by(columns.position)))
        return [replace(each, facts=self._opened(link_id, each.facts)) for each in entries]

    def _opened(self, link_id: UUID, facts: Facts) -> Facts:
        if isinstance(facts.get("name"), list):
            owner, sealed = msgspec.convert(facts["name"], tuple[UUID, Sealed])
            facts["name"] = open_text(self.vault, owner, link_id, sealed)
        return facts


def _links_of(event: Event) -> list[UUID]:
    match event:
        case Wallet.Moved():  # Most events are entries.
            return links_of(event)
        case Link.Event() | Link.RefundedByHand():
            return [event.originator_id]
        case PlanChange.Event() | PlanChange.RefundedByHand() | LostOrder.Event():
            return [event.link_id]
        case Esim.Reserved() | Esim.Quarantined() | Esim.Released():
            return [event.link_id]
        case _:
            return []


def _row(position: int, event: Event) -> dict[str, Any]:
    return {
        "position": position,
        "at": to_micros(event.timestamp),
        "what": type(event).TOPIC,  # type: ignore[attr-defined]  # every concrete event has one
        "facts": msgspec.json.encode(_facts(event)).decode(),
    }


def _facts(event: Event) -> Facts:
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
            sealed = event.sealed_name
            facts["name"] = event.name if sealed is None else (event.organization_id, sealed)
        case Link.EndRequested():
            facts["kind"] = event.kind
        case Link.Ended():
            facts["reason"] = event.reason
    return {**facts, "request_id": event.request_id}


def _entry(event: Wallet.Moved) -> Facts:
    return {
        "kind": kind_and_direction(event)[0],
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
    parts: Iterable[object] = (step.plan, getattr(step, "price", None))
    facts: Facts = {"activation_id": step.activation_id}
    for part in parts:
        facts |= _bought(part)
    return facts
