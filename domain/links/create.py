"""The command that creates a link: requested in the log, done by a worker, waited for here."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from domain.accounts.wallet import Wallet, wallet_id
from domain.catalogue.plan import PlanTerms, SponsorProfile
from domain.cause import Cause
from domain.errors import (
    NO_BASE_PLAN,
    NO_ESIM,
    REJECTED,
    UNREACHABLE,
    ConfigError,
    Conflict,
    IdempotencyInProgress,
    InsufficientBalance,
    ProvisioningError,
    Refused,
    ValidationFailed,
    refuse_other,
)
from domain.links.bought_plan import BoughtPlan
from domain.links.buying import (
    UNKNOWN,
    Offers,
    Play,
    as_sold,
    attempts_of,
    buy,
    check_currency,
    check_funds,
    payer_of,
)
from domain.links.failing import Failing, refusal_of_link
from domain.links.link import Link, named
from domain.links.networks import Networks
from domain.links.waiting import IS_ANSWERED, Limiters, wait_for
from domain.log.log import Log, retry_on_conflict
from domain.personal import Vault, open_text, seal_text
from domain.provider_errors import ProviderError, Rejected

QUOTE_S = 5.0  # For the network to show its stock.


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """Who wants which plan, under which name; `key` is the Idempotency-Key, if any.

    Without `waits` the sender is answered as soon as the request is in the log.
    """

    organization_id: UUID
    plan_id: UUID
    name: str | None
    key: str | None
    waits: bool = True


@dataclass(frozen=True, slots=True)
class ProvisioningRules:
    """The operator's settings; stock networks cannot sell without a `base_plan`."""

    base_plan: str
    product: str
    currency: str
    deadline: timedelta


