"""The commands of an organization for its endpoints; each commits before it returns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from domain.cause import Cause
from domain.errors import KEY_ERASED, NotFound, refuse_other
from domain.log.aggregate import Created
from domain.log.log import Log, retried
from domain.personal import Sealed, Vault
from domain.webhooks.deliveries import message_id
from domain.webhooks.endpoint import LASTING, Address, WebhookEndpoint, WebhookList, WebhookRequest
from domain.webhooks.signatures import Generation

REDELIVERED_MAX = 500  # Of one request: their ids are kept for ever, in one event of 20 KB.


@dataclass(frozen=True, slots=True)
class Draft:
    """An endpoint to register; no `events`: all types that need not be named."""

    organization_id: UUID
    url: str
    description: str | None
    events: Sequence[str] | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The facts of an endpoint to change; UNSET ones stay."""

    url: str | UnsetType = UNSET
    description: str | UnsetType | None = UNSET
    events: Sequence[str] | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET


A = TypeVar("A", bound=Created)
Facts = Mapping[str, object]
KEY_OF: Mapping[type[Created], str] = {  # What an Idempotency-Key is for.
    WebhookRequest.RedeliveryAsked: "redeliver",
    WebhookRequest.RedeliveriesAsked: "redeliver_failed",
    WebhookRequest.RotationAsked: "rotate",
}


class Failed(NamedTuple):
    """What an endpoint did not get: `find` returns up to so many that were planned `since`."""

    since: datetime
    find: Callable[[int], Sequence[UUID]]


