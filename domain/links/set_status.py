"""The call that suspends and reactivates a link, made by its request."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from domain.cause import Cause
from domain.errors import LATE, ProvisioningError
from domain.links.driver import CALL_S, Commit, Requested, left_s, reason_of
from domain.links.link import Link
from domain.links.network import LinkStatus
from domain.provider_errors import ProviderError, Rejected

UNCHANGED = "the status is unchanged"

Target = Literal["active", "suspended"]


@dataclass(frozen=True)
class SetStatus(Requested[LinkStatus]):
    """Suspends and reactivates, after reading the status at the network.

    | the network | then |
    |---|---|
    | shows what is wanted | nothing is called |
    | cannot be read now | it is called all the same, but for an open intent |
    | does not show what an open intent wants | the status is kept, once the call is settled |
    """

    opens = Link.StatusRequested

    def run(self, link: Link, target: Target, cause: Cause) -> Link:
        """Bring a link to a status and return it; changes nothing if the network has it already.

        Raises LinkEnded, LinkBusy, NotSupportedByNetwork, and as `request`; the status is unchanged
        then.
        """
        link.require_live()
        self.networks.require(link, "suspend")
        return self.request(link, target, cause)

    def prepare(
        self, link: Link, wanted: Target, until_s: float, cause: Cause
    ) -> tuple[Link, bool]:
        link.require_live()
        if link.open_call is None:
            with suppress(ProviderError):
                link.record_seen(self.look_up(link, left_s(until_s)), None, None, cause)
            if link.pending_events:
                self.log.append(link)
            return link, link.status == wanted
        try:
            link = super().take_over(link, left_s(until_s)) or link
        except ProviderError as error:
            raise ProvisioningError(reason_of(error), UNCHANGED) from None
        if self.intent(link) is not None:  # That call may still have an effect.
            raise self.beaten()
        return link, link.status == wanted

    def refusal(self, _link: Link, error: ProviderError | None) -> ProvisioningError | None:
        return ProvisioningError(reason_of(error), UNCHANGED) if error is not None else None

    def beaten(self) -> ProvisioningError:
        return ProvisioningError(LATE, UNCHANGED)

    def state(self, link: Link, wanted: Target, until: datetime, cause: Cause) -> None:
        link.request_status(wanted, until, cause)

    def call(self, work: Link, timeout_s: float) -> LinkStatus:
        network = self.networks.of(work.network)
        target: LinkStatus = self.intent(work).status
        change = network.suspend if target == "suspended" else network.resume
        change(work.endpoint, timeout_s=timeout_s)
        return target

    def look_up(self, work: Link, timeout_s: float) -> LinkStatus:
        return self.networks.of(work.network).usage(work.endpoint, timeout_s=timeout_s).status

    def take_over(self, work: Link, timeout_s: float = CALL_S) -> Link | None:
        try:
            return super().take_over(work, timeout_s)
        except Rejected:  # There is no endpoint that could still change.
            return self.save(work, None)

    def is_done(self, work: Link, seen: LinkStatus | None) -> bool:
        return bool(seen == self.intent(work).status)

    def settle(self, work: Link, seen: LinkStatus | None, cause: Cause) -> Commit:
        work.settle_status(seen or work.status, cause)
        return [work], []
