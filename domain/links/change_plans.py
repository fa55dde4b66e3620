"""The command that changes the plans of a link: top-ups and removals.

The top-ups are charged at once, a worker does the change, and the caller waits for it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from uuid import UUID

from domain.accounts.committer import Committer
from domain.accounts.wallet import Charge
from domain.catalogue.plan import SIMULATED, PlanTerms
from domain.cause import Cause, Clock
from domain.errors import Conflict, LinkBusy, Refused, ValidationFailed, refuse_other
from domain.links.bought_plan import BoughtPlan
from domain.links.buying import (
    INCOMPATIBLE,
    NOT_ACCEPTED,
    OTHER_NETWORK,
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
from domain.links.create import ProvisioningRules
from domain.links.failing import Failing, purchase, refusal_of_change
from domain.links.link import Link
from domain.links.networks import Networks
from domain.links.plan_change import Addition, PlanChange, Removal
from domain.links.waiting import IS_ANSWERED, Limiters, wait_for
from domain.log.log import Log, retry_on_conflict
from domain.provider_errors import ProviderError

OFFER_S = 3.0  # For asking the network what it takes; the change itself needs the rest.
NOT_THERE = "The link has no such activation."


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Which activations of a link to remove and which plans to add, each in order."""

    organization_id: UUID
    link_id: UUID
    remove: Sequence[UUID]
    add: Sequence[UUID]
    key: str | None
    network: str = SIMULATED  # The network of the link; the request takes a waiting place there.


