"""A sync: what a network supplies becomes plans, and prices stay what operators have said."""

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from msgspec.structs import replace

from domain.catalogue import syncing
from domain.catalogue.plan import LaterPrice, Plan
from domain.catalogue.supplied import SuppliedCountry, SuppliedPlan
from domain.catalogue.syncing import Markup, Synced, SyncRules
from domain.cause import Cause
from domain.cost import Cost
from domain.errors import NotPossible
from tests.installation import Installation, Process, SetClock
from tests.plan_files import covering, import_plans, plan, topics

FRANCE = SuppliedCountry("FR", (("Orange", ("4G", "5G")), ("Free", ("4G",))))
GERMANY = SuppliedCountry("DE", (("Telekom", ("5G",)),))
SMALL = SuppliedPlan("small", "France 1 GB", 1000, 7, (FRANCE,), Cost(2_000_000, "USD"))
LARGE = SuppliedPlan("large", "Europe 9 GB", 9000, 30, (GERMANY, FRANCE), Cost(7_010_000, "USD"))
MARKUP = Markup(Fraction(3, 10), 500_000)
NO_PRICE = SyncRules("far", "USD")
SIMULATED = SyncRules("simulated", "USD", MARKUP)
PRICED = SyncRules("far", "USD", MARKUP)


def sync(
    process: Process, *supplied: SuppliedPlan, rules: SyncRules = NO_PRICE, dry_run: bool = False
) -> Synced:
    cause = Cause(process.clock(), "sync")
    return process.catalogue.sync(supplied, rules, cause, dry_run=dry_run)


def now(process: Process, synced: Plan) -> Plan:
    return process.log.get(Plan, synced.id)


def outcome(synced: Synced) -> tuple[int, int, int]:
    return len(synced.created), len(synced.updated), synced.unchanged


def test_new_plans_are_disabled_until_they_have_a_price(process: Process) -> None:
    small, large = sync(process, SMALL, LARGE).created
    terms = now(process, small).terms
    assert (terms.unpriced, terms.cost, terms.network) == (True, SMALL.cost, "far")
    assert (terms.name, terms.data_mb, terms.validity_days) == ("France 1 GB", 1000, 7)
    assert [each.name for each in terms.coverage[0].operators] == ["Free", "Orange"]
    assert (terms.coverage_type, now(process, large).terms.coverage_type) == ("local", "regional")
    assert not now(process, small).enabled
    cause = Cause(process.clock(), "x")
    process.catalogue.change(small.id, lambda it: it.price(5, cause, below_cost=True))
    assert now(process, small).enabled


def test_a_plan_with_notices_is_enabled_only_on_purpose(process: Process) -> None:
    noticed = replace(SMALL, notices=("identity_check", "manual_apn"))
    (small,) = sync(process, noticed).created
    assert now(process, small).terms.notices == ["identity_check", "manual_apn"]
    large = replace(LARGE, notices=("manual_apn",))
    both = sync(process, noticed, large, rules=PRICED).changed
    terms = now(process, small).terms
    assert (terms.notices, terms.unpriced) == (["identity_check", "manual_apn"], False)
    assert [now(process, each).enabled for each in both] == [False, False]
    on_purpose = replace(LARGE, provider_plan_id="third", notices=("manual_apn",))
    rules = SyncRules("far", "USD", MARKUP, with_notices=True)
    third, *_ = sync(process, noticed, LARGE, on_purpose, rules=rules).created
    assert now(process, third).enabled
    sync(process, SMALL, LARGE, on_purpose)
    assert now(process, small).terms.notices is None


