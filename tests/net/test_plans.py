"""The catalogue as partners see it."""

import json

import pytest

from tests.net.net import Net, Partner
from tests.plan_files import covering, plan

pytestmark = pytest.mark.each_database

PATH = "/v1/plans"


def own_plans(acme: Partner, *plans: dict[str, object]) -> dict[str, int]:
    """Import plans that only this partner sees, and wait until it does."""
    net = acme.net
    own = [{"organization_id": acme.id, **each} for each in plans]
    file = net.file("plans.json", json.dumps({"plans": own}))
    done: dict[str, int] = net.quietly("plans", "import", file)
    names = {str(each["name"]) for each in plans if each.get("enabled", True)}
    net.until(lambda: names <= {each["name"] for each in acme.data(f"{PATH}?per_page=100")["data"]})
    return done


def test_the_plans_of_the_demo(acme: Partner) -> None:
    acme.get(PATH)
    for query in (
        "?region=LA",
        "?country=FR",
        "?coverage_type=regional",
        "?coverage_type=global&region=EU",
        "?sponsor_profile=sp-boreal&per_page=2",
        "?sponsor_profile=Boreal&per_page=2&page=2",
        "?per_page=3&page=2",
        "?per_page=100&page=9",
        "?country=FR&coverage_type=local&name=x",
        "?region=XX&country=UK&coverage_type=lunar&per_page=0",
        "?search=gErM&sort=-price&per_page=2",
        "?max_price=4.50&sort=price&per_page=1&page=2",
        "?max_price=4,50&sort=cost&search=%00",
    ):
        acme.get(f"{PATH}{query}")


def test_one_plan_its_coverage_and_the_regions(acme: Partner) -> None:
    france = f"{PATH}/{acme.plan('France 5 GB')}"
    europe = f"{PATH}/{acme.plan('sandbox-no-esim')}"
    for path in (france, f"{france}/coverage", europe, f"{PATH}/regions", PATH):
        read = acme.get(path)
        acme.get(path, If_None_Match=read.headers["etag"])
    for path in ("nonsense", "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"):
        acme.get(f"{PATH}/{path}")
        acme.get(f"{PATH}/{path}/coverage")
    acme.call("DELETE", france)


def test_who_sees_which_plan(net: Net, acme: Partner, rival: Partner) -> None:
    own_plans(
        acme,
        plan("Own"),
        plan("Off", enabled=False),
        plan("Wide", coverage=covering("DE", "FR", "US", operators=2), data_mb=1500),
    )
    own = acme.plan("Own")
    acme.get(f"{PATH}/{own}")
    acme.get(f"{PATH}/{acme.plan('Wide')}/coverage")
    rival.get(f"{PATH}/{own}")
    net.run("plans", "set", own, "--disable")
    net.until(lambda: acme.ask("GET", f"{PATH}/{own}").status == 404)
    acme.get(f"{PATH}/{own}")
    net.run("plans", "set", own, "--enable")
    net.until(lambda: acme.ask("GET", f"{PATH}/{own}").status == 200)
    spain = acme.plan("Spain 5 GB")
    net.run("plans", "set", spain, "--exclude", acme.id)
    net.until(lambda: acme.ask("GET", f"{PATH}/{spain}").status == 404)
    acme.get(f"{PATH}/{spain}")
    rival.get(f"{PATH}/{spain}")
    net.run("plans", "set", spain, "--include", acme.id)
    net.until(lambda: acme.ask("GET", f"{PATH}/{spain}").status == 200)
    own_plans(acme, plan("My Spain", provider_plan_id="es-5gb-30d", retail_price="6.00"))
    acme.get(f"{PATH}?country=ES")
    rival.get(f"{PATH}?country=ES&coverage_type=local")


def test_plans_are_imported(net: Net, acme: Partner) -> None:
    own = {"organization_id": acme.id}
    first = [plan("One", **own), plan("Two", **own, cost="2.10", cost_currency="EUR")]
    file = net.file("plans.json", json.dumps({"plans": first}))
    net.run("plans", "import", file)
    net.run("plans", "import", file)
    later = [plan("One", **own, retail_price="5.00"), plan("Three", **own)]
    net.file("plans.json", json.dumps({"plans": later}))
    net.run("plans", "import", file)
    wrong = [plan("Bad", **own, retail_price="-1", currency="EUR"), {"name": "Worse"}]
    net.file("plans.json", json.dumps({"plans": wrong}))
    net.run("plans", "import", file)
    net.file("plans.json", "[")
    net.run("plans", "import", file)
    net.run("plans", "import", net.house.home / "missing.json")
    net.until(lambda: "Three" in str(acme.data(f"{PATH}?per_page=100")))
    two = acme.plan("Two")
    net.run("plans", "set", two, "--price", "1.00")
    net.run("plans", "set", two, "--price", "6.00")
    net.run("plans", "set", two, "--price", "7.00", "--from", "2026-05-01")
    net.until(lambda: acme.data(f"{PATH}/{two}")["partner_cost"] == "6.00")
    acme.get(f"{PATH}/{two}")
    net.run("plans", "set", "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11", "--enable")
    net.run("plans", "sync", "simulated")
