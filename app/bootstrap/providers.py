"""The registries of providers: LOOKUPS answer lookups, links run on NETWORKS.

A new provider needs an adapter, and an entry here under the name that its setting takes. The sets
and tables beside the registries hold what else depends on that name alone.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from app.adapters.lookups.mcc_mnc import load_networks
from app.adapters.lookups.offline import OfflineLookup
from app.adapters.lookups.telnyx import TelnyxLookup
from app.adapters.lookups.twilio import TwilioLookup, basic
from app.adapters.networks.airalo import network as airalo_api
from app.adapters.networks.bics.network import BicsNetwork
from app.adapters.networks.bics.session import Session
from app.adapters.networks.esimgo.network import EsimGo
from app.adapters.networks.simulated.network import SimulatedNetwork
from app.adapters.remote.api import RemoteApi, RemoteRules
from app.adapters.remote.login import bearer
from app.bootstrap.sandbox import CHANGE, is_of
from app.settings import Settings, WrongSetting, name_of
from domain.blocking import sleep_s
from domain.catalogue.plan import SIMULATED
from domain.links.esim import holder_of
from domain.links.link import Link
from domain.links.network import EsimNetwork
from domain.lookups.ports import LookupProvider

if TYPE_CHECKING:
    from app.bootstrap.container import Container

# eSIM Go allows ten calls within any second, for all processes at one address. A page of its
# catalogue is large, because each bundle names all of its countries.
ESIMGO = RemoteRules(calls_per_s=8, burst=2, read_pace_s=1.5, body_bytes_max=4 << 20)
AIRALO = RemoteRules(body_bytes_max=4 << 20)  # Each package has its price in 20 currencies.
SEED = "carrier-links"  # Of the simulator, so that an installation gets the same eSIMs again.


def offline(container: "Container") -> OfflineLookup:
    try:
        networks = load_networks(container.settings.mcc_mnc_file)
    except ValueError as error:
        raise WrongSetting(f"MCC_MNC_FILE {error}") from error
    return OfflineLookup(networks)


def simulated(container: "Container") -> SimulatedNetwork:
    """Make the simulated network; its eSIMs and endpoints are rows of the stores."""
    return SimulatedNetwork(
        container.stores,
        container.clock,
        SEED,
        sandbox=container.settings.sandbox,
        wait=sleep_s,
        patience=container.provisioning_rules.deadline,
        **(_as_played(container) if container.settings.sandbox else {}),
    )


def _as_played(container: "Container") -> dict[str, Any]:
    """Return what lets the links of each organization age, and fail, as it plays."""
    counters = container.counters

    def link_of(iccid: str) -> Link | None:
        link_id = holder_of(container.log, [SIMULATED], iccid)
        return None if link_id is None else container.log.find(Link, link_id)

    def owner_of(iccid: str) -> tuple[UUID, ...]:
        link = link_of(iccid)
        return () if link is None else (link.organization_id, link.id)

    def scripted(owner: UUID, iccid: str) -> str | None:
        """Count what a request changes; what cleans up after a failed purchase is none."""

        def fits(of: str, _: str) -> bool:
            link = link_of(iccid)
            if link is None or link.open_call is None:
                return False
            return is_of(of, CHANGE, [each.plan.plan_id for each in link.current_activations])

        return counters.next_failure(owner, fits)

    return {"ahead": counters.simulated_ahead, "owner_of": owner_of, "scripted": scripted}


def esimgo(container: "Container") -> EsimGo:
    """Make the network of eSIM Go; its key goes with each call and signs notifications."""
    settings = container.settings
    key = _needed(settings, "esimgo_api_key", "NETWORK_PROVIDER")
    headers = {"X-API-Key": key}
    api = container.remote_api(EsimGo.name, settings.esimgo_url, headers=headers, rules=ESIMGO)
    return EsimGo(api, key, container.clock, refunds=settings.esimgo_refunds)


def airalo(container: "Container") -> airalo_api.Airalo:
    """Make the network of Airalo; the packages of eSIMs are read through a second client."""
    settings = container.settings
    client_id = _needed(settings, "airalo_client_id", "NETWORK_PROVIDER")
    secret = _needed(settings, "airalo_client_secret", "NETWORK_PROVIDER")
    api, packages = (
        container.remote_api(airalo_api.Airalo.name, settings.airalo_url, rules=AIRALO)
        for _ in range(2)
    )
    session = airalo_api.Session(api, client_id, secret)
    return airalo_api.Airalo(session, packages, container.clock)


def bics(container: "Container") -> BicsNetwork:
    settings = container.settings
    names = ("bics_username", "bics_password", "bics_roaming_profile", "bics_apn_group")
    user, password, *profiles = (_set(settings, name, "NETWORK_PROVIDER") for name in names)
    session = Session(container.remote_api("bics", settings.bics_url), user, password)
    return BicsNetwork(session, container.clock, *profiles)


def twilio(container: "Container") -> TwilioLookup:
    """Make Twilio's lookups; its two hosts take the same credentials."""
    settings = container.settings
    account = _needed(settings, "twilio_account_sid")
    user = settings.twilio_api_key or account
    headers = basic(user, _needed(settings, "twilio_auth_token"))
    urls = (settings.twilio_lookups_url, settings.twilio_api_url)
    lookups, accounts = (_lookup_api(container, "twilio", url, headers) for url in urls)
    return TwilioLookup(lookups, accounts, account)


