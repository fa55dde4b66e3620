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