def test_a_markup_prices_what_has_no_price_and_nothing_else(process: Process) -> None:
    (small,) = sync(process, SMALL).created
    synced = sync(process, SMALL, LARGE, rules=PRICED)
    prices = {
        each.terms.provider_plan_id: (each.terms.retail_price_micros, each.enabled)
        for each in synced.changed
    }
    # 2.00 and 30 % are 2.60; 7.01 and 30 % are 9.113: each up to the next half.
    assert prices == {"small": (3_000_000, True), "large": (9_500_000, True)}
    dearer = replace(SMALL, cost=Cost(2_500_000, "USD"))
    synced = sync(process, dearer, LARGE, rules=PRICED)
    assert outcome(synced) == (0, 1, 1)
    assert [each for each, _ in synced.other_costs] == synced.updated
    assert now(process, small).terms.retail_price_micros == 3_000_000
    assert synced.below_cost == []
    losing = sync(process, replace(SMALL, cost=Cost(3_000_001, "USD")), LARGE, rules=PRICED)
    assert [each.id for each in losing.below_cost] == [small.id]
    assert now(process, small).terms.retail_price_micros == 3_000_000


@pytest.mark.parametrize("cost", [None, Cost(2_000_000, "EUR")])
def test_without_a_cost_in_our_currency_no_rule_makes_a_price(
    process: Process, cost: Cost | None
) -> None:
    (made,) = sync(process, replace(SMALL, cost=cost), rules=PRICED).created
    assert (made.terms.unpriced, made.enabled, made.terms.cost) == (True, False, cost)


def test_a_cost_in_another_currency_is_priced_by_the_rate_that_is_given(process: Process) -> None:
    rates = {"EUR": Fraction("1.08")}
    rules = SyncRules("far", "USD", Markup(MARKUP.share, MARKUP.step_micros, rates))
    abroad = replace(SMALL, cost=Cost(2_000_000, "EUR"))
    made = sync(process, abroad, LARGE, rules=rules).created
    # 2.00 EUR are 2.16 USD, and with 30 % 2.808.
    assert [each.terms.retail_price_micros for each in made] == [3_000_000, 9_500_000]


def test_prices_to_come_stay(process: Process) -> None:
    import_plans(process, plan("Ours", provider_plan_id="small"))
    ((found,),) = process.catalogue.known().values()
    cause = Cause(process.clock(), "x")
    later = LaterPrice(cause.at + timedelta(days=1), 9_000_000)
    micros, starts_at = later.retail_price_micros, later.starts_at
    process.catalogue.change(found, lambda it: it.price(micros, cause, starts_at=starts_at))
    (updated,) = sync(process, SMALL, rules=SIMULATED).updated
    assert updated.terms.later_prices == [later]


def test_what_is_listed_twice_comes_once_and_a_country_that_nobody_knows_is_left_out(
    process: Process,
) -> None:
    abroad = replace(SMALL, coverage=(SuppliedCountry("ZZ"), FRANCE))
    synced = sync(process, abroad, replace(SMALL, name="Again"))
    (made,) = synced.created
    assert made.terms.name == "France 1 GB"
    assert [each.country_code for each in made.terms.coverage] == ["FR"]
    assert [each.reason for each in synced.skipped] == [syncing.TWICE]


def test_a_dry_run_says_the_same_and_does_nothing(process: Process) -> None:
    head = process.log.head()
    told = sync(process, SMALL, LARGE, rules=PRICED, dry_run=True)
    assert process.log.head() == head
    done = sync(process, SMALL, LARGE, rules=PRICED)
    assert [each.terms for each in told.created] == [each.terms for each in done.created]


def test_the_same_catalogue_again_changes_nothing_in_whatever_order_it_comes(
    process: Process,
) -> None:
    sync(process, SMALL, LARGE, rules=PRICED)
    head = process.log.head()
    turned = replace(LARGE, coverage=(replace(FRANCE, operators=FRANCE.operators[::-1]), GERMANY))
    assert outcome(sync(process, turned, SMALL, rules=PRICED)) == (0, 0, 2)
    assert process.log.head() == head