@dataclass(frozen=True)
class LinkCreate:
    """Creates links; before it reports a failure, the money is refunded."""

    log: Log
    failing: Failing
    networks: Networks
    offers: Offers
    waiting: Limiters
    rules: ProvisioningRules
    vault: Vault
    new_id: Callable[[], UUID]
    play: Play = as_sold

    def run(self, request: LinkRequest, cause: Cause) -> tuple[Link, bool]:
        """Return the active link, and whether an earlier request with the key had created it.

        For a request that does not wait the link may be unfinished. Raises ValidationFailed on
        `plan_id`, ConfigError, the refusals of the wallet, IncompleteNetworkAnswer and
        ProvisioningError with what was `refunded` (bound to the key when the sender of the first
        request did not wait for it), IdempotencyKeyReused, IdempotencyInProgress,
        RateLimited, ServiceUnavailable.
        """
        until_s = time.monotonic() + self.rules.deadline.total_seconds()
        return retry_on_conflict(  # A twin with the same key was first; answer as it does.
            lambda: self._run(request, until_s, cause), IdempotencyInProgress()
        )

    def quote(self, request: LinkRequest, cause: Cause) -> tuple[BoughtPlan, int | None]:
        """Check what a creation checks; return the plan, and what would be left, None: no wallet.

        Raises the refusals with which `run` rejects a request, and ProvisioningError when the
        network has no eSIM for the plan, or cannot say.
        """
        terms = self._check(request, self.new_id(), cause)
        plan = buy(request.plan_id, terms)
        wallet = self.log.find(Wallet, wallet_id(request.organization_id))
        left = None if wallet is None else wallet.balance_micros - plan.price_micros
        if wallet is not None and left is not None and left < 0:  # It was spent just now.
            raise InsufficientBalance(plan.price_micros, wallet.balance_micros, wallet.currency)
        self._require_stock(request.organization_id, plan, terms.sponsor_profiles)
        return plan, left

    def _require_stock(
        self, organization_id: UUID, plan: BoughtPlan, profiles: Sequence[SponsorProfile | None]
    ) -> None:
        """Refuse a plan for which a stock network shows no free eSIM."""
        network, until_s = self.networks.of(plan.network), time.monotonic() + QUOTE_S
        if network.shape != "stock":
            return
        why = NO_ESIM
        try:
            with self.waiting[network.name].slot(organization_id):
                for profile in profiles or [None]:
                    profile_id = None if profile is None else profile.id
                    left_s, product = until_s - time.monotonic(), self.rules.product
                    if network.available_esims(
                        plan.at_provider, profile_id, product, page=0, timeout_s=left_s
                    ):
                        return
        except ProviderError as error:
            why = REJECTED if isinstance(error, Rejected) else UNREACHABLE
        raise ProvisioningError(why, "nothing was taken", refunded="0.00")

    def _run(self, request: LinkRequest, until_s: float, cause: Cause) -> tuple[Link, bool]:
        earlier, new = attempts_of(self.log, Link, request.organization_id, request.key)
        if earlier is not None and (earlier.failure is None or earlier.requested.unawaited):
            return self._like(request, earlier, until_s), True
        return self._create(request, new or self.new_id(), until_s, cause), False

    def _like(self, request: LinkRequest, earlier: Link, until_s: float) -> Link:
        """Answer like the first request with the key; wait for it if it still runs."""
        first = earlier.requested
        called = named(first)
        name = open_text(self.vault, first.organization_id, earlier.id, called)
        is_erased = called is not None and name is None  # Then it cannot be compared.
        refuse_other(
            plan_id=first.plan.plan_id != request.plan_id,
            name=name != request.name and not is_erased,
        )
        if earlier.is_answered:
            return _outcome(earlier)
        if not request.waits:
            return earlier
        with self.waiting[earlier.network].slot(request.organization_id):
            link = wait_for(self.log, earlier, IS_ANSWERED, until_s)
        return _outcome(self.failing.expire(link, of_twin=True))

    def _create(self, request: LinkRequest, new: UUID, until_s: float, cause: Cause) -> Link:
        terms = self._check(request, new, cause)
        link = self._requested(request, new, terms, cause)
        if not request.waits:
            self.log.append(link)
            return link
        slot = self.waiting[link.network].slot(request.organization_id)
        with slot, self.log.appended.watching(new) as news:
            self.log.append(link)
            link = wait_for(self.log, link, IS_ANSWERED, until_s, news)
            return _outcome(self.failing.expire(link))

    def _check(self, request: LinkRequest, new: UUID, cause: Cause) -> PlanTerms:
        """Refuse what cannot be bought now; raises Conflict when a twin was first."""
        try:
            terms = self.offers(request.organization_id, request.plan_id)
            if terms is None:
                raise ValidationFailed({"plan_id": [UNKNOWN]})
            if why := self.networks.why_unsold(terms):
                raise ValidationFailed({"plan_id": [why]})
            network = self.networks.of(terms.network)
            price_micros, currency = terms.retail_price_micros, self.rules.currency
            # Limits are reported before settings and price.
            if request.waits:
                self.waiting[network.name].require_share(request.organization_id)
            payer = payer_of(self.log, request.organization_id, price_micros, cause.at)
            if network.shape == "stock" and not self.rules.base_plan:
                raise ConfigError(NO_BASE_PLAN)
            check_currency(terms, currency)
            check_funds(payer, price_micros, currency)
        except Refused:
            if self.log.find(Link, new) is not None:  # The twin may have spent the money.
                raise Conflict(new) from None
            raise
        return terms

    def _requested(self, request: LinkRequest, new: UUID, terms: PlanTerms, cause: Cause) -> Link:
        owner, bought = request.organization_id, buy(request.plan_id, terms)
        return Link.request(
            new,
            cause,
            organization_id=owner,
            name=seal_text(self.vault, owner, new, request.name, cause),
            plan=self.play(owner, request.key, bought, cause),
            sponsor_profiles=terms.sponsor_profiles,
            currency=self.rules.currency,
            deadline=cause.at + self.rules.deadline,
            unawaited=None if request.waits else True,
        )


def _outcome(link: Link) -> Link:
    if link.failure is not None:
        refusal = refusal_of_link(link)
        refusal.is_bound = bool(link.requested.unawaited)
        raise refusal
    return link