def telnyx(container: "Container") -> TelnyxLookup:
    settings = container.settings
    headers = bearer(_needed(settings, "telnyx_api_key"))
    return TelnyxLookup(_lookup_api(container, "telnyx", settings.telnyx_url, headers))


def _lookup_api(
    container: "Container", name: str, url: str, headers: Mapping[str, str]
) -> RemoteApi:
    rules = RemoteRules(calls_max=container.settings.lookups_at_once[name])
    return container.remote_api(name, url, headers=headers, rules=rules)


def _needed(settings: Settings, attribute: str, setting: str = "LOOKUP_PROVIDER") -> str:
    """Return a setting that goes into a header; `setting` names the one that requires it."""
    value = _set(settings, attribute, setting)
    if not value.isascii() or not value.isprintable():
        raise WrongSetting(f"{name_of(attribute)} must be plain text of one line")
    return value


def _set(settings: Settings, attribute: str, setting: str) -> str:
    value: str = getattr(settings, attribute)
    if not value.strip():
        raise WrongSetting(f"{name_of(attribute)} must be set: it is needed by {setting}")
    return value


LOOKUPS: Mapping[str, Callable[["Container"], LookupProvider]] = {
    "offline": offline,
    "telnyx": telnyx,
    "twilio": twilio,
}
NETWORKS: Mapping[str, Callable[["Container"], EsimNetwork]] = {
    "airalo": airalo,
    "bics": bics,
    "esimgo": esimgo,
    "simulated": simulated,
}
OURS = frozenset({"offline", "simulated"})  # They call no provider, so a sandbox may have them.
# Networks that need no base plan, because they have no stock.
BY_ORDER = frozenset({"airalo", "esimgo"})

# The column names in the invoices of providers, see docs/providers. Options of the command name the
# columns of other files.
INVOICES: Mapping[str, Mapping[str, str]] = {
    "twilio": {
        "by": "day",
        "reference": "start_date",
        "amount": "price",
        "currency_column": "price_unit",
    },
    "telnyx": {
        "by": "month",
        "reference": "start_date",
        "amount": "total_cost",
        "currency_column": "currency",
    },
    "esimgo": {
        "reference": "orderReference",
        "amount": "total",
        "currency_column": "currency",
    },
}


def require_known(settings: Settings) -> None:
    """Raise WrongSetting for a provider that is not registered here, or not for a sandbox."""
    for provider in settings.lookup_providers:
        _require("LOOKUP_PROVIDER", provider, LOOKUPS)
    for network in settings.networks:
        _require("NETWORK_PROVIDER", network, NETWORKS)
    real = [each for each in (*settings.lookup_providers, *settings.networks) if each not in OURS]
    if settings.sandbox and real:
        message = f"SANDBOX must be false beside {real[0]}: what it sells is real and costs money"
        raise WrongSetting(message)
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
        raise WrongSetting(f"{setting} must be one of: {', '.join(known)}")
