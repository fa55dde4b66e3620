"""The work of a link: each step of its table, which any worker may start at any time.

Also how an eSIM is found and taken (eSIM, link, charge and intent in one commit), and how a late
endpoint of a failed link is removed.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

import msgspec

from domain.accounts.committer import Committer
from domain.accounts.wallet import Charge
from domain.catalogue.plan import SponsorProfile
from domain.cause import Cause, lies_ahead
from domain.errors import (
    NO_ESIM,
    REJECTED,
    BillingNotConfigured,
    ConfigError,
    Conflict,
    IncompleteNetworkAnswer,
    InsufficientBalance,
    ProvisioningError,
    Refused,
    SpendingLimit,
)
from domain.links.bought_plan import match_addons
from domain.links.create import ProvisioningRules
from domain.links.end_link import EndLink
from domain.links.esim import Esim, esim_id
from domain.links.failing import purchase, refusal_of
from domain.links.link import Link, Stage
from domain.links.lost_order import LostOrder, claim, is_claimed, may_adopt, search_span
from domain.links.network import (
    AddonUsage,
    AvailableEsim,
    Endpoint,
    NoActivationCode,
    Order,
    Readings,
    Usage,
)
from domain.links.saga import Step, after_nothing, is_settled, next_step
from domain.links.set_status import SetStatus
from domain.months import month_of
from domain.personal import Sealed, Vault
from domain.provider_errors import ProviderError, Rejected, Unavailable
from workers.saga import CALL, Calling, by_order, stock

CANNOT_PAY = (SpendingLimit, InsufficientBalance, BillingNotConfigured, ConfigError)
PAGES_MAX = 5  # Of free eSIMs per sponsor profile; if all of these are taken there is no stock.

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Provisioning(Calling[Link]):
    """Works on the links of one network."""

    committer: Committer
    readings: Readings
    vault: Vault
    link_status: SetStatus
    link_ending: EndLink
    rules: ProvisioningRules
    new_id: Callable[[], UUID]

    def _next(self, link: Link) -> Step:
        return next_step(link, self.clock(), self.network.shape)

    def _start(self, link: Link) -> bool:
        """Begin as its network sells; a link of an earlier release may have its eSIM already."""
        if link.stage is not Stage.REQUESTED:
            return self._order(link) if link.stage is Stage.ORDERING else self._create(link)
        return self._order(link) if self.network.shape == "order" else self._reserve(link)

    def _look_up(self, link: Link) -> bool:
        if link.is_live:  # What the thread of a request has left open.
            with suppress(ProviderError):
                by = self.link_ending if link.status_intent is None else self.link_status
                by.take_over(link)
            return False
        return self._find_order(link) if link.stage is Stage.ORDERING else self._find(link)

    def _clean_up(self, link: Link) -> bool:
        return (self._release if link.stage is Stage.ENDPOINT_REMOVED else self._remove)(link)

    def _reserve(self, link: Link) -> bool:
        """Take an eSIM and state the intent in one commit, then call."""
        version = link.version
        taken = self._take_first(link)
        if not isinstance(taken, Refused):
            return self._create_endpoint(*taken)
        return self._refuse(link.id, version, taken)

    def _take_first(self, link: Link) -> tuple[Link, Sealed] | Refused:
        """Take the first free eSIM of the first sponsor profile that has one, and the price.

        Returns the link with its activation code; if it fails, nothing is taken, and why. Raises
        Conflict when another worker has moved the link. Do not use the given link afterwards.
        """
        try:
            profiles: Sequence[SponsorProfile | None] = link.requested.sponsor_profiles
            for profile in profiles or [None]:
                for found, esim in self._free(link, profile):
                    try:  # It takes time, so the intent comes after.
                        lpa = self._lpa(link, found.iccid)
                    except NoActivationCode:
                        continue  # Nobody could install it.
                    try:
                        self._take(link, esim, found.iccid, profile)
                    except Conflict:  # On the eSIM or on the link.
                        link = self._newest(link)
                    else:
                        return link, lpa
        except CANNOT_PAY as refusal:
            return refusal
        except ProviderError as error:
            return refusal_of(error, link.requested.deadline, self.clock())
        return ProvisioningError(NO_ESIM)

    def _free(
        self, link: Link, profile: SponsorProfile | None
    ) -> Iterator[tuple[AvailableEsim, Esim | None]]:
        """Yield the eSIMs that the network shows as free and no link holds, with their streams.

        Each link starts at another place of the list. Otherwise many links at once would all try
        the same first eSIM.
        """
        wanted = profile.id if profile is not None else None
        plan, network = link.requested.plan.at_provider, stock(self.network)
        page = 0
        while page < PAGES_MAX:
            if not (timeout_s := self._left_s(link.requested.deadline)):
                raise Unavailable
            found = network.available_esims(
                plan, wanted, self.rules.product, page=page, timeout_s=timeout_s
            )
            if not found:
                return
            start, over = link.id.int % len(found), 0
            for each in [*found[start:], *found[:start]]:
                esim = self.log.find(Esim, esim_id(network.name, each.iccid))
                if esim is None or esim.link_id is None:
                    yield each, esim
                elif self._is_spent(esim):
                    over += network.pass_over(each.iccid)
            page += over < len(found)  # If all were passed over, this page now has others.

    def _is_spent(self, esim: Esim) -> bool:
        """Tell whether the link that holds an eSIM has ended, so that it is never free again."""
        holder = self.log.find(Link, esim.link_id) if esim.link_id is not None else None
        return holder is not None and holder.ended is not None

    def _newest(self, link: Link) -> Link:
        """Return the newest state of a link; raises Conflict when it needs no eSIM any more."""
        newest = self.log.get(Link, link.id)
        if newest.stage is not Stage.REQUESTED:
            raise Conflict(link.id)
        return newest

    def _take(
        self, link: Link, esim: Esim | None, iccid: str, profile: SponsorProfile | None
    ) -> None:
        """Take one eSIM; raises Conflict when another link was first."""
        cause = self._cause(link)
        esim = esim or Esim.register(self.network.name, iccid, cause)
        esim.reserve(link.id, cause)
        link.record(Link.EsimReserved, cause, iccid=iccid, sponsor_profile=profile)
        self._begin(link, cause)
        charges = _charges_of(link)
        self.committer.commit_entries(link.organization_id, charges, cause, link, esim)

    def _pay(self, link: Link) -> Refused | None:
        """Take the price of a link whose eSIM comes with its order, and begin, in one commit.

        Returns a refusal if the wallet cannot pay; raises Conflict when another worker has moved
        the link. Do not use the link after either of them.
        """
        cause = self._cause(link)
        self._begin_order(link, cause)
        try:
            charges = _charges_of(link)
            self.committer.commit_entries(link.organization_id, charges, cause, link)
        except CANNOT_PAY as refusal:
            return refusal
        return None

    def _refuse(self, link_id: UUID, version: int, refusal: Refused) -> bool:
        """Fail a link for which nothing was taken, unless another worker has moved it since."""
        link = self.log.get(Link, link_id)
        if link.version == version:
            self._end(link, refusal, outcome_known=True)
        return True

    def _create(self, link: Link) -> bool:
        """State the intent of another attempt, then call."""
        assert link.iccid is not None
        try:
            lpa = self._lpa(link, link.iccid)
            self._begin(link, self._cause(link))
        except ProviderError:
            return not self._left_s(link.requested.deadline)
        self.log.append(link)
        return self._create_endpoint(link, lpa)

    def _begin(self, link: Link, cause: Cause) -> None:
        """State the intent. Raises Unavailable when the time is over."""
        until = self._until(link, cause.at)
        if until <= cause.at:
            raise Unavailable
        link.request_endpoint(until, cause, self.new_id())

    def _create_endpoint(self, link: Link, lpa: Sealed) -> bool:
        assert link.iccid is not None
        iccid, plan, reference = link.iccid, link.requested.plan.at_provider, str(link.id)
        endpoint = self._called(
            link,
            lambda left_s: stock(self.network).create_endpoint(
                iccid, plan, self.rules.base_plan, reference, timeout_s=left_s
            ),
        )
        if endpoint is None:
            return True
        try:
            return self._activate(link, endpoint, lpa, adopted=False)
        except Conflict:
            self._take_back(link, endpoint)
            raise

    def _find(self, link: Link) -> bool:
        """Take the endpoint whose reply was lost."""
        assert link.iccid is not None
        try:
            endpoint = stock(self.network).find_endpoint(
                link.iccid, timeout_s=self._left_s(link.requested.deadline)
            )
        except ProviderError:
            return False
        if endpoint is None:
            once = stock(self.network).creates_once
            step = after_nothing(link, self.clock(), may_repeat=once)
            return step is not Step.WAIT and self._do(step, link)
        if endpoint.reference != str(link.id):
            return self._end(link, ProvisioningError(REJECTED), outcome_known=False)
        with suppress(ProviderError):
            return self._activate(link, endpoint, self._lpa(link, link.iccid), adopted=True)
        return False

    def _order(self, link: Link) -> bool:
        """State the intent, the first one with the charge, and only then order."""
        if link.stage is Stage.REQUESTED:
            version = link.version
            refusal = self._pay(link)
            if refusal is not None:
                return self._refuse(link.id, version, refusal)
        else:
            self._begin_order(link, self._cause(link))
            self.log.append(link)
        plan, reference = link.requested.plan.at_provider, str(link.id)
        order = self._called(
            link,
            lambda left_s: by_order(self.network).order(plan, reference, timeout_s=left_s),
        )
        return order is None or self._place(link, order, adopted=False)

    def _begin_order(self, link: Link, cause: Cause) -> None:
        until = self._until(link, cause.at)
        link.request_order(self.network.name, until, cause, self.new_id())

    def _find_order(self, link: Link) -> bool:
        """Take the order whose reply was lost, or an equal one."""
        assert link.intent is not None
        assert link.ordered_since is not None
        now = self.clock()
        try:
            network = by_order(self.network)
            by_reference = network.keeps_reference
            if not by_reference and lies_ahead(link.intent.until, now):
                return False
            until = link.intent.until + network.settles_after
            span = search_span(link.ordered_since, until, by_reference=by_reference)
            plan = link.requested.plan.at_provider
            orders = network.orders(plan, *span, timeout_s=self._left_s(link.requested.deadline))
        except ProviderError:
            return False
        for order in orders:
            mine = may_adopt(link, order, now, by_reference=by_reference)
            if mine and not is_claimed(self.log, self.network.name, order):
                return self._place(link, order, adopted=True, own=by_reference)
        step = after_nothing(link, now, network.settles_after)
        return step is not Step.WAIT and self._do(step, link)

    def _place(self, link: Link, order: Order, *, adopted: bool, own: bool = True) -> bool:
        """Take the eSIM of an order and activate the link in one commit.

        Another link may have taken this order meanwhile, as an equal one. Then Conflict is raised,
        and the link looks for an order as after a lost reply. If the link has failed meanwhile, its
        `LostOrder` finds the order. `own`: the order is certainly that of this link.
        """
        try:
            lpa = self._lpa(link, order.iccid)
        except NoActivationCode:  # Nobody can install it: its `LostOrder` gives it back.
            return self._end(link, IncompleteNetworkAnswer(), outcome_known=False)
        except ProviderError:
            return False
        plan, reference = link.requested.plan, str(link.id)
        cost = order.cost or plan.cost_of(order.order_reference)
        endpoint = Endpoint(order.iccid, order.iccid, reference, order.addon_id, cost=cost)
        endpoint, usage = self._with_addon(link, endpoint)
        cause = self._cause(link)
        esim = claim(self.log, self.network.name, order, link.id, cause)
        link.note_order_placed(order, cause, adopted=not own)
        link.activate(endpoint, lpa, cause, adopted=adopted)
        was_lost = not own or link.attempts > 1  # The outcome of one of its calls is unknown.
        left = [LostOrder.open(link, self.network.settles_after, cause)] if was_lost else []
        self._keep_first(link, usage)
        self.log.append(link, esim, *left)
        return False

    def _activate(self, link: Link, endpoint: Endpoint, lpa: Sealed, *, adopted: bool) -> bool:
        endpoint, usage = self._with_addon(link, endpoint)
        self._keep_first(link, usage)
        link.activate(endpoint, lpa, self._cause(link), adopted=adopted)
        self.log.append(link)
        return False

    def _keep_first(self, link: Link, usage: Usage) -> None:
        """Keep the first reading before the activation, so that readers find its MSISDN."""
        try:
            self.readings.keep_usage(link.organization_id, link.id, usage)
        except Exception:  # It is only a cache, so the link is activated all the same.
            logger.warning("the first reading of link %s was not kept", link.id, exc_info=True)

    def _take_back(self, link: Link, endpoint: Endpoint) -> None:
        """Remove an endpoint that was created after its failed link had been cleaned up."""
        if self.log.get(Link, link.id).stage is not Stage.ENDED:
            return
        logger.error("an endpoint was made after link %s had ended; it is removed", link.id)
        with suppress(ProviderError):
            network = stock(self.network)
            network.remove_endpoint(endpoint.endpoint_id, timeout_s=CALL.total_seconds())
            network.release_esim(endpoint.iccid, timeout_s=CALL.total_seconds())

    def _with_addon(self, link: Link, endpoint: Endpoint) -> tuple[Endpoint, Usage]:
        """Return the endpoint with the add-on id of its plan, if shown, and its usage."""
        plan, now = link.requested.plan, self.clock()
        if endpoint.addon_id is not None:
            addon = AddonUsage(endpoint.addon_id, plan.provider_plan_id, 0.0, float(plan.data_mb))
            return endpoint, Usage("active", [addon], now, msisdn=endpoint.msisdn)
        try:
            usage = self.network.usage(
                endpoint.endpoint_id, timeout_s=self._left_s(link.requested.deadline)
            )
        except ProviderError:
            return endpoint, Usage("active", [], now, msisdn=endpoint.msisdn)
        _, new = match_addons([], usage.addons)
        mine = next((a.addon_id for a in new if a.provider_plan_id == plan.provider_plan_id), None)
        msisdn = endpoint.msisdn or usage.msisdn
        told = msgspec.structs.replace(endpoint, addon_id=mine, msisdn=msisdn)
        return told, usage

    def _end(self, link: Link, refusal: Refused, *, outcome_known: bool) -> bool:
        self.failing.fail_link(link, refusal, outcome_known=outcome_known)
        return True

    def _remove(self, link: Link) -> bool:
        """Look for a late endpoint and remove it; free the eSIM once none can appear any more."""
        assert link.iccid is not None
        timeout_s = CALL.total_seconds()
        asked_at = self.clock()  # The answer may lack changes made after this moment.
        try:
            network = stock(self.network)
            if link.endpoint_id is None:
                endpoint = network.find_endpoint(link.iccid, timeout_s=timeout_s)
                if endpoint is None or endpoint.reference != str(link.id):
                    settled = is_settled(link, network.settles_after, asked_at)
                    return settled and self._release(link)
                known_as = {"endpoint_id": endpoint.endpoint_id}
                link.record(Link.EndpointFound, self._cause(link), **known_as)
                self.log.append(link)
            assert link.endpoint_id is not None
            network.remove_endpoint(link.endpoint_id, timeout_s=timeout_s)
        except Rejected:
            if link.endpoint_id is None:
                return False
            link.note_endpoint_left_over(self._cause(link))
            self.log.append(link)
            return False
        except ProviderError:
            return False
        link.record(Link.EndpointRemoved, self._cause(link), endpoint_id=link.endpoint_id)
        self.log.append(link)
        return True

    def _release(self, link: Link) -> bool:
        assert link.iccid is not None
        esim = self.log.get(Esim, esim_id(self.network.name, link.iccid))
        if esim.link_id != link.id:
            raise Conflict(link.id)  # Another worker was first and has ended the link.
        try:
            stock(self.network).release_esim(link.iccid, timeout_s=CALL.total_seconds())
        except ProviderError:
            return False
        esim.release(link.id, self._cause(link))
        link.record(Link.EsimReleased, self._cause(link), iccid=link.iccid)
        self.log.append(link, esim)
        return False

    def _lpa(self, link: Link, iccid: str) -> Sealed:
        """Return the sealed activation code, without which no link becomes active."""
        code = self.network.lpa(iccid, timeout_s=self._left_s(link.requested.deadline))
        month, clear = month_of(self.clock()), code.as_text().encode()
        return self.vault.seal(link.organization_id, month, link.id, clear)


def _charges_of(link: Link) -> list[Charge]:
    price, plan = link.requested.price, link.requested.plan
    metadata = purchase(link.id, plan)
    return [link.debit(price, f"Activation: {plan.name}", metadata)] if price else []
