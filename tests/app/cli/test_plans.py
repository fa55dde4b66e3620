"""`plans`: the catalogue as operators fill, change and see it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.adapters.networks.simulated.network import SimulatedNetwork
from domain.catalogue.supplied import SuppliedCountry, SuppliedPlan
from domain.catalogue.syncing import COSTS_NOTHING, NO_COUNTRY
from domain.cause import utc_now
from domain.cost import Cost
from domain.provider_errors import Unavailable
from tests.app.cli.shell import ROOT, Shell
from tests.plan_files import covering, plan, profile, written
from tests.support.providers.airalo import CLIENT_ID, CLIENT_SECRET, AiraloServer
from tests.support.providers.esimgo import KEY, EsimGoServer
from tests.support.providers.server import Request


def test_the_file_of_the_handbook_can_be_imported(shell: Shell) -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8").partition("\n## Plans\n")[2]
    file = shell.home / "plans.json"
    file.write_text(page.split("```json\n")[1].split("```")[0])
    assert shell.json("plans", "import", file)["created"] == 1
    samples = ROOT / "app" / "data" / "demo_plans.json"
    assert shell.json("plans", "import", samples)["created"] == len(listed(shell)) - 1 > 1


def listed(shell: Shell) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = shell.json("plans", "list")["data"]
    return rows


def test_the_list_tells_everything_and_can_be_imported_again(shell: Shell, tmp_path: Path) -> None:
    owner = str(shell.new_organization())
    everything = {
        "id": str(uuid4()),
        "organization_id": None,
        "enabled": False,
        "excluded_organizations": [owner],
        "retail_price": "0.005",
        "name": "Everything",
        "provider_plan_id": "everything",
        "currency": "USD",
        "data_mb": 1500,
        "validity_days": 30,
        "coverage_type": "regional",
        "sponsor_profiles": [profile("sp-1"), profile("sp-2")],
        "coverage": covering("DE", "XK", operators=2),
        "cost": "0.004",
        "cost_currency": "EUR",
        "network": "simulated",
        "later_prices": [{"from": "2099-01-01T00:00:00.000Z", "retail_price": "0.006"}],
    }
    own = plan("Own", organization_id=owner, provider_plan_id=None)
    path = tmp_path / "plans.json"
    path.write_bytes(written(everything, own))
    shell.run("plans", "import", path)
    rows = listed(shell)
    assert rows[0] == everything
    assert UUID(rows[1].pop("id"))
    expected = {"enabled": True, "excluded_organizations": [], "coverage_type": "local"}
    unknown = {"cost": None, "cost_currency": None, "network": "simulated", "later_prices": []}
    assert rows[1] == own | expected | unknown
    path.write_bytes(written(*listed(shell)))
    assert shell.json("plans", "import", path) == {"created": 0, "updated": 0, "unchanged": 2}


def test_a_plan_is_not_hidden_from_whom_it_is_shown_to(shell: Shell) -> None:
    its = shell.new_organization()
    line = ("plans", "set", uuid4(), "--exclude", its, "--exclude", uuid4(), "--include", its)
    assert "--exclude or to --include" in shell.refusal(*line, status=2)


def test_a_rule_for_prices_is_checked(shell: Shell) -> None:
    for options, named in (
        ("--markup 30", "30%"),
        ("--markup -5%", "30%"),
        ("--round 0.50", "--markup"),
        ("--rate USD=1", "--markup"),
        ("--with-conditions", "--markup"),
        ("--markup 30% --rate USD", "USD=0.92"),
        ("--markup 30% --rate USD=0", "USD=0.92"),
        ("--markup 30% --round 0", "above 0"),
    ):
        line = ("plans", "sync", "simulated", *options.split())
        assert named in shell.refusal(*line, status=2), options


COVERAGE = (SuppliedCountry("FR", (("Orange", ("4G",)),)),)
IN_EUROS = SuppliedPlan("small", "France 1 GB", 1000, 7, COVERAGE, Cost(2_000_000, "EUR"))


def test_a_cost_in_another_currency_has_a_price_by_its_rate_alone(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedNetwork, "supplied", lambda *_, **__: [IN_EUROS])
    for rates, price in ((), None), (("--rate", "GBP=9", "--rate", "EUR=1.2"), "3.60 USD"):
        told = shell.json("plans", "sync", "simulated", "--markup", "50%", *rates, "--dry-run")
        assert [each["price"] for each in told["created"]] == [price]


def test_a_network_that_gives_half_of_its_catalogue_changes_nothing_and_holds_up_nobody(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half() -> Iterator[SuppliedPlan]:
        yield IN_EUROS
        other = shell.container()
        assert other.operators_lock.acquire()
        other.operators_lock.release()
        raise Unavailable

    monkeypatch.setattr(SimulatedNetwork, "supplied", lambda *_, **__: half())
    assert "does not give its catalogue" in shell.refusal("plans", "sync", "simulated")
    assert listed(shell) == []


def spoil_esimgo(_: Request, told: Any) -> Any:
    """Take a field from some bundles and countries, and give others one that makes no sense."""
    if isinstance(told, list):
        bundles = told
        del bundles[0]["duration"]
        bundles[1]["dataAmount"] = "much"
        bundles[2]["dataAmount"] = "2000.0"
        bundles[2].pop("description", None)
        bundles[2]["countries"] = [{"name": "France"}, 7, *bundles[2]["countries"]]
        del bundles[3]["name"]
        bundles[4]["price"] = 0
    elif "countryNetworks" in told:
        told["countryNetworks"] = [{"networks": []}, *told["countryNetworks"]]
    return told


def test_an_odd_entry_of_a_catalogue_is_skipped_with_its_reason(shell: Shell) -> None:
    with EsimGoServer(utc_now) as server:
        own = {"NETWORK_PROVIDER": "simulated,esimgo", "ESIMGO_API_KEY": KEY}
        shell = shell.having(ESIMGO_URL=server.url, **own)
        for number in range(6):
            server.offer(f"esim_{number}", "2.00")
        rule = ("--markup", "60%", "--round", "0.50")
        told = shell.json("plans", "sync", "esimgo", *rule, "--dry-run")
        assert (told["dry_run"], len(told["created"]), listed(shell)) == (True, 6, [])
        assert shell.json("plans", "sync", "esimgo", *rule) == {**told, "dry_run": False}
        assert (told["created"][0]["cost"], told["created"][0]["price"]) == ("2.00 USD", "3.50 USD")
        server.mangle = spoil_esimgo
        told = shell.json("plans", "sync", "esimgo", "--markup", "50%")
        assert {(each["provider_plan_id"], each["reason"]) for each in told["skipped"]} == {
            ("esim_0", "cannot be read at page 1 $.bundles[0].duration"),
            ("esim_1", "cannot be read at page 1 $.bundles[1].dataAmount"),
            (None, "cannot be read at page 1 $.bundles[2].countries[1]"),
            (None, "cannot be read at page 1 $.bundles[3].name"),
            ("esim_4", COSTS_NOTHING),
            (None, "cannot be read at $.countryNetworks[0].name"),
        }
        assert [each["provider_plan_id"] for each in told["updated"]] == ["esim_2"]
        assert told["unchanged"] == 1
        assert [each["provider_plan_id"] for each in told["withdrawn"]] == ["esim_3"]
        shown = shell.run("plans", "sync", "esimgo").stdout
        assert "cannot be read at page 1 $.bundles[0].duration" in shown
        assert "withdrawn:" in shown


AIRALO = {"NETWORK_PROVIDER": "simulated,airalo", "AIRALO_CLIENT_ID": CLIENT_ID}


def spoil_airalo(_: Request, told: Any) -> Any:
    """Give the packages of a catalogue amounts and countries that make no sense."""
    if isinstance(told, dict) and isinstance(told["data"], list) and told["data"]:
        operators = [area["operators"][0] for area in told["data"]]
        operators[0]["packages"][0]["amount"] = None
        operators[1]["packages"][0]["amount"] = "a lot"
        operators[2]["packages"][0]["day"] = "7"
        operators[2]["countries"] += [{"country_code": None}, {"country_code": "EU"}, None]
        operators[3]["countries"] = [{"country_code": code} for code in ("UK", "IC", "AN")]
        told["data"][4]["operators"] = None
    return told


def test_odd_packages_and_pseudo_countries_stop_no_sync(shell: Shell) -> None:
    with AiraloServer(utc_now) as server:
        shell = shell.having(AIRALO_URL=server.url, AIRALO_CLIENT_SECRET=CLIENT_SECRET, **AIRALO)
        for number in range(5):
            server.offer(f"package-{number}")
        server.mangle = spoil_airalo
        told = shell.json("plans", "sync", "airalo", "--markup", "50%")
        where = "cannot be read at page 1 $.data"
        assert {(each["provider_plan_id"], each["reason"]) for each in told["skipped"]} == {
            ("package-0", f"{where}[0].operators[0].packages[0].amount"),
            ("package-1", f"{where}[1].operators[0].packages[0].amount"),
            (None, f"{where}[2].operators[0].countries[2].country_code"),
            (None, f"{where}[2].operators[0].countries[4]"),
            ("package-3", f"{NO_COUNTRY}: AN, IC, UK"),
            (None, f"{where}[4].operators"),
        }
        (row,) = told["created"]
        assert (row["provider_plan_id"], row["price"]) == ("package-2", "3.45 USD")


def test_a_catalogue_that_cannot_be_read_at_all_is_refused_with_the_place(shell: Shell) -> None:
    with AiraloServer(utc_now) as server:
        shell = shell.having(AIRALO_URL=server.url, AIRALO_CLIENT_SECRET=CLIENT_SECRET, **AIRALO)
        server.offer("package-0")
        server.mangle = lambda request, told: told if request.route == "token" else {"data": []}
        refused = shell.refusal("plans", "sync", "airalo")
        assert "cannot be read as CataloguePage at $.meta" in refused
        server.mangle = lambda request, told: (
            told if request.route == "token" else {"data": [5], "meta": {"last_page": 1}}
        )
        refused = shell.refusal("plans", "sync", "airalo")
        assert refused == "the network airalo lists no plans; cannot be read at page 1 $.data[0]"
