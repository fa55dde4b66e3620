"""What is computed when a link is shown: sums, addresses, the union of coverage."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from app.http.links.replies import show_link, show_status
from domain.catalogue.plan import CountryCoverage, MobileOperator, PlanTerms
from domain.links import network
from domain.links.bought_plan import BoughtPlan
from domain.links.buying import buy
from domain.links.link import Link
from domain.links.readings import LinkReading, PlanUsage, plans_of
from projections.engine.shape import format_time
from tests.domain.build import START, cause
from tests.domain.build_links import ACTIVE, CHANGE, bought, new_link, plan_added

WIDE, NARROW = bought(name="Wide"), msgspec.structs.replace(bought(name="Narrow"), countries=["AT"])

OFFERED = ((), timedelta(0))


def terms(**countries: list[MobileOperator]) -> PlanTerms:
    return PlanTerms(
        name="Any",
        provider_plan_id="any",
        retail_price_micros=0,
        currency="USD",
        data_mb=1,
        validity_days=1,
        coverage_type="regional",
        sponsor_profiles=[],
        coverage=[CountryCoverage(code, networks) for code, networks in countries.items()],
    )


def reading(*plans: BoughtPlan, code: network.ActivationCode | None = None) -> LinkReading:
    """Return a link with these plans, none of which has been used."""
    link = new_link(plans[0])
    for step in ACTIVE:
        step(link)
    link.record(Link.ChangeOpened, cause(), change_id=CHANGE)
    for each in plans[1:]:
        plan_added(uuid4(), each)(link)
    plans_shown = plans_of(link, None, START)
    return LinkReading(link, None, plans_shown, None, code, stale=False, is_live=False)


def coverage(asked: LinkReading, *known: tuple[BoughtPlan, PlanTerms]) -> dict[str, Any]:
    shown = show_link(asked, {plan.plan_id: offered for plan, offered in known}, OFFERED)
    return {
        each.country_code: {every.name: every.network_types for every in each.operators}
        for each in shown.coverage_data
    }


def test_sums_notices_and_the_activation_code_to_its_last_character() -> None:
    noticed = buy(uuid4(), msgspec.structs.replace(terms(), notices=["identity_check"]))
    assert show_link(reading(noticed), {}, OFFERED).notices == ["identity_check"]
    shown = show_link(ends((0.1, None, False), (0.2, None, False)), {}, OFFERED)
    assert (shown.data_used_mb, shown.data_remaining_mb) == (0.3, 9_999.7), "to a kilobyte"
    assert [each.data_used_mb for each in shown.activations] == [0.1, 0.2]
    never = show_link(reading(WIDE), {}, (("cancel",), timedelta(0)))
    assert (never.capabilities, never.cancellable_until) == ([], None)
    code = network.ActivationCode("LPA:1$a.example/b$C+D E&é", "4711")
    shown = show_link(reading(WIDE, code=code), {}, OFFERED)
    assert (shown.lpa_profile, shown.confirmation_code) == (code.lpa, "4711")
    encoded = "LPA%3A1%24a.example%2Fb%24C%2BD%20E%26%C3%A9"
    for maker in ("apple", "android"):
        start = f"https://esimsetup.{maker}.com/esim_qrcode_provisioning?carddata="
        assert getattr(shown, f"{maker}_activation_url") == start + encoded


def test_coverage_is_the_union_of_the_plans_by_country_where_they_were_bought() -> None:
    a1, magenta = MobileOperator("A1", ["4G"]), MobileOperator("Magenta", ["3G", "4G"])
    wide = terms(DE=[MobileOperator("O2", ["4G"])], AT=[a1, magenta])
    narrow = terms(AT=[MobileOperator("Drei", ["5G"]), MobileOperator("A1", ["5G", "4G"])])
    union = coverage(reading(WIDE, NARROW), (WIDE, wide), (NARROW, narrow))
    assert union == {
        "AT": {"A1": ["4G", "5G"], "Magenta": ["3G", "4G"], "Drei": ["5G"]},
        "DE": {"O2": ["4G"]},
    }
    assert list(union) == ["AT", "DE"]
    # Countries are those that were bought.
    today = terms(AT=[MobileOperator("A1", ["4G"])], FR=[MobileOperator("SFR", ["4G"])])
    assert coverage(reading(WIDE), (WIDE, today)) == {"AT": {"A1": ["4G"]}, "DE": {}}
    assert coverage(reading(WIDE)) == {"AT": {}, "DE": {}}


def ends(*stages: tuple[float, int | None, bool]) -> LinkReading:
    """Return a link with a plan for each: MB used, the day of its end, whether that is past."""
    asked = reading(*[bought(name=str(number)) for number, _ in enumerate(stages)])
    plans = [
        PlanUsage(
            each.activation,
            used_mb,
            0.0 if is_expired else each.remaining_mb - used_mb,
            START + timedelta(days=day) if day is not None else None,
            is_expired=is_expired,
        )
        for each, (used_mb, day, is_expired) in zip(asked.plans, stages, strict=True)
    ]
    return LinkReading(asked.link, None, plans, None, None, stale=False, is_live=False)


@pytest.mark.parametrize(
    ("stages", "day"),
    [
        ([(1.0, 3, False), (1.0, 2, False)], 3),
        ([(5_000.0, 9, False), (1.0, 2, False)], 2),  # The first has nothing left.
        ([(1.0, -1, True), (0.0, None, False)], None),
        ([(5_000.0, 9, False)], None),
    ],
)
def test_a_link_ends_with_the_last_plan_that_is_in_use(
    stages: list[tuple[float, int | None, bool]], day: int | None
) -> None:
    shown = show_link(ends(*stages), {}, OFFERED)
    end = None if day is None else format_time(START + timedelta(days=day))
    assert shown.expires_at == end
    assert shown.data_total_mb == 5_000.0 * len(stages)


def test_the_network_that_serves_a_link_is_shown_as_it_was_told() -> None:
    serving = network.ServingNetwork("FR", "Orange", "208", "01", "5G")
    told = network.NetworkStatus(
        "active", connected=True, network=serving, last_seen_at=START, as_of=START
    )
    asked = reading(WIDE)
    shown = msgspec.to_builtins(show_status(asked.link, told, cached=True))
    assert shown["network"] == msgspec.to_builtins(serving)
    assert (shown["last_seen_at"], shown["cached"]) == (format_time(START), True)
