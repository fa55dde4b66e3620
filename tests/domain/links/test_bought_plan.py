"""Add-ons of the network are told to be activations of a link: by their id, else by their plan."""

from datetime import timedelta
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from domain.links.bought_plan import Activation, BoughtPlan, match_addons
from domain.links.network import AddonUsage
from tests.domain.build import START


def bought(provider_plan_id: str = "eu-5gb-30d") -> BoughtPlan:
    return BoughtPlan(uuid4(), provider_plan_id, "Europe 5 GB", 4_000_000, 5_000, 30, ["AT"])


def activation(
    addon_id: str | None = None,
    plan: str = "eu-5gb-30d",
    minute: int = 0,
    *,
    removed: bool = False,
) -> Activation:
    at = START + timedelta(minutes=minute)
    return Activation(uuid4(), bought(plan), at, addon_id, at if removed else None)


def addon(addon_id: str, plan: str = "eu-5gb-30d") -> AddonUsage:
    return AddonUsage(addon_id, plan, 0.0, 5_000.0)


def test_an_addon_with_a_known_id_is_that_activation_whatever_else_is_there() -> None:
    first, second = activation("a-1"), activation("a-2")
    addons = [addon("a-2"), addon("a-1")]
    assert match_addons([first, second], addons) == (
        {first.id: addons[1], second.id: addons[0]},
        [],
    )


def test_an_activation_without_a_known_addon_gets_one_of_its_plan() -> None:
    unknown = activation(None, "us-1gb-7d")
    addons = [addon("a-1"), addon("a-2", "us-1gb-7d")]
    assert match_addons([unknown], addons) == ({unknown.id: addons[1]}, [addons[0]])


def test_a_known_addon_is_never_given_to_an_older_activation_of_the_same_plan() -> None:
    unknown, known = activation(None, minute=0), activation("a-1", minute=1)
    addons = [addon("a-1"), addon("a-2")]
    matched, new = match_addons([unknown, known], addons)
    assert matched == {known.id: addons[0], unknown.id: addons[1]}
    assert new == []


def test_of_several_unknown_ones_the_oldest_purchase_comes_first() -> None:
    late, early = activation(None, minute=2), activation(None, minute=1)
    addons = [addon("a-1"), addon("a-2"), addon("a-3")]
    matched, new = match_addons([late, early], addons)
    assert matched == {early.id: addons[0], late.id: addons[1]}
    assert new == [addons[2]]


def test_a_removed_activation_still_accounts_for_its_own_addon_and_for_no_other() -> None:
    removed, unknown = activation("a-1", removed=True), activation(None, removed=True)
    addons = [addon("a-1"), addon("a-2")]
    matched, new = match_addons([removed, unknown], addons)
    assert matched == {removed.id: addons[0]}
    assert new == [addons[1]]


PLANS = st.sampled_from(["p", "q"])
ADDON_IDS = st.sampled_from([f"a-{index}" for index in range(6)])


@given(
    st.lists(st.tuples(st.none() | ADDON_IDS, PLANS, st.integers(0, 3), st.booleans())),
    st.lists(st.tuples(ADDON_IDS, PLANS), unique_by=lambda each: each[0]),
)
def test_every_addon_is_one_activation_or_nobodys(
    held: list[tuple[str | None, str, int, bool]], listed: list[tuple[str, str]]
) -> None:
    activations = [
        activation(addon_id, plan, minute, removed=removed)
        for addon_id, plan, minute, removed in held
    ]
    addons = [addon(addon_id, plan) for addon_id, plan in listed]
    matched, new = match_addons(activations, addons)
    found = [*matched.values(), *new]
    assert sorted(each.addon_id for each in found) == sorted(addon_id for addon_id, _ in listed)
    by_id: dict[UUID, Activation] = {each.id: each for each in activations}
    for activation_id, usage in matched.items():
        known = by_id[activation_id].addon_id
        plan = by_id[activation_id].plan.provider_plan_id
        assert (known or usage.addon_id) == usage.addon_id
        assert known or plan == usage.provider_plan_id
