"""What the ids of a run stand for, by its log: they may differ where roles are the same."""

import re
from collections import Counter
from typing import Any
from uuid import UUID

from domain.accounts.monthly_fee import MonthlyFee
from domain.accounts.wallet import Wallet
from domain.links.esim import Esim
from domain.links.link import Link
from domain.links.lost_order import LostOrder
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.lookups.bulk_job import BulkJob
from tests.simulation.template import Template

EVENTS_MAX = 100_000
IDS = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{18,21}")
SENT = re.compile("request-([0-9]+)")
BEGUN: dict[type[Any], str] = {Link: "link", PlanChange: "change", BulkJob: "job"}
# What of a reply is compared: moments and usage follow the clock.
SHOWN = {
    *("data", "activations", "link", "id", "job_id", "iccid", "name", "network", "status"),
    *("plan_id", "amount_charged", "balance_after", "refunded", "removed", "added"),
    *("error", "errors", "code", "message", "details", "retryable"),
}


class Roles:
    """Names streams after their request, and whatever else has an id after those."""

    def __init__(self, world: Any, template: Template) -> None:
        self._world = world
        owners = enumerate(template.organizations, 1)
        self._names = {str(each): f"customer {number}" for number, each in owners}
        self._names |= {str(plan_id): item for plan_id, item in template.plans.items()}
        self._requests: dict[str, int] = {}
        self._position = 0
        self._tried: Counter[str] = Counter()
        self.made: dict[int, UUID] = {}  # The newest link or job, by the number of its request.
        self.holders: dict[str, UUID] = {}  # The link of an eSIM, and of an endpoint.
        self.streams: dict[str, tuple[type[Any], UUID]] = {}
        self.entries: list[str] = []  # Of wallets.

    def read(self) -> None:
        """Name what is new in the log, and take down the entries of wallets."""
        for recorded in self._world.outside.log.read(self._position, EVENTS_MAX):
            self._position, event = recorded.position, recorded.event
            self._name(event, event.originator_id)
            for member in ("iccid", "endpoint_id") if isinstance(event, Link.Event) else ():
                self.holders[getattr(event, member, "")] = event.originator_id
            if isinstance(event, Wallet.Moved):
                about = f"{event.reference.type} {self.text(event.reference.id)}"
                entry = f"{type(event).__name__} {event.amount_micros} for {about}"
                self.entries.append(f"{self.of(event.organization_id)}: {entry}")

    def _name(self, event: Event, stream: UUID) -> None:
        sent = SENT.fullmatch(event.request_id)
        number = int(sent[1]) if sent else 0
        if isinstance(event, (Link.Began, PlanChange.Requested, BulkJob.Created)):
            kind = next(each for each in BEGUN if isinstance(event, each.Event))
            self._call(stream, f"{BEGUN[kind]} {number}", number)
            self._add(self.of(stream), kind, stream)
            if kind is not PlanChange:
                self.made[number] = stream
        match event:
            case PlanChange.Requested():
                for index, each in enumerate(event.additions, 1):
                    self._call(each.activation_id, f"addition {index} of change {number}", number)
            case LostOrder.Opened():
                self.streams[f"lost order of {self.of(event.link_id)}"] = (LostOrder, stream)
            case LostOrder.Found():
                self.holders[event.iccid] = self._world.outside.log.get(LostOrder, stream).link_id
            case MonthlyFee.Due():
                self._call(stream, event.month, number)
            case Link.Activated():
                self._call(event.activation_id, f"first plan of {self.of(stream)}", number)
            case Esim.Registered():
                self.streams[f"eSIM {event.iccid}"] = (Esim, stream)

    def _add(self, role: str, kind: type[Any], stream: UUID) -> None:
        if role in self.streams:  # It failed, and the request came once more.
            self._tried[f"{role}, try"] += 1
            self.streams[f"{role}, try {self._tried[f'{role}, try']}"] = self.streams[role]
        self.streams[role] = (kind, stream)

    def _call(self, it: object, name: str, number: int) -> None:
        self._names[str(it)] = name
        self._requests[str(it)] = number

    def of(self, it: object) -> str:
        """Return the role of an id."""
        return self._names.get(str(it), "an id")

    def request_of(self, it: object) -> int:
        """Return the number of the request that made something."""
        return self._requests.get(str(it), 0)

    def tried(self, iccid: str, link: str) -> str:
        """Name an eSIM after the link that tried it first."""
        if iccid not in self._names:
            self._tried[link] += 1
            self._names[iccid] = f"eSIM {self._tried[link]} of {link}"
        return self._names[iccid]

    def text(self, text: str) -> str:
        return IDS.sub(lambda found: self.of(found[0]), text)

    def shown(self, body: Any) -> Any:
        """Return what is compared of a reply."""
        if isinstance(body, dict):
            return {name: self.shown(each) for name, each in body.items() if name in SHOWN}
        if isinstance(body, list):
            return [self.shown(each) for each in body]
        return self.text(body) if isinstance(body, str) else body
