"""The whole catalogue of a network, read before anything is done with it."""

from collections.abc import Sequence
from itertools import islice

from domain.catalogue.plan_file import PLANS_MAX
from domain.catalogue.supplied import SuppliedPlan
from domain.errors import NotPossible
from domain.links.network import EsimNetwork
from domain.provider_errors import ProviderError

CALL_S = 30.0  # For each call of the network; a catalogue has many pages.


def supplied_by(network: EsimNetwork) -> Sequence[SuppliedPlan]:
    """Return what a network supplies; NotPossible if it does not tell it, or too much of it."""
    try:
        supplied = [*islice(network.supplied(timeout_s=CALL_S), PLANS_MAX + 1)]
    except ProviderError as error:
        message = f"the network {network.name} does not give its catalogue: {type(error).__name__}"
        raise NotPossible(message) from error
    if len(supplied) > PLANS_MAX:
        message = f"the network {network.name} lists more than {PLANS_MAX} plans"
        raise NotPossible(message)
    return supplied
