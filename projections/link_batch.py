"""What a batch of events comes to for each link: of several changes the last one counts."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from domain.links.link import Link
from domain.links.network import LinkStatus
from domain.log.log import Recorded
from projections.database import to_micros

BETWEEN = "\n"  # What stands between the texts of a link: neither ICCIDs nor ids hold it.

Values = dict[str, Any]
Rows = list[Values]
RowsById = dict[UUID, Values]

# Columns of a link that events change, together where one event brings them together.
CHANGING = (("status",), ("lpa_month", "lpa_box"), ("installed_at",), ("first_used_at",))


class LinkBatch:
    """The rows to write: new links and activations as the batch leaves them, then what is older.

    A link is there from its activation on; nothing is known of one that has failed.
    """

    def __init__(self, batch: Sequence[Recorded]) -> None:
        self._links: RowsById = {}
        self._changes: RowsById = {}
        self._activations: RowsById = {}
        self._removals: dict[UUID, int] = {}
        for recorded in batch:
            self._add(recorded.position, recorded.event)

    def _add(self, position: int, event: object) -> None:
        match event:
            case Link.Activated():
                self._links[event.originator_id] = _new_link(position, event)
                self._activations[event.activation_id] = _new_activation(position, event)
            case Link.PlanAdded():
                self._activations[event.activation_id] = _new_activation(position, event)
            case Link.PlanRemoved():
                self._removals[event.activation_id] = to_micros(event.timestamp)
            case Link.Event():
                changes = _changes(event)
                if changes:
                    self._changes.setdefault(event.originator_id, {}).update(changes)

    @property
    def links(self) -> Rows:
        """Links that this batch has activated."""
        return [row | self._changes.get(link_id, {}) for link_id, row in self._links.items()]

    def changed(self, columns: Sequence[str]) -> Rows:
        """Return the new values of some columns, for links that were there."""
        return [
            {"link": link_id, **{f"new_{name}": changes[name] for name in columns}}
            for link_id, changes in self._changes.items()
            if link_id not in self._links and columns[0] in changes
        ]

    @property
    def activations(self) -> Rows:
        """Plans that this batch has put on links."""
        return [
            row | {"removed_at": self._removals.get(activation_id)}
            for activation_id, row in self._activations.items()
        ]

    @property
    def removals(self) -> Rows:
        """Plans that were there and have been taken off."""
        return [
            {"activation": activation_id, "at": at}
            for activation_id, at in self._removals.items()
            if activation_id not in self._activations
        ]


def status_after(event: object) -> LinkStatus | None:
    """Return the status that an event gives to its link; None when it says nothing about it."""
    match event:
        case Link.Activated() | Link.Reactivated():
            return "active"
        case Link.Suspended():
            return "suspended"
        case Link.StatusSeen() | Link.StatusKept():
            return event.status
        case _:
            return None


def fold(text: str) -> str:
    """Return a text so that texts which differ only in case are the same."""
    return text.casefold()


def _changes(event: Link.Event) -> Values:
    match event:
        case Link.LpaStored():
            return {"lpa_month": event.lpa.month, "lpa_box": event.lpa.box}
        case Link.Installed():
            return {"installed_at": to_micros(event.installed_at)}
        case Link.FirstUsed():
            return {"first_used_at": to_micros(event.first_used_at)}
        case _:
            status = status_after(event)
            return {"status": status} if status is not None else {}


def _new_link(position: int, event: Link.Activated) -> Values:
    profile, lpa = event.sponsor_profile, event.lpa
    return {
        "id": event.originator_id,
        "organization_id": event.organization_id,
        "position": position,
        "iccid": event.iccid,
        "name": event.name,
        "status": "active",
        "sponsor_profile": None if profile is None else _json(profile),
        "created_at": to_micros(event.timestamp),
        "lpa_month": None if lpa is None else lpa.month,
        "lpa_box": None if lpa is None else lpa.box,
        "installed_at": None,
        "first_used_at": None,
        "texts": _texts(event),
    }


def _texts(event: Link.Activated) -> str:
    """Return all that a link of its own is searched by, so that one index finds it."""
    name = "" if event.name is None else fold(event.name).replace(BETWEEN, " ")
    return BETWEEN.join((event.iccid, name, str(event.originator_id)))


def _new_activation(position: int, event: Link.Activated | Link.PlanAdded) -> Values:
    return {
        "id": event.activation_id,
        "organization_id": event.organization_id,
        "link_id": event.originator_id,
        "position": position,
        "plan": _json(event.plan),
        "addon_id": event.addon_id,
        "bought_at": to_micros(event.timestamp),
        "folded_plan_name": fold(event.plan.name),
    }


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()
