"""The registries of providers: who can answer lookups, and which networks links can run on.

A provider is its adapter and one entry here, under the name that its setting takes.
"""

from collections.abc import Callable, Iterable, Mapping
from threading import Event
from typing import TYPE_CHECKING

from app.adapters.lookups.mcc_mnc import load_networks
from app.adapters.lookups.offline import OfflineLookup
from app.adapters.networks.bics.network import BicsNetwork, Profiles
from app.adapters.networks.bics.session import Session
from app.adapters.networks.esimgo.network import EsimGo
from app.adapters.networks.simulated.network import SimulatedNetwork
from app.adapters.remote.api import RemoteRules
from app.settings import Settings, WrongSetting
from domain.links.network import EsimNetwork
from domain.lookups.ports import LookupProvider

if TYPE_CHECKING:
    from app.bootstrap.container import Container

# Ten calls within any second, for all processes at one address. A page of the catalogue is large,
# because each of its bundles names all of its countries.
ESIMGO = RemoteRules(calls_per_s=8, burst=2, body_bytes_max=4 << 20)
SEED = "carrier-links"  # For the simulator: the same installation gets the same eSIMs again.


def offline(container: "Container") -> OfflineLookup:
    """Make the provider of lookups that needs no network."""
    try:
        networks = load_networks(container.settings.mcc_mnc_file)
    except ValueError as error:
        message = f"MCC_MNC_FILE {error}"
        raise WrongSetting(message) from error
    return OfflineLookup(networks)


def simulated(container: "Container") -> SimulatedNetwork:
    """Make the network that needs no network; its eSIMs and endpoints are in the stores."""
    return SimulatedNetwork(
        container.stores,
        container.clock,
        SEED,
        sandbox=container.settings.sandbox,
        wait=Event().wait,
        patience=container.rules.deadline,
    )


def esimgo(container: "Container") -> EsimGo:
    """Make the network of eSIM Go; its key goes with each call and signs notifications."""
    settings = container.settings
    key = settings.esimgo_api_key
    if not key.strip() or not key.isascii() or not key.isprintable():
        message = "ESIMGO_API_KEY must be set: it is needed by NETWORK_PROVIDER"
        raise WrongSetting(message)
    headers = {"X-API-Key": key}
    api = container.remote_api(EsimGo.name, settings.esimgo_url, headers=headers, rules=ESIMGO)
    return EsimGo(api, key, container.clock, refunds=settings.esimgo_refunds)


def bics(container: "Container") -> BicsNetwork:
    """Make the network of an account at BICS SIM for Things."""
    settings = container.settings
    needed = ("bics_username", "bics_password", "bics_roaming_profile", "bics_apn_group")
    for name in needed:
        if not getattr(settings, name):
            message = f"{name.upper()} must be set for the network bics"
            raise WrongSetting(message)
    api = container.remote_api("bics", settings.bics_url)
    session = Session(api, settings.bics_username, settings.bics_password)
    profiles = Profiles(settings.bics_roaming_profile, settings.bics_apn_group)
    return BicsNetwork(session, profiles, container.clock)


LOOKUPS: Mapping[str, Callable[["Container"], LookupProvider]] = {"offline": offline}
NETWORKS: Mapping[str, Callable[["Container"], EsimNetwork]] = {
    "bics": bics,
    "esimgo": esimgo,
    "simulated": simulated,
}


def require_known(settings: Settings) -> None:
    """Raise WrongSetting for a provider that is not registered here."""
    for provider in settings.lookup_providers:
        _require("LOOKUP_PROVIDER", provider, LOOKUPS)
    for network in settings.networks:
        _require("NETWORK_PROVIDER", network, NETWORKS)
    by_provider: dict[str, Iterable[str]] = {
        "COST_PER_LOOKUP": settings.lookup_costs,
        "LOOKUP_CACHE_TTLS_S": settings.lookup_cache_ttls,
        "LOOKUP_CONCURRENCY": settings.lookups_at_once,
    }
    for name, values in by_provider.items():
        for provider in values:
            _require(name, provider, LOOKUPS)


def _require(setting: str, provider: str, known: Mapping[str, object]) -> None:
    if provider not in known:
        message = f"{setting} must be one of: {', '.join(known)}"
        raise WrongSetting(message)
