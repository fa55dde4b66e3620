"""How links and plans are bought: what is offered, refused early, and given again for a key.

Attempts under one idempotency key have streams of their own: 1, 2, 3 … without a gap.
"""

from bisect import bisect
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import TypeVar
from uuid import UUID

from domain.accounts.refund_by_hand import Refundable
from domain.accounts.wallet import Wallet, wallet_id
from domain.catalogue.plan import PlanTerms
from domain.cause import Cause
from domain.errors import OTHER_CURRENCY, BillingNotConfigured, ConfigError, IdempotencyKeyReused
from domain.ids import derive_id
from domain.links.bought_plan import BoughtPlan
from domain.log.log import Log

UNKNOWN = "There is no such plan."
OTHER_NETWORK = "This plan is of another network than the link."
NOT_ACCEPTED = "The network does not put this plan on the eSIM of the link; see its topup-plans."
INCOMPATIBLE = "This plan does not run on the sponsor profile of the link."
FAILURES_MAX = 1 << 20  # A million failures of one key, each reported to the sender.
USED_UP = "This Idempotency-Key has failed too often; use another one."

# Finds the present terms of an enabled plan that an organization may see, by both ids.
Offers = Callable[[UUID, UUID], PlanTerms | None]
# Returns what an organization buys in place of a plan, under a key; only a sandbox has a play
# of its own. A purchase that is decided anew after a lost race has the same cause, and gets the
# same again.
Play = Callable[[UUID, str | None, BoughtPlan, Cause], BoughtPlan]

A = TypeVar("A")
R = TypeVar("R", bound=Refundable)


def as_sold(_owner: UUID, _key: str | None, plan: BoughtPlan, _cause: Cause) -> BoughtPlan:
    return plan


def buy(plan_id: UUID, terms: PlanTerms) -> BoughtPlan:
    """Return a plan as it is bought now; it must be connected to the network."""
    assert terms.provider_plan_id is not None
    return BoughtPlan(
        plan_id=plan_id,
        provider_plan_id=terms.provider_plan_id,
        name=terms.name,
        price_micros=terms.retail_price_micros,
        data_mb=terms.data_mb,
        validity_days=terms.validity_days,
        countries=[each.country_code for each in terms.coverage],
        cost=terms.cost,
        network=terms.network,
        notices=terms.notices,
    )


def check_currency(terms: PlanTerms, currency: str) -> None:
    """Refuse to sell at a price that was meant in another currency."""
    if terms.currency != currency:
        raise ConfigError(OTHER_CURRENCY)


def payer_of(log: Log, organization_id: UUID, amount_micros: int, at: datetime) -> Wallet | None:
    """Find the wallet that is to pay; raises SpendingLimit, because limits are reported first."""
    wallet = log.find(Wallet, wallet_id(organization_id)) if amount_micros else None
    if wallet is not None:
        wallet.refuse_overspending(amount_micros, at)
    return wallet


def check_funds(wallet: Wallet | None, amount_micros: int, currency: str) -> None:
    """Refuse early what cannot be paid; the wallet itself decides later."""
    if not amount_micros:
        return
    if wallet is None:
        raise BillingNotConfigured
    wallet.refuse_unpayable(amount_micros, currency)


def attempt_id(kind: type[Refundable], organization_id: UUID, key: str, attempt: int) -> UUID:
    """Return the stream of one attempt; that of a change of plans is the same for each link.

    A later attempt exists only if the one before it has failed, changed nothing and kept no money.
    """
    return derive_id(kind.KIND, organization_id, key, attempt)


def attempts_of(
    log: Log, kind: type[R], organization_id: UUID, key: str | None
) -> tuple[R | None, UUID | None]:
    """Return the newest attempt under a key, and the id of the next; None without a key."""
    if key is None:
        return None, None

    def stream(attempt: int) -> UUID:
        return attempt_id(kind, organization_id, key, attempt)

    number, newest = last_attempt(lambda attempt: log.find(kind, stream(attempt)))
    return newest, stream(number + 1)


def last_attempt(find: Callable[[int], A | None]) -> tuple[int, A | None]:
    """Return the number of the newest attempt, and the attempt; (0, None) if there is none.

    Searches by doubling, then halving: a key that has failed a thousand times takes twenty reads.
    Raises IdempotencyKeyReused for a key that has failed FAILURES_MAX times.
    """
    find, high = cache(find), 1
    while find(high) is not None:
        if high >= FAILURES_MAX:
            raise IdempotencyKeyReused(message=USED_UP)
        high *= 2
    low = high // 2 + 1
    last = bisect(range(high), 0, low, key=lambda number: find(number) is None) - 1
    return last, find(last) if last else None
