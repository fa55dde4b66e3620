"""That a link has the plans which its plan changes say they did, one change at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.links.link import Link
from projections.invariants.promises import Promises


@dataclass(slots=True)
class LinkPlans:
    """The activations of one link, those that were removed included, and its open change."""

    _is_on: dict[UUID, bool] = field(default_factory=dict)
    _open_change: UUID | None = None

    def begin(self, activation_id: UUID) -> None:
        """Start with the plan that the link was created with."""
        self._is_on[activation_id] = True

    def check(self, event: Link.Event, promises: Promises) -> Iterator[str]:
        match event:
            case Link.ChangeOpened():
                yield from self._open(event, promises)
            case Link.PlanAdded():
                yield from self._add(event)
                added = (event.originator_id, event.plan, event.addon_id)
                yield from self._check_change(event, added, promises)
            case Link.PlanRemoved():
                yield from self._remove(event)
                yield from self._check_change(event, event.originator_id, promises)
            case Link.ChangeClosed():
                yield from self._close(event, promises)

    def _open(self, event: Link.ChangeOpened, promises: Promises) -> Iterator[str]:
        if self._open_change is not None:
            yield f"link {event.originator_id} opens a plan change beside another"
        self._open_change = event.change_id
        opened = (event.originator_id, event.organization_id)
        if not promises.keep((Link.ChangeOpened, event.change_id), opened):
            yield f"link {event.originator_id} opens a plan change that nobody requested for it"

    def _add(self, event: Link.PlanAdded) -> Iterator[str]:
        if event.activation_id in self._is_on:
            yield f"link {event.originator_id} adds activation {event.activation_id} twice"
        self._is_on[event.activation_id] = True

    def _remove(self, event: Link.PlanRemoved) -> Iterator[str]:
        if not self._is_on.get(event.activation_id):
            yield (
                f"link {event.originator_id} removes activation {event.activation_id}, "
                "which it does not have"
            )
        self._is_on[event.activation_id] = False

    def _close(self, event: Link.ChangeClosed, promises: Promises) -> Iterator[str]:
        if event.change_id != self._open_change:
            yield f"link {event.originator_id} closes a plan change that is not open"
        self._open_change = None
        if not promises.keep((Link.ChangeClosed, event.change_id), event.originator_id):
            yield f"link {event.originator_id} closes a plan change that has not finished"

    def _check_change(
        self, event: Link.PlanAdded | Link.PlanRemoved, fact: object, promises: Promises
    ) -> Iterator[str]:
        kept = promises.keep((type(event), event.change_id, event.activation_id), fact)
        if not kept or event.change_id != self._open_change:
            yield f"link {event.originator_id} has {type(event).__name__} which no change has done"
