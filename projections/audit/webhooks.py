"""Checks that each webhook endpoint is in its organization's list, and that no list is too long."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from domain.webhooks.endpoint import WebhookEndpoint, WebhookList
from projections.audit.promises import Promises

LISTED_MAX = 10


@dataclass
class WebhookInvariants:
    """The endpoints that each organization has."""

    _promises: Promises
    _listed: defaultdict[UUID, set[UUID]] = field(default_factory=lambda: defaultdict(set))

    def check(
        self, position: int, event: WebhookEndpoint.Event | WebhookList.Event
    ) -> Iterator[str]:
        owner = event.organization_id
        match event:
            case WebhookEndpoint.Registered() | WebhookEndpoint.Deleted():
                is_new = isinstance(event, WebhookEndpoint.Registered)
                after = WebhookList.Added if is_new else WebhookList.Removed
                missing = f"the list of {owner} does not follow endpoint {event.originator_id}"
                self._promises.make(position, (after, event.originator_id), owner, missing)
            case WebhookList.Added():
                yield from self._kept(event, WebhookList.Added)
                self._listed[owner].add(event.endpoint_id)
                if len(self._listed[owner]) > LISTED_MAX:
                    yield f"organization {owner} has more than {LISTED_MAX} webhook endpoints"
            case WebhookList.Removed():
                yield from self._kept(event, WebhookList.Removed)
                self._listed[owner].discard(event.endpoint_id)

    def _kept(
        self, event: WebhookList.Added | WebhookList.Removed, kind: type[WebhookList.Event]
    ) -> Iterator[str]:
        if not self._promises.keep((kind, event.endpoint_id), event.organization_id):
            yield f"the list of {event.organization_id} changes without its endpoint"
