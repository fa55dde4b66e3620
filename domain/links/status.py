"""The commands that suspend and reactivate a link, after reading its status at the network."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from domain.cause import Cause, Clock
from domain.errors import LATE, REJECTED, UNREACHABLE, LinkBusy, ProvisioningError
from domain.links.link import Link
from domain.links.network import LinkStatus
from domain.links.networks import Networks
from domain.links.waiting import Places, wait_for
from domain.log.log import Log
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected

CALL_S = 5.0  # For one call to the network, and for waiting until an earlier request has ended.
# For a whole request: it waits once and makes three calls, unless others keep changing the link.
WITHIN_S = 4 * CALL_S
UNCHANGED = "the status is unchanged"

Target = Literal["active", "suspended"]


@dataclass(frozen=True)
class LinkStatusSwitch:
    """Suspends and reactivates; only the process that wrote the intent calls the network."""

    log: Log
    networks: Networks
    waiting: Places
    clock: Clock

    def run(self, link: Link, target: Target, cause: Cause) -> Link:
        """Bring a link to a status and return it; changes nothing if the network has it already.

        Raises LinkEnded, LinkBusy, NotSupportedByNetwork, ProvisioningError when the network fails,
        and RateLimited or ServiceUnavailable when too many requests wait for it; the status is
        unchanged then.
        """
        link.require_live()
        self.networks.require(link, "suspend")
        with self.waiting[link.network].slot(link.organization_id):
            until_s = time.monotonic() + WITHIN_S
            beaten = ProvisioningError(LATE, UNCHANGED)
            return self.log.change(
                link, lambda newest: self._run(newest, target, until_s, cause), beaten
            )

    def _run(self, link: Link, target: Target, until_s: float, cause: Cause) -> Link:
        link = wait_for(self.log, link, _has_no_intent, time.monotonic() + _left_s(until_s))
        link.require_live()
        if link.end_intent is not None:
            raise LinkBusy
        asked_at = self.clock()  # The answer may lack changes made after this moment.
        now_has = self._seen_or_known(link, until_s)
        self._keep(link, now_has, asked_at, cause)
        if link.status_intent is not None:  # That call may still have an effect.
            raise ProvisioningError(LATE, UNCHANGED)
        if now_has == target:
            return link
        if _left_s(until_s) < CALL_S:  # Others have kept changing the link.
            raise ProvisioningError(LATE, UNCHANGED)
        link.request_status(target, self.clock() + timedelta(seconds=CALL_S), cause)
        self.log.claim(link)
        return self._tell(link, target, until_s)

    def _keep(self, link: Link, now_has: LinkStatus, asked_at: datetime, cause: Cause) -> None:
        """Record the network's status; closes an intent that it fulfils or that has run out."""
        intent = link.status_intent
        if intent is None:
            link.note_seen(now_has, None, None, cause)
        elif (
            intent.status == now_has
            or asked_at >= intent.until + self.networks.of(link.network).settles_after
        ):
            link.settle_status(now_has, self._settling(intent))
        if link.pending_events:
            self.log.append(link)

    def _tell(self, link: Link, target: Target, until_s: float) -> Link:
        network = self.networks.of(link.network)
        change = network.suspend if target == "suspended" else network.resume
        assert link.endpoint_id is not None
        assert link.status_intent is not None
        left_s = (link.status_intent.until - self.clock()).total_seconds()
        if left_s <= 0:  # The append took longer than the intent lasts.
            self._settle(link, link.status)
            raise ProvisioningError(LATE, UNCHANGED)
        try:
            change(link.endpoint_id, timeout_s=left_s)
        except OutcomeUnknown:
            # It may still take effect; a worker looks after the intent has run out.
            if self._seen(link, until_s) != target:
                raise ProvisioningError(LATE, UNCHANGED) from None
        except ProviderError as error:
            self._settle(link, link.status)
            raise _refusal_of(error) from None
        return self._settle(link, target)

    def _settle(self, link: Link, now_has: LinkStatus) -> Link:
        """Close our intent on the newest version of the link, unless it is closed already."""
        intent = link.status_intent
        assert intent is not None

        def settle(newest: Link) -> None:
            if newest.status_intent == intent:
                newest.settle_status(now_has, self._settling(intent))

        return self.log.update(link, settle)

    def _settling(self, intent: Link.StatusRequested) -> Cause:
        return Cause(self.clock(), intent.request_id, intent.actor)

    def _seen_or_known(self, link: Link, until_s: float) -> LinkStatus:
        """Return the status at the network; if it cannot be read now, the log's."""
        try:
            return self._seen(link, until_s)
        except ProvisioningError:
            if link.status_intent is not None:
                raise
            return link.status

    def _seen(self, link: Link, until_s: float) -> LinkStatus:
        assert link.endpoint_id is not None
        network, timeout_s = self.networks.of(link.network), _left_s(until_s)
        try:
            return network.usage(link.endpoint_id, timeout_s=timeout_s).status
        except ProviderError as error:
            raise _refusal_of(error) from None


def _left_s(until_s: float) -> float:
    """Return how long a call may take now; raises ProvisioningError when the time is over."""
    left_s = min(CALL_S, until_s - time.monotonic())
    if left_s <= 0:
        raise ProvisioningError(LATE, UNCHANGED)
    return left_s


def _refusal_of(error: ProviderError) -> ProvisioningError:
    return ProvisioningError(REJECTED if isinstance(error, Rejected) else UNREACHABLE, UNCHANGED)


def _has_no_intent(link: Link) -> bool:
    return link.status_intent is None and link.end_intent is None
