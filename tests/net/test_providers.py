"""What partners see of a remote lookup provider and of an order network, played by servers here."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.net.house import House, house
from tests.net.net import Net
from tests.net.test_plans import own_plans
from tests.plan_files import plan
from tests.seeds import Seed
from tests.support.providers.esimgo import KEY, EsimGoServer, signature
from tests.support.providers.server import FaultKind
from tests.support.providers.telnyx import ScriptedTelnyx, carrier

BUNDLE, MORE = "esim_1GB_7D_FR_V2", "esim_3GB_30D_FR_V2"
NUMBER = "+14155552671"

# What they ask of a database `test_links`, `test_lookups` and `test_plans` ask, too.


@dataclass
class Connected:
    """A house, and the far sides that it calls."""

    house: House
    telnyx: ScriptedTelnyx
    esimgo: EsimGoServer


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory, migrated: Seed) -> Iterator[Connected]:
    home = tmp_path_factory.mktemp("connected")
    with ScriptedTelnyx() as telnyx, EsimGoServer(lambda: made.clock.now) as esimgo:
        settings = {
            "SANDBOX": "false",
            "PROVISIONING_DEADLINE_S": "5",
            "LOOKUP_PROVIDER": "telnyx",
            "NETWORK_PROVIDER": "simulated,esimgo",
            "ESIMGO_API_KEY": KEY,
            "ESIMGO_URL": esimgo.url,
            "PRICE_PER_LOOKUP": "0.02",
            "COST_PER_LOOKUP": "telnyx=0.01 EUR",
            **telnyx.settings,
        }
        with house(home, migrated, **settings) as made:
            yield Connected(made.start("serve"), telnyx, esimgo)


@pytest.fixture(name="house")
def house_of_these(connected: Connected) -> House:
    return connected.house


def test_answers_are_kept_and_outages_are_not(net: Net, connected: Connected) -> None:
    telnyx = connected.telnyx
    acme, rival = net.partner(), net.partner(name="Rival")
    telnyx.know(NUMBER, carrier=carrier("mobile", "Scripted Mobile"))
    acme.post("/number-lookup", {"phone_number": NUMBER})
    acme.post("/number-lookup", {"phone_number": NUMBER})
    acme.post(f"/number-lookup?max_age=0&phone_number=%2B{NUMBER[1:]}")
    rival.post("/number-lookup", {"phone_number": NUMBER})
    telnyx.fault(FaultKind.SERVER_ERROR, times=3)
    acme.post("/number-lookup", {"phone_number": "+447400123456"})
    telnyx.heal()
    acme.get("/v1/transactions")


def test_an_order_network(net: Net, connected: Connected) -> None:
    acme, esimgo = net.partner(), connected.esimgo
    # Whether the time is up before the last attempt is a matter of speed.
    net.masks.fleeting[r"^(deadline|network_unavailable)$"] = "<no answer>"
    net.masks.fleeting[r"(could not be reached|did not answer in time)"] = "<gave no answer>"
    for name in (BUNDLE, MORE):
        esimgo.offer(name)
    own_plans(
        acme,
        *(
            plan(name, network="esimgo", provider_plan_id=name, data_mb=1000)
            for name in (BUNDLE, MORE)
        ),
    )
    bought = acme.post("/v1/links", {"plan_id": acme.plan(BUNDLE)}).data
    one = f"/v1/links/{bought['id']}"
    acme.get(one)
    acme.post(f"{one}/cancel")
    removed = acme.data(one)["activations"][0]["id"]
    acme.call("PUT", f"{one}/plans", {"remove": [removed]})
    acme.call("PUT", f"{one}/plans", {"add": [acme.plan(MORE)]})
    acme.post(f"{one}/suspend")
    acme.get(f"{one}/network-status?live=true")
    for change in ("reactivate", "suspend"):
        esimgo.fault(FaultKind.SERVER_ERROR, times=9)
        acme.post(f"{one}/{change}")
        esimgo.heal()
    acme.post(f"{one}/reactivate")
    body = json.dumps({"iccid": bought["iccid"], "alertType": "Utilisation"}).encode()
    nobody = net.stranger()
    nobody.post("/networks/esimgo/notifications", body=body, Content_Type="application/json")
    signed = {name.replace("-", "_"): value for name, value in signature(body).items()}
    nobody.post(
        "/networks/esimgo/notifications", body=body, Content_Type="application/json", **signed
    )
    esimgo.fault(FaultKind.SERVER_ERROR, times=9)
    acme.call("DELETE", one)
    esimgo.heal()
    acme.call("DELETE", one)
    acme.get("/v1/transactions")


def test_providers_are_checked_and_drained(net: Net) -> None:
    net.masks.fleeting[r"^9\.\d\d USD$"] = "<what is left at telnyx>"
    net.run("providers", "check")
    net.run("providers", "drain", "telnyx")
    acme = net.partner()
    anew = "/number-lookup?max_age=0&phone_number=%2B4915112345678"
    net.until(lambda: acme.ask("POST", anew).status == 503)
    acme.post(anew)
    net.run("providers", "drain", "telnyx", "--end")
    net.run("plans", "sync", "esimgo", "--dry-run")


def test_a_link_with_several_plans_in_use(net: Net, connected: Connected) -> None:
    acme, esimgo = net.partner(), connected.esimgo
    for name, days in ((BUNDLE, 7), (MORE, 30)):
        esimgo.offer(name, days=days)
        own_plans(acme, plan(name, network="esimgo", provider_plan_id=name, data_mb=1000))
    bought = acme.buy(BUNDLE)
    net.masks.plain[bought["iccid"]] = "iccid"
    net.masks.fleeting[r"MATCH-\d+"] = "<matching id>"
    one = f"/v1/links/{bought['id']}"
    acme.ask("PUT", f"{one}/plans", {"add": [acme.plan(MORE), acme.plan(BUNDLE)]})
    for each in esimgo.esims[bought["iccid"]].puts:
        each.started_at = net.house.clock.now
    net.until(lambda: acme.data(one)["expires_at"])
    acme.get(one)
    acme.get("/v1/links")