@dataclass(frozen=True)
class Webhooks:
    """Commands and reads of endpoints. The endpoint of another organization is NotFound.

    `key_id` returns the id of the key for new secrets.
    """

    log: Log
    vault: Vault
    new_id: Callable[[], UUID]
    key_id: Callable[[], str | None]

    @retried
    def register(self, draft: Draft, cause: Cause) -> tuple[WebhookEndpoint, bool]:
        """Register an endpoint; tell whether an earlier request with the key had done so.

        Raises WebhookLimit, and IdempotencyKeyReused for another request with the key.
        """
        owner, key = draft.organization_id, draft.key
        endpoint_id = WebhookEndpoint.id_of(owner, key) if key is not None else self.new_id()
        list_id, opened = WebhookList.id_of(owner), WebhookList.Opened
        listed = self.log.find(WebhookList, list_id)  # Before what may be listed there.
        made = self.log.find(WebhookEndpoint, endpoint_id) if key is not None else None
        if made is not None:
            self._require_same(draft, made)
            return made, True
        listed = listed or WebhookList.begin(opened, cause, list_id, organization_id=owner)
        listed.add(endpoint_id, cause)
        new = WebhookEndpoint.begin(
            WebhookEndpoint.Registered,
            cause,
            endpoint_id,
            organization_id=owner,
            personal=self._seal(owner, endpoint_id, Address(draft.url, draft.description)),
            events=None if draft.events is None else [*draft.events],
            key_id=self.key_id(),
        )
        self.log.append(new, listed)
        return new, False

    def _require_same(self, draft: Draft, made: WebhookEndpoint) -> None:
        first = made.registered
        address = self._open(made, first.personal)
        if address is None:
            raise NotFound(KEY_ERASED)
        refuse_other(
            url=address.url != draft.url,
            events=first.events != (None if draft.events is None else [*draft.events]),
            description=address.description != draft.description,
        )

    def get(self, organization_id: UUID, endpoint_id: UUID) -> WebhookEndpoint:
        """Return an endpoint that is not deleted."""
        endpoint = self.owned(organization_id, endpoint_id)
        if endpoint.is_deleted:
            raise NotFound
        return endpoint

    def all(self, organization_id: UUID) -> list[WebhookEndpoint]:
        """Return the endpoints of an organization, oldest first."""
        listed = self.log.find(WebhookList, WebhookList.id_of(organization_id))
        ids = listed.endpoint_ids if listed is not None else []
        found = (self.log.get(WebhookEndpoint, each) for each in ids)
        return [each for each in found if not each.is_deleted]

    def address(self, endpoint: WebhookEndpoint) -> Address | None:
        """Return the address of an endpoint, or None when it was erased."""
        return self._open(endpoint, endpoint.personal)

    def change(self, endpoint: WebhookEndpoint, changes: Changes, cause: Cause) -> WebhookEndpoint:
        """Change an endpoint; values that stay the same record no event."""

        def decide(newest: WebhookEndpoint) -> None:
            if newest.is_deleted:
                raise NotFound
            self._change_facts(newest, changes, cause)
            if changes.enabled is True:
                newest.enable(cause)
            elif changes.enabled is False:
                newest.disable("asked" if cause.actor is None else "operator", cause)

        return self.log.update(endpoint, decide)

    def _change_facts(self, newest: WebhookEndpoint, changes: Changes, cause: Cause) -> None:
        known = self.address(newest)
        if known is None:
            raise NotFound(KEY_ERASED)
        url = known.url if changes.url is UNSET else changes.url
        words = known.description if changes.description is UNSET else changes.description
        wanted, events = Address(url, words), newest.events
        if changes.events is not UNSET:
            events = None if changes.events is None else list(changes.events)
        if (wanted, events) != (known, newest.events):
            sealed = newest.personal
            if wanted != known:
                sealed = self._seal(newest.organization_id, newest.id, wanted)
            newest.change(sealed, events, cause)

    @retried
    def delete(self, endpoint: WebhookEndpoint, cause: Cause) -> WebhookEndpoint:
        """Delete an endpoint; doing it again changes nothing."""
        listed = self.log.get(WebhookList, WebhookList.id_of(endpoint.organization_id))
        newest = self.log.get(WebhookEndpoint, endpoint.id)  # Last: it knows if it is not listed.
        if not newest.is_deleted:
            newest.record(WebhookEndpoint.Deleted, cause)
            listed.record(WebhookList.Removed, cause, endpoint_id=newest.id)
            self.log.append(newest, listed)
        return newest

    def rotate_secret(
        self, endpoint: WebhookEndpoint, key: str | None, cause: Cause
    ) -> tuple[WebhookEndpoint, Generation, bool]:
        """Give an endpoint a new secret, and return which; the old one still signs for a while.

        Tells whether an earlier request with the key had done so.
        """

        def rotate(newest: WebhookEndpoint) -> Facts:
            return {"generation": newest.rotate_secret(self.key_id(), cause).number}

        event, replayed = self._request(endpoint, WebhookRequest.RotationAsked, key, cause, rotate)
        newest = self.get(endpoint.organization_id, endpoint.id)
        return newest, newest.secrets[event.generation - 1], replayed

    def test(self, endpoint: WebhookEndpoint, cause: Cause) -> UUID:
        """Ask for a test event; return the id of its delivery."""
        event, _ = self._request(endpoint, WebhookRequest.TestAsked, None, cause, _if_enabled)
        return message_id(endpoint.id, event.originator_id, 1)

    def redeliver(
        self, endpoint: WebhookEndpoint, delivery_id: UUID, key: str | None, cause: Cause
    ) -> bool:
        """Ask for another delivery; tell whether that is a replay.

        The caller has checked that the endpoint has this delivery.
        """
        given, kind = {"delivery_id": delivery_id}, WebhookRequest.RedeliveryAsked
        return self._request(endpoint, kind, key, cause, _if_enabled, **given)[1]

    def redeliver_failed(
        self, endpoint: WebhookEndpoint, failed: Failed, key: str | None, cause: Cause
    ) -> tuple[WebhookRequest.RedeliveriesAsked, bool]:
        """Ask for what has failed or was cancelled again, the oldest first.

        Tells whether that is a replay.
        """

        def find(newest: WebhookEndpoint) -> Facts:
            newest.require_enabled()
            found = [*failed.find(REDELIVERED_MAX + 1)]
            ids, has_more = found[:REDELIVERED_MAX], len(found) > REDELIVERED_MAX
            return {"delivery_ids": ids, "has_more": has_more}

        kind = WebhookRequest.RedeliveriesAsked
        return self._request(endpoint, kind, key, cause, find, since=failed.since)

    @retried
    def _request(
        self,
        endpoint: WebhookEndpoint,
        kind: type[A],
        key: str | None,
        cause: Cause,
        decide: Callable[[WebhookEndpoint], Facts],
        **given: object,
    ) -> tuple[A, bool]:
        """Record a request; tell whether an earlier one with the key had been recorded.

        `decide` may change the endpoint, and returns what the request says besides what was
        `given`. Raises IdempotencyKeyReused if something else was given with the key.
        """
        newest = self.get(endpoint.organization_id, endpoint.id)
        request_id = self.new_id()
        if key is not None:
            request_id = WebhookRequest.id_of(newest.organization_id, KEY_OF[kind], key)
            if (earlier := self.log.find(WebhookRequest, request_id)) is not None:
                event: Any = earlier.asked
                differs = {name: getattr(event, name) != given[name] for name in given}
                refuse_other(webhook=event.endpoint_id != newest.id, **differs)
                return event, True
        facts = decide(newest)
        whose = {"organization_id": newest.organization_id, "endpoint_id": newest.id}
        new = WebhookRequest.begin(kind, cause, request_id, **whose, **given, **facts)
        self.log.append(newest, new)
        return cast("A", new.asked), False

    def owned(self, organization_id: UUID, endpoint_id: UUID) -> WebhookEndpoint:
        """Return an endpoint, even a deleted one."""
        endpoint = self.log.find(WebhookEndpoint, endpoint_id)
        if endpoint is None or endpoint.organization_id != organization_id:
            raise NotFound
        return endpoint

    def _seal(self, organization_id: UUID, endpoint_id: UUID, address: Address) -> Sealed:
        return self.vault.seal(organization_id, LASTING, endpoint_id, msgspec.json.encode(address))

    def _open(self, endpoint: WebhookEndpoint, sealed: Sealed) -> Address | None:
        clear = self.vault.open(endpoint.organization_id, endpoint.id, sealed)
        return None if clear is None else msgspec.json.decode(clear, type=Address)


def _if_enabled(endpoint: WebhookEndpoint) -> Facts:
    endpoint.require_enabled()
    return {}
