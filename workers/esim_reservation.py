"""Finding an eSIM for a link and taking it: eSIM, link, charge and intent in one commit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from domain.accounts.committer import Committer
from domain.accounts.wallet import Charge, Reference, wallet_id
from domain.catalogue.plan import SponsorProfile
from domain.cause import Cause, Clock
from domain.errors import (
    NO_ESIM,
    BillingNotConfigured,
    ConfigError,
    Conflict,
    InsufficientBalance,
    ProvisioningError,
    Refused,
)
from domain.links.create import ProvisioningRules
from domain.links.esim import Esim, esim_id
from domain.links.failing import link_metadata, refusal_of
from domain.links.link import Link, Stage
from domain.links.network import AvailableEsim, EsimNetwork
from domain.log.log import Log
from domain.provider_errors import ProviderError, Unavailable

PAGES_MAX = 5  # Of free eSIMs per sponsor profile; so many held by others at once is no stock.


C = TypeVar("C")


@dataclass(frozen=True)
class EsimReservation:
    """Takes the first free eSIM of the first sponsor profile that has one."""

    log: Log
    committer: Committer
    network: EsimNetwork
    rules: ProvisioningRules
    clock: Clock

    def reserve(
        self,
        link: Link,
        left_s: Callable[[], float],
        code_of: Callable[[str], C],
        begin: Callable[[Link, Cause], None],
    ) -> tuple[Link, C] | Refused:
        """Take an eSIM and the price of the link; return why that was not possible.

        Nothing was taken then. `left_s` tells how long the next call may take, `code_of` asks for
        what is returned with the link, `begin` states what is done with the eSIM, in the same
        commit. Raises Conflict when somebody else has moved the link. The link that was given is
        of no use any more.
        """
        try:
            profiles: Sequence[SponsorProfile | None] = link.requested.sponsor_profiles
            for profile in profiles or [None]:
                for found in self._free(link, profile, left_s):
                    esim = self.log.find(Esim, esim_id(self.network.name, found.iccid))
                    if esim is not None and esim.link_id is not None:
                        continue
                    code = code_of(found.iccid)  # It takes time: all that follows has one.
                    try:
                        self._take(link, esim, found.iccid, profile, begin)
                    except Conflict:  # Of the eSIM, or of the link.
                        link = self._newest(link)
                    else:
                        return link, code
        except (InsufficientBalance, BillingNotConfigured, ConfigError) as refusal:
            return refusal
        except ProviderError as error:
            return refusal_of(error, link.requested.deadline, self.clock())
        return ProvisioningError(NO_ESIM)

    def _free(
        self, link: Link, profile: SponsorProfile | None, left_s: Callable[[], float]
    ) -> Iterator[AvailableEsim]:
        """Yield what the network shows as free, each link from a place of its own.

        Many links at once would all run for the same first one.
        """
        wanted = profile.id if profile is not None else None
        plan = link.requested.plan.at_provider
        for page in range(PAGES_MAX):
            if not (timeout_s := left_s()):
                raise Unavailable
            found = self.network.available_esims(
                plan, wanted, self.rules.product, page=page, timeout_s=timeout_s
            )
            if not found:
                return
            start = link.id.int % len(found)
            yield from [*found[start:], *found[:start]]

    def _newest(self, link: Link) -> Link:
        """Return a link as it is on the log; raises Conflict when it needs no eSIM any more."""
        newest = self.log.get(Link, link.id)
        if newest.stage is not Stage.REQUESTED:
            raise Conflict(link.id)
        return newest

    def _take(
        self,
        link: Link,
        esim: Esim | None,
        iccid: str,
        profile: SponsorProfile | None,
        begin: Callable[[Link, Cause], None],
    ) -> None:
        """Take one eSIM; raises Conflict when another link was first."""
        cause = Cause(self.clock(), link.requested.request_id)
        esim = esim or Esim.register(self.network.name, iccid, cause)
        esim.reserve(link.id, cause)
        link.reserve_esim(iccid, profile, cause)
        begin(link, cause)
        self._commit(link, esim, cause)

    def _commit(self, link: Link, esim: Esim, cause: Cause) -> None:
        price = link.requested.price
        if price is None:
            self.log.append(link, esim)
            return
        charge = Charge(
            transaction_id=price.transaction_id,
            kind="activation",
            amount_micros=price.amount_micros,
            currency=price.currency,
            reference=Reference("link", str(link.id)),
            description=f"Activation: {link.requested.plan.name}",
            metadata=link_metadata(link),
        )
        wallet = wallet_id(link.organization_id)
        self.committer.commit(wallet, lambda held: held.charge(charge, cause), link, esim)