@dataclass(frozen=True)
class LinkPlans:
    """Changes plans; before it reports a failure, it refunds the additions that were not done."""

    log: Log
    committer: Committer
    failing: Failing
    networks: Networks
    offers: Offers
    waiting: Limiters
    rules: ProvisioningRules
    clock: Clock
    new_id: Callable[[], UUID]
    play: Play = as_sold

    def run(self, request: ChangeRequest, cause: Cause) -> tuple[PlanChange, bool]:
        """Return the change that was done, and whether an earlier request with the key did it.

        The link must exist. Raises ValidationFailed on `add.<index>` and `remove.<index>`, the
        refusals of the wallet, NotSupportedByNetwork, IncompleteNetworkAnswer and ProvisioningError
        (bound to the key when such an outcome is given again), IdempotencyKeyReused,
        IdempotencyInProgress, RateLimited, ServiceUnavailable.
        """
        until_s = time.monotonic() + self.rules.deadline.total_seconds()
        return retry_on_conflict(lambda: self._run(request, until_s, cause), LinkBusy())

    def _run(self, request: ChangeRequest, until_s: float, cause: Cause) -> tuple[PlanChange, bool]:
        if time.monotonic() > until_s:
            raise LinkBusy  # Others have kept changing the link.
        earlier, new = attempts_of(self.log, PlanChange, request.organization_id, request.key)
        if earlier is not None and not earlier.kept_nothing:
            return self._like(request, earlier, until_s), True
        new = new or self.new_id()
        with self._slot(request), self.log.appended.watching(new) as news:
            change = self._start(request, new, until_s, cause)
            change = wait_for(self.log, change, IS_ANSWERED, until_s, news)
            return _outcome(self.failing.expire(change), replayed=False), False

    @contextmanager
    def _slot(self, request: ChangeRequest) -> Iterator[None]:
        """Hold a waiting place; if there is none, first report errors of the request itself."""
        with ExitStack() as slot:
            try:
                slot.enter_context(self.waiting[request.network].slot(request.organization_id))
            except Refused:
                self._check(request, self.log.get(Link, request.link_id), 0.0)
                raise
            yield

    def _like(self, request: ChangeRequest, earlier: PlanChange, until_s: float) -> PlanChange:
        """Answer like the first request with the key; wait for it if it still runs."""
        first = earlier.requested
        refuse_other(
            link=earlier.link_id != request.link_id,
            remove=[each.activation_id for each in first.removals] != [*request.remove],
            add=[each.plan.plan_id for each in first.additions] != [*request.add],
        )
        if earlier.is_answered:
            return _outcome(earlier, replayed=True)
        with self.waiting[request.network].slot(request.organization_id):
            change = wait_for(self.log, earlier, IS_ANSWERED, until_s)
        return _outcome(self.failing.expire(change, of_twin=True), replayed=True)

    def _start(self, request: ChangeRequest, new: UUID, until_s: float, cause: Cause) -> PlanChange:
        """Run `_try`; if it refuses but a twin with the same key was first, raise Conflict.

        The twin may itself be the reason for the refusal: it took the money, or removed the plan.
        """
        try:
            return self._try(request, new, until_s, cause)
        except Refused:
            change = self.log.find(PlanChange, new)
            if change is None:
                raise
            if request.key is not None:
                raise Conflict(new) from None
            # Nobody else knows this id, so our own commit succeeded and its reply was lost.
            return change

    def _try(self, request: ChangeRequest, new: UUID, until_s: float, cause: Cause) -> PlanChange:
        """Validate everything, then charge everything in one commit; raises Conflict."""
        link = self.log.get(Link, request.link_id)
        link.require_live()
        if not link.may_record(Link.ChangeOpened):
            self._wait_for_others(link, new, until_s)
            raise Conflict(link.id)  # The change we waited for may have the same key.
        deadline, sent = cause.at + self.rules.deadline, cause
        cause = Cause(self.clock(), cause.request_id)  # It may have waited for its turn.
        plans = self._check(request, link, min(OFFER_S, until_s - time.monotonic()))
        amount_micros = sum(plan.price_micros for plan in plans)
        payer = payer_of(self.log, request.organization_id, amount_micros, cause.at)
        check_funds(payer, amount_micros, self.rules.currency)
        owner, key = request.organization_id, request.key
        plans[:1] = [self.play(owner, key, each, sent) for each in plans[:1]]
        change = PlanChange.request(
            new,
            cause,
            organization_id=request.organization_id,
            link_id=link.id,
            removals=[Removal(each, link.activations[each].plan) for each in request.remove],
            plans=plans,
            currency=self.rules.currency,
            deadline=deadline,
        )
        link.record(Link.ChangeOpened, cause, change_id=change.id)
        additions = change.requested.additions
        charges = [charge for each in additions for charge in _charges_of(change, each)]
        self.committer.commit_entries(request.organization_id, charges, cause, change, link)
        return change

    def _wait_for_others(self, link: Link, new: UUID, until_s: float) -> None:
        """Wait until a link can take a change, or until a twin has opened this change on it."""

        def may_go_on(link: Link) -> bool:
            is_over = link.ended is not None or link.open_change == new
            return is_over or link.may_record(Link.ChangeOpened)

        if not may_go_on(wait_for(self.log, link, may_go_on, until_s)):
            raise LinkBusy

    def _check(self, request: ChangeRequest, link: Link, timeout_s: float) -> list[BoughtPlan]:
        """Return the plans to add; the network is asked for `timeout_s` whether it accepts them."""
        link.require_live()
        if request.remove:
            self.networks.require(link, "remove_plan")
        wrong: dict[str, list[str]] = {}
        there = {each.id for each in link.current_activations}
        for index, activation_id in enumerate(request.remove):
            if activation_id not in there:
                wrong[f"remove.{index}"] = [NOT_THERE]
        plans: list[tuple[UUID, PlanTerms]] = []
        for index, plan_id in enumerate(request.add):
            terms = self.offers(request.organization_id, plan_id)
            problem = self._problem(link, terms)
            if problem is not None:
                wrong[f"add.{index}"] = [problem]
            elif terms is not None:
                plans.append((plan_id, terms))
        wrong = wrong or self._refused(link, [terms for _, terms in plans], timeout_s)
        if wrong:
            raise ValidationFailed(wrong)
        for _, terms in plans:
            check_currency(terms, self.rules.currency)
        return [buy(plan_id, terms) for plan_id, terms in plans]

    def _refused(
        self, link: Link, plans: Sequence[PlanTerms], timeout_s: float
    ) -> dict[str, list[str]]:
        """Name the plans that the network would refuse, or each is charged, refused and refunded.

        A network that does not answer now may do so when the change is made.
        """
        accepted, ids = None, [*dict.fromkeys(each.provider_plan_id or "" for each in plans)]
        with suppress(ProviderError):
            accepted = self.networks.topups(link, ids, timeout_s) if timeout_s > 0 else None
        return {
            f"add.{index}": [NOT_ACCEPTED]
            for index, each in enumerate(plans)
            if accepted is not None and each.provider_plan_id not in accepted
        }

    def _problem(self, link: Link, terms: PlanTerms | None) -> str | None:
        """Return why a plan cannot be put on a link; None if it can."""
        if terms is None:
            return UNKNOWN
        if why := self.networks.why_unsold(terms):
            return why
        if self.networks.of(terms.network).name != link.network:
            return OTHER_NETWORK
        profile = link.sponsor_profile
        if profile is not None and profile.id not in {each.id for each in terms.sponsor_profiles}:
            return INCOMPATIBLE
        return None


def _charges_of(change: PlanChange, addition: Addition) -> list[Charge]:
    metadata = purchase(change.link_id, addition.plan)
    metadata["activation_id"] = str(addition.activation_id)
    return change.debit(addition.price, f"Top-up: {addition.plan.name}", metadata)


def _outcome(change: PlanChange, *, replayed: bool) -> PlanChange:
    if change.failure is None:
        return change
    refusal = refusal_of_change(change)
    refusal.is_bound = replayed and not change.kept_nothing
    raise refusal
