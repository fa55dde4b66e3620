"""Buying a link: what is refused, what it costs, what comes back."""

from typing import Any

import pytest

from tests.app.http.buying import (
    BASIC,
    DISABLED,
    FREE,
    LINKS,
    MISSING,
    PROFILE,
    UNSOLD,
    Buyer,
    buyer,
)
from tests.app.http.service import Service, code_of, fields_of
from tests.plan_files import covering, import_plans, plan

pytestmark = pytest.mark.any_database

PAID = {"amount_charged": "4.50", "currency": "USD"}
NETWORK = {
    "network": "simulated",
    "capabilities": ["suspend", "location", "remove_plan", "cancel"],
}


@pytest.fixture(scope="module")
def acme(service: Service) -> Buyer:
    return buyer(service)


def test_a_new_link_has_the_fields_of_the_contract(acme: Buyer) -> None:
    reply = acme.create(name="Van 12")
    assert reply.status_code == 201
    link = reply.json["data"]
    assert reply.headers["Location"] == f"https://api.example{LINKS}/{link['id']}"
    assert "stale" not in reply.json["meta"]
    (activation,) = link.pop("activations")
    assert link["iccid"].isdigit()
    assert link["lpa_profile"].startswith("LPA:1$")
    carddata = link["lpa_profile"].replace(":", "%3A").replace("$", "%24")
    apple = f"https://esimsetup.apple.com/esim_qrcode_provisioning?carddata={carddata}"
    operators = covering("FR", operators=2)[0]["operators"]
    assert link == {
        "id": link["id"],
        "name": "Van 12",
        "iccid": link["iccid"],
        "msisdn": link["msisdn"],
        "status": "active",
        "created_at": link["created_at"],
        "sponsor_profile": PROFILE,
        "lpa_profile": link["lpa_profile"],
        "confirmation_code": link["confirmation_code"],
        "apple_activation_url": apple,
        "android_activation_url": apple.replace(".apple.", ".android."),
        "activation_url": apple,
        "data_used_mb": 0.0,
        "data_remaining_mb": 1000.0,
        "data_total_mb": 1000.0,
        "expires_at": None,
        "installed_at": None,
        "first_used_at": None,
        "usage_as_of": link["usage_as_of"],
        "coverage_data": [
            {"country_code": "FR", "country_name": "France", "operators": operators},
            {"country_code": "MC", "country_name": "Monaco", "operators": operators},
        ],
        **PAID,
        **NETWORK,
    }
    assert activation == first_activation(acme, link) | {"id": activation["id"]}


def first_activation(acme: Buyer, link: dict[str, Any]) -> dict[str, Any]:
    return {
        "plan_id": acme.plans[BASIC],
        "plan_name": BASIC,
        "status": "active",
        "activation_date": link["created_at"],
        "expiry_date": None,
        "data_used_mb": 0.0,
        "data_remaining_mb": 1000.0,
        "coverage_countries": ["MC", "FR"],
    }


def test_the_reply_does_not_wait_for_the_usage_of_what_is_new(
    service: Service, acme: Buyer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(service.container.network, "usage", fail)
    assert acme.create().status_code == 201


def test_it_is_paid_by_one_transaction(service: Service) -> None:
    shop = buyer(service, "10.00")
    link = shop.link()
    assert shop.balance() == "5.50"
    charge = shop.transactions()[0]
    assert (charge["kind"], charge["amount"], charge["plan_name"]) == ("activation", "4.50", BASIC)
    assert charge["reference"] == {"type": "link", "id": link["id"]}


def test_a_plan_that_costs_nothing_needs_no_wallet(service: Service) -> None:
    shop = buyer(service, None)
    assert shop.link(FREE)["amount_charged"] == "0.00"
    reply = shop.create(BASIC)
    assert (reply.status_code, code_of(reply)) == (403, "BILLING_NOT_CONFIGURED")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (None, None),
        ("", None),
        (" ", " "),
        ("Lkw 7 🚚 \u200d東京", "Lkw 7 🚚 \u200d東京"),
        ("n" * 255,) * 2,
    ],
)
def test_a_name_is_kept_as_it_is_given(acme: Buyer, name: str | None, kept: str | None) -> None:
    assert acme.link(FREE, name=name)["name"] == kept


def test_any_other_name_is_refused(acme: Buyer) -> None:
    for name in ("n" * 256, "a\nb", "\0", "\x7f", "\ud800", 5, ["n"], {}):
        assert list(fields_of(acme.create(FREE, name=name))) == ["name"], name


NO_PLANS: list[dict[str, Any]] = [
    {},
    {"plan_id": None},
    {"plan_id": ""},
    {"plan_id": "basic"},
    {"plan_id": 7},
    {"plan_id": MISSING.replace("-", "")},
    {"plan_id": "{" + MISSING + "}"},
    {"plan_id": [MISSING]},
    {"plan_id": MISSING},
]


def test_a_plan_that_is_none_is_refused(acme: Buyer) -> None:
    for body in NO_PLANS:
        assert list(fields_of(acme.post(LINKS, json=body))) == ["plan_id"], body


@pytest.mark.parametrize("called", [DISABLED, UNSOLD])
def test_a_plan_that_is_not_sold_is_refused(acme: Buyer, called: str) -> None:
    assert list(fields_of(acme.create(called))) == ["plan_id"]


def test_the_plan_of_another_organization_is_refused(service: Service, acme: Buyer) -> None:
    rival = buyer(service)
    reply = rival.post(LINKS, json={"plan_id": acme.plans[BASIC]})
    assert fields_of(reply) == fields_of(rival.post(LINKS, json={"plan_id": MISSING}))


@pytest.mark.parametrize("body", ["[]", '"x"', "5", "null", "true"])
def test_a_body_that_is_no_object_is_refused(acme: Buyer, body: str) -> None:
    reply = acme.post(LINKS, data=body, headers={"Content-Type": "application/json"})
    assert set(fields_of(reply)) == {"plan_id", "name"}


def test_unknown_fields_are_refused_all_together(acme: Buyer) -> None:
    reply = acme.post(LINKS, json={"plan": BASIC, "name": 1})
    assert set(fields_of(reply)) == {"plan", "plan_id", "name"}


def test_coverage_has_the_networks_of_today_and_the_countries_as_bought(service: Service) -> None:
    shop = buyer(service)
    link = shop.link()
    changed = plan(
        BASIC,
        id=shop.plans[BASIC],
        organization_id=str(shop.id),
        coverage=covering("FR", "JP", operators=1),
    )
    import_plans(service.container, changed)
    service.until(lambda: len(coverage_of(shop, link)["FR"]) == 1)
    assert coverage_of(shop, link) == {"FR": ["Operator 0"], "MC": []}


def coverage_of(shop: Buyer, link: dict[str, Any]) -> dict[str, list[str]]:
    return {
        each["country_code"]: [operator["name"] for operator in each["operators"]]
        for each in shop.read(link).json["data"]["coverage_data"]
    }
