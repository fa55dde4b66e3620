"""LOOKUP_PROVIDER and NETWORK_PROVIDER name an entry of a registry, which is what is used."""

import pytest

from app.bootstrap import container as bootstrap
from app.bootstrap import providers
from app.bootstrap.container import Container
from app.settings import Settings, WrongSetting
from tests.contracts.scripted_lookup import VALID_MOBILE, ScriptedLookup
from tests.faulty_network import FaultyNetwork
from tests.installation import Installation
from tests.log_lines import records_of

UNKNOWN = {
    "LOOKUP_PROVIDER": f"LOOKUP_PROVIDER must be one of: {', '.join(providers.LOOKUPS)}",
    "COST_PER_LOOKUP": f"COST_PER_LOOKUP must be one of: {', '.join(providers.LOOKUPS)}",
    "LOOKUP_CACHE_TTLS_S": f"LOOKUP_CACHE_TTLS_S must be one of: {', '.join(providers.LOOKUPS)}",
    "LOOKUP_CONCURRENCY": f"LOOKUP_CONCURRENCY must be one of: {', '.join(providers.LOOKUPS)}",
    "NETWORK_PROVIDER": f"NETWORK_PROVIDER must be one of: {', '.join(providers.NETWORKS)}",
}
BICS = dict.fromkeys(
    ("BICS_USERNAME", "BICS_PASSWORD", "BICS_ROAMING_PROFILE", "BICS_APN_GROUP"), "x"
)


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_provider_is_refused_by_the_names_that_are_known(name: str) -> None:
    value = "oracle" if name.endswith("_PROVIDER") else "oracle=1"
    with pytest.raises(WrongSetting) as refused:
        Container(Settings.from_env({name: value}))
    assert str(refused.value) == UNKNOWN[name]


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"LOOKUP_PROVIDER": "twilio"}, "TWILIO_ACCOUNT_SID must be set"),
        ({"LOOKUP_PROVIDER": "offline,telnyx"}, "TELNYX_API_KEY must be set"),
        ({"LOOKUP_PROVIDER": "telnyx", "TELNYX_API_KEY": "two\nlines"}, "TELNYX_API_KEY must be"),
        (
            {"LOOKUP_PROVIDER": "telnyx", "TELNYX_API_KEY": "k", "TELNYX_URL": "http://a.test"},
            "the base URL of telnyx must be an https URL",
        ),
        *(({"NETWORK_PROVIDER": "bics", **BICS, name: ""}, f"{name} must be set") for name in BICS),
    ],
)
def test_what_a_provider_needs_is_named(environment: dict[str, str], told: str) -> None:
    container = Container(Settings.from_env(environment))
    with pytest.raises(WrongSetting, match=told):
        container.check_settings()


@pytest.mark.parametrize(
    "environment",
    [
        *({"LOOKUP_PROVIDER": f"offline,{name}"} for name in {*providers.LOOKUPS} - {"offline"}),
        *({"NETWORK_PROVIDER": name} for name in {*providers.NETWORKS} - {"simulated"}),
    ],
)
def test_no_sandbox_stands_beside_a_provider_that_is_real(environment: dict[str, str]) -> None:
    with pytest.raises(WrongSetting, match="SANDBOX must be false beside"):
        Container(Settings.from_env({**environment, "SANDBOX": "true"}))
    Container(Settings.from_env({**environment, "SANDBOX": "false"}))


def test_an_entry_is_all_that_a_network_needs_and_a_remote_one_has_a_circuit(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remote(container: Container) -> FaultyNetwork:
        network = FaultyNetwork(providers.simulated(container))
        network.name, network.remote = "remote", True
        return network

    monkeypatch.setitem(providers.NETWORKS, "remote", remote)
    installation.environment |= {"NETWORK_PROVIDER": "remote", "SANDBOX": "false"}
    process = installation.process()
    assert process.network.name == "remote"
    assert isinstance(process.network, bootstrap.GuardedNetwork)
    assert process.network.find_endpoint("8900", timeout_s=1.0) is None
    assert len(process.circuits) == 1


class Broken(ScriptedLookup):
    """A provider whose probe fails in a way that its port does not allow."""

    def probe(self) -> None:
        raise KeyError(VALID_MOBILE)


def test_a_provider_that_cannot_be_warmed_is_a_warning_that_names_the_type_alone(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(providers.LOOKUPS, "broken", lambda _: Broken())
    installation.environment |= {"LOOKUP_PROVIDER": "broken", "SANDBOX": "false"}
    process = installation.process()
    process.warm()
    said = records_of(caplog, bootstrap.__name__)
    assert [each.getMessage() for each in said] == [
        "the lookup provider could not be warmed: KeyError"
    ]
    assert said[0].exc_info is None
    assert process.answers.one(process.organization(), VALID_MOBILE).facts.valid


REMOTE = {
    "SANDBOX": "false",
    "NETWORK_PROVIDER": "simulated,airalo,bics,esimgo",
    "AIRALO_CLIENT_ID": "client",
    "AIRALO_CLIENT_SECRET": "secret",
    "ESIMGO_API_KEY": "key",
    "BICS_USERNAME": "user",
    "BICS_PASSWORD": "password",
    "BICS_ROAMING_PROFILE": "roaming",
    "BICS_APN_GROUP": "apn",
}


def test_every_network_is_told_by_its_name_and_its_shape(installation: Installation) -> None:
    installation.environment |= REMOTE
    process = installation.process()
    networks = {name: process.networks.of(name) for name in process.settings.networks}
    assert networks.keys() == {*providers.NETWORKS}, "REMOTE names them all"
    assert all(network.name == name for name, network in networks.items())
    by_order = {name for name, network in networks.items() if network.shape == "order"}
    assert by_order == providers.BY_ORDER
    assert len({id(each) for each in process.circuits}) == len(networks) - 1


def test_a_second_network_without_its_settings_is_refused_at_the_start(
    installation: Installation,
) -> None:
    installation.environment |= {"NETWORK_PROVIDER": "simulated,esimgo", "SANDBOX": "false"}
    with pytest.raises(WrongSetting, match="ESIMGO_API_KEY"):
        installation.process().check_settings()