def test_of_our_own_plans_only_what_is_the_networks_changes(process: Process) -> None:
    owner = str(process.organization(""))
    ours: dict[str, Any] = {"provider_plan_id": "small", "network": "simulated"}
    import_plans(process, plan("Ours", coverage_type="global", **ours))
    import_plans(process, plan("Own", organization_id=owner, coverage=covering("DE"), **ours))
    import_plans(process, plan("Elsewhere", coverage=covering("DE")))
    head = process.log.head()
    synced = sync(process, SMALL, rules=SIMULATED)
    assert topics(process, head) == ["plan.changed"] * 2
    assert outcome(synced) == (0, 2, 0)
    terms = {each.terms.name: each.terms for each in synced.updated}
    assert terms.keys() == {"Ours", "Own"}
    for each in terms.values():
        assert (each.retail_price_micros, each.cost) == (4_500_000, SMALL.cost)
        assert [e.country_code for e in each.coverage] == ["FR"]
        assert each.sponsor_profiles
    assert (terms["Ours"].coverage_type, terms["Own"].coverage_type) == ("global", "local")
    assert [each.terms.name for each in synced.withdrawn] == ["Elsewhere"]


def test_plans_of_other_networks_are_not_even_read(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_plans(process, *(plan(f"Other {number}") for number in range(5)))
    (small,) = sync(process, SMALL).created
    read, get = list[object](), process.log.get

    def noted(kind: Any, stream_id: Any, *rest: Any) -> Any:
        read.append(stream_id)
        return get(kind, stream_id, *rest)

    monkeypatch.setattr(process.log, "get", noted)
    assert outcome(sync(process, SMALL)) == (0, 0, 1)
    assert read == [small.id]


def test_what_is_on_sale_below_its_cost_is_told_each_time_and_by_the_price_of_now(
    installation: Installation,
) -> None:
    process = installation.process(clock := SetClock())
    (small,) = sync(process, SMALL, rules=PRICED).created
    cause, later = Cause(clock.now, "x"), clock.now + timedelta(days=1)
    process.catalogue.change(
        small.id, lambda it: it.price(1, cause, starts_at=later, below_cost=True)
    )
    assert sync(process, SMALL).below_cost == []
    clock.now = later
    for _ in range(2):
        assert [each.id for each in sync(process, SMALL).below_cost] == [small.id]
    off = Cause(clock.now, "x")
    process.catalogue.change(small.id, lambda it: it.switch(off, enabled=False))
    assert sync(process, SMALL).below_cost == []


def test_what_the_network_no_longer_has_is_told_and_stays(process: Process) -> None:
    small, _ = sync(process, SMALL, LARGE, rules=PRICED).created
    synced = sync(process, LARGE, rules=PRICED)
    assert [each.id for each in synced.withdrawn] == [small.id]
    assert now(process, small).enabled
    cause = Cause(process.clock(), "x")
    process.catalogue.change(small.id, lambda it: it.switch(cause, enabled=False))
    assert sync(process, LARGE, rules=PRICED).withdrawn == []
    head = process.log.head()
    with pytest.raises(NotPossible, match="lists no plans"):
        sync(process)
    assert process.log.head() == head


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"data_mb": None}, syncing.UNLIMITED),
        ({"data_mb": 0}, "data_mb must be a whole number"),
        ({"validity_days": 9_999}, "validity_days must be a whole number"),
        ({"name": " x"}, "name must be text"),
        ({"provider_plan_id": ""}, "provider_plan_id must be text"),
        ({"coverage": ()}, syncing.NO_COUNTRY),
        ({"coverage": (SuppliedCountry("ZZ"),)}, syncing.NO_COUNTRY),
        ({"cost": Cost(10**18, "USD")}, syncing.TOO_DEAR),
    ],
)
def test_what_cannot_be_sold_here_is_skipped_with_a_reason(
    process: Process, changes: dict[str, Any], why: str
) -> None:
    synced = sync(process, LARGE, replace(SMALL, **changes), rules=PRICED)
    assert [each.terms.name for each in synced.created] == ["Europe 9 GB"]
    (skipped,) = synced.skipped
    assert why in skipped.reason
    assert skipped.name == replace(SMALL, **changes).name


def test_a_plan_that_was_given_another_id_of_the_network_is_not_made_again(
    process: Process,
) -> None:
    (made,) = sync(process, SMALL, rules=SIMULATED).created
    import_plans(process, plan("Renamed", id=str(made.id), provider_plan_id="other"))
    synced = sync(process, SMALL, rules=SIMULATED)
    assert outcome(synced) == (0, 0, 0)
    assert [each.reason for each in synced.skipped] == [syncing.RENAMED]
