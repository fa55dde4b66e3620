"""What partners see of an installation with other settings, and of one that is held."""

import pytest

from tests.net.house import shared_house
from tests.net.net import Net, Partner
from tests.net.test_plans import own_plans
from tests.plan_files import plan as offered

MISSING = "8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11"


other = shared_house(
    "other",
    NUMBER_LOOKUP_ENABLED="false",
    NETWORK_BASE_PLAN="",
    LINK_CANCEL_DAYS="0",
    CURRENCY="EUR",
    PATH_PREFIX="/bappy",
    TOKEN_PATHS="/oauth/token",
    AUTH_URL="https://auth.example",
    NUMBERS_URL="https://numbers.example/lookups",
    BASE_URL="https://links.example",
    RATE_LIMIT_PER_MINUTE="100000",
    BULK_NUMBERS_MAX="3",
    ISSUER="Example Ltd, 1 Example Street",
    TOKEN_TTL_S="600",
    PRICE_PER_LOOKUP="0",
)


@pytest.fixture
def net(net: Net) -> Net:
    """A scenario whose replies do not show how far a minute has gone."""
    net.masks.fleeting[r"(ratelimit: .*;r=)\d+"] = r"\1<left>"
    return net


def test_lookups_are_off_for_all(net: Net, acme: Partner) -> None:
    net.stranger().get("/number-lookup/health")
    acme.post("/number-lookup", {"phone_number": "+14155552671"})
    acme.post("/number-lookup/bulk", {"phone_numbers": ["+14155552671"]})
    acme.get("/number-lookup/bulk")
    acme.get("/v1/account")


def test_no_base_plan_is_configured(net: Net, acme: Partner) -> None:
    plan = acme.plan("Germany 3 GB")
    acme.get(f"/v1/plans/{plan}")
    acme.post("/v1/links", {"plan_id": plan})
    acme.post("/v1/links?dry_run=true", {"plan_id": plan})
    acme.get("/v1/wallet")
    net.partner("", name="Walletless").post("/v1/links", {"plan_id": plan})
    own_plans(acme, offered("Unsold", provider_plan_id=None, currency="EUR"))
    acme.post("/v1/links", {"plan_id": acme.plan("Unsold")})
    net.run("org", "set", acme.id, "--spending-limit", "1.00")
    acme.post("/v1/links", {"plan_id": plan})


def test_paths_and_urls(net: Net) -> None:
    acme, nobody = net.partner(), net.stranger()
    for path in (
        "/livez",
        "/bappy/livez",
        "/bappy/v1/wallet",
        "/.well-known/oauth-authorization-server",
    ):
        nobody.get(path)
    acme.get("/bappy/v1/wallet")
    form = f"grant_type=client_credentials&client_id={acme.client_id}&client_secret={acme.secret}"
    for path in ("/auth/token", "/oauth/token", "/bappy/auth/token", "/elsewhere/token"):
        nobody.post(path, body=form, Content_Type="application/x-www-form-urlencoded")
    acme.post("/v1/webhooks", {"url": "https://hooks.example/"})
    net.until(lambda: acme.data("/v1/statements"))
    acme.get("/v1/statements/2026-03", Accept="text/html")


def test_a_held_copy(net: Net, acme: Partner) -> None:
    net.run("installation", "hold")
    net.until(lambda: net.stranger().ask("GET", "/readyz").json.get("held"))
    net.stranger().get("/readyz")
    acme.get("/v1/wallet")
    for method, path, body in (
        ("POST", "/number-lookup", {"phone_number": "+14155552671"}),
        ("POST", "/v1/links", {"plan_id": MISSING}),
        ("POST", "/v1/webhooks", {"url": "https://hooks.example/"}),
        ("PATCH", "/v1/account", {"low_balance_threshold": None}),
        ("DELETE", f"/v1/links/{MISSING}", None),
        ("POST", "/networks/esimgo/notifications", {}),
    ):
        acme.call(method, path, body)
    net.run("wallet", "deposit", acme.id, "1", "--reference", "bank-2")
    net.run("installation", "hold", "--end")
    net.until(
        lambda: acme.ask("PATCH", "/v1/account", {"low_balance_threshold": None}).status == 200
    )
    acme.call("PATCH", "/v1/account", {"low_balance_threshold": "1"})
