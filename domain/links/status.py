"""The commands that suspend and reactivate a link, and the reading of what the network has."""

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from domain.cause import Cause, Clock
from domain.errors import LATE, REJECTED, UNREACHABLE, Conflict, ProvisioningError
from domain.links.link import Link
from domain.links.network import EsimNetwork, LinkStatus
from domain.links.waiting import Waiting, wait_for
from domain.log.log import Log
from domain.provider_errors import OutcomeUnknown, ProviderError, Rejected

CALL_S = 5.0  # One call of the network; the longest way is three of them, and a wait as long.
RACES_MAX = 20  # Others may move the link meanwhile; each lost race means one of them won.
UNCHANGED = "the status is unchanged"

Target = Literal["active", "suspended"]


@dataclass(frozen=True)
class LinkStatusSwitch:
    """Suspends and reactivates; only the winner of an intent tells the network."""

    log: Log
    network: EsimNetwork
    waiting: Waiting
    clock: Clock

    def run(self, link: Link, target: Target, cause: Cause) -> Link:
        """Bring a link to a status and return it; one that has it at the network is left alone.

        Raises ProvisioningError when the network fails, RateLimited and ServiceUnavailable where
        too many wait for it; the status is unchanged then.
        """
        with self.waiting.place(link.organization_id):
            for _ in range(RACES_MAX):
                try:
                    return self._run(link, target, cause)
                except Conflict:
                    link = self.log.get(Link, link.id)
        raise ProvisioningError(LATE, UNCHANGED)

    def _run(self, link: Link, target: Target, cause: Cause) -> Link:
        link = wait_for(self.log, link, _has_no_intent, time.monotonic() + CALL_S)
        now_has = self._seen_or_known(link)
        self._keep(link, now_has, cause)
        if link.status_intent is not None:  # Another request may still have its effect.
            raise ProvisioningError(LATE, UNCHANGED)
        if now_has == target:
            return link
        link.request_status(target, self.clock() + timedelta(seconds=CALL_S), cause)
        self.log.claim(link)
        return self._tell(link, target)

    def _keep(self, link: Link, now_has: LinkStatus, cause: Cause) -> None:
        """Keep what is new of the network; an intent that it fulfils, or that has run out, ends."""
        intent = link.status_intent
        if intent is None:
            link.note_seen(now_has, None, None, cause)
        elif intent.status == now_has or self.clock() >= intent.until + self.network.settles_after:
            link.settle_status(now_has, Cause(self.clock(), intent.request_id))
        if link.pending_events:
            self.log.append(link)

    def _tell(self, link: Link, target: Target) -> Link:
        change = self.network.suspend if target == "suspended" else self.network.resume
        assert link.endpoint_id is not None
        try:
            change(link.endpoint_id, timeout_s=CALL_S)
        except OutcomeUnknown:
            if self._seen(link) != target:  # It may still happen: the sweep looks at the end.
                raise ProvisioningError(LATE, UNCHANGED) from None
        except ProviderError as error:
            self._settle(link, link.status)
            raise _refusal_of(error) from None
        return self._settle(link, target)

    def _settle(self, link: Link, now_has: LinkStatus) -> Link:
        """Close our intent, whatever else has come upon the link; it may be closed already."""
        intent = link.status_intent
        assert intent is not None
        for _ in range(RACES_MAX):
            if link.status_intent != intent:
                break
            link.settle_status(now_has, Cause(self.clock(), intent.request_id))
            try:
                self.log.append(link)
            except Conflict:
                link = self.log.get(Link, link.id)
                continue
            break
        return link

    def _seen_or_known(self, link: Link) -> LinkStatus:
        """Return the status at the network; that of the log when it cannot be read now."""
        try:
            return self._seen(link)
        except ProvisioningError:
            if link.status_intent is not None:
                raise
            return link.status

    def _seen(self, link: Link) -> LinkStatus:
        assert link.endpoint_id is not None
        try:
            return self.network.usage(link.endpoint_id, timeout_s=CALL_S).status
        except ProviderError as error:
            raise _refusal_of(error) from None


def _refusal_of(error: ProviderError) -> ProvisioningError:
    return ProvisioningError(REJECTED if isinstance(error, Rejected) else UNREACHABLE, UNCHANGED)


def _has_no_intent(link: Link) -> bool:
    return link.status_intent is None
