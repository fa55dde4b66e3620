"""What can be bought: plans of the catalogue as an organization sees them."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from domain.accounts.wallet import Wallet, wallet_id
from domain.catalogue.plan import PlanTerms
from domain.cause import Cause
from domain.errors import OTHER_CURRENCY, BillingNotConfigured, ConfigError
from domain.links.bought_plan import BoughtPlan
from domain.log.log import Log

UNKNOWN = "There is no such plan."
OTHER_NETWORK = "This plan is of another network than the link."
NOT_ACCEPTED = "The network does not put this plan on the eSIM of the link; see its topup-plans."
INCOMPATIBLE = "This plan does not run on the sponsor profile of the link."


# Finds the present terms of an enabled plan that an organization may see, by both ids.
Offers = Callable[[UUID, UUID], PlanTerms | None]
# Returns what an organization buys in place of a plan, under a key; only a sandbox has a play
# of its own. A purchase that is decided anew after a lost race has the same cause, and gets the
# same again.
Play = Callable[[UUID, str | None, BoughtPlan, Cause], BoughtPlan]


def as_sold(_owner: UUID, _key: str | None, plan: BoughtPlan, _cause: Cause) -> BoughtPlan:
    """Return the plan itself."""
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
