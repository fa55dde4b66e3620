"""Who sees a plan: every combination of what the contract makes it depend on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Literal
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from domain.catalogue.plan import Plan, PlanTerms, SponsorProfile
from projections.models.plans import PlanFilter
from tests.golden.files import TERMS
from tests.installation import Process

Owner = Literal["nobody", "caller", "other"]
Copy = Literal["none", "enabled", "disabled"]
OWNERS: tuple[Owner, ...] = ("nobody", "caller", "other")
COPIES: tuple[Copy, ...] = ("none", "enabled", "disabled")


@dataclass(frozen=True)
class Case:
    """A plan, and the other plan with the same id at the provider that there may be."""

    owner: Owner
    enabled: bool
    excluded: frozenset[str]
    own_copy: Copy
    foreign_copy: Copy
    connected: bool

    @property
    def is_seen(self) -> bool:
        """Say, row by row, what the contract says in one sentence."""
        if not self.enabled:
            return False
        match self.owner:
            case "caller":
                return True
            case "other":
                return False
            case "nobody":
                hidden = "caller" in self.excluded
                return not hidden and not (self.connected and self.own_copy != "none")


@cache
def cases() -> list[Case]:
    exclusions = [frozenset(names) for names in ([], ["caller"], ["other"], ["caller", "other"])]
    table = product(OWNERS, [True, False], exclusions, COPIES, COPIES, [True, False])
    return [
        case
        for case in (Case(*row) for row in table)
        if case.owner == "nobody" or not case.excluded  # Only a global plan excludes.
    ]


def terms(name: str, provider_plan_id: str | None) -> PlanTerms:
    profiles = [SponsorProfile("sp-1", "One", "red")]
    sold = {"provider_plan_id": provider_plan_id, "sponsor_profiles": profiles}
    return replace(TERMS, name=name, **sold)


class World:
    """All cases in one catalogue; each has provider ids of its own."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.organizations = {name: uuid4() for name in ("caller", "other")}
        self.plans: dict[Case, UUID] = {}
        self.copies: set[UUID] = set()
        self._made: list[Plan] = []
        for number, case in enumerate(cases()):
            self.plans[case] = self._lay_out(number, case)
        process.log.append(*self._made)
        process.projector.catch_up()

    def _lay_out(self, number: int, case: Case) -> UUID:
        provider_plan_id = f"p-{number}" if case.connected else None
        for owner, copy in (("caller", case.own_copy), ("other", case.foreign_copy)):
            if copy != "none":
                made = self._publish(f"copy {number}", provider_plan_id, owner, copy == "enabled")
                self.copies.add(made)
        excluded = [self.organizations[name] for name in case.excluded]
        name = f"plan {number}"
        return self._publish(name, provider_plan_id, case.owner, case.enabled, excluded)

    def _publish(
        self,
        name: str,
        provider_plan_id: str | None,
        owner: str,
        enabled: bool,  # noqa: FBT001  # It is one column of the table.
        excluded: list[UUID] | None = None,
    ) -> UUID:
        plan = Plan.publish(
            uuid4(),
            self.process.cause(),
            organization_id=self.organizations.get(owner),
            terms=terms(name, provider_plan_id),
            enabled=enabled,
            excluded=excluded or [],
        )
        self._made.append(plan)
        return plan.id

    def seen(self, look: Callable[[], set[UUID]]) -> dict[Case, bool]:
        """Return which cases are seen, copies left aside."""
        found = look()
        assert found <= self.copies | set(self.plans.values())
        return {case: plan_id in found for case, plan_id in self.plans.items()}


@pytest.fixture
def world(process: Process) -> World:
    return World(process)


def test_the_table_has_every_combination_once() -> None:
    assert len(cases()) == len(set(cases())) == (4 + 1 + 1) * 2 * 3 * 3 * 2
    assert 0 < sum(case.is_seen for case in cases()) < len(cases())


def listed(world: World) -> set[UUID]:
    plans, caller = world.process.plans, world.organizations["caller"]
    rows, total = world.process.read(
        plans.page, caller, PlanFilter(world.process.clock()), slice(0, 10_000)
    )
    assert total == len(rows)
    return {row.id for row in rows}


def read_one_by_one(world: World) -> set[UUID]:
    plans, caller = world.process.plans, world.organizations["caller"]
    views = world.process.views
    return {
        each for each in world.plans.values() if plans.load_visible(views, caller, each) is not None
    }


def for_any_link(world: World) -> set[UUID]:
    plans, caller = world.process.plans, world.organizations["caller"]
    wanted = PlanFilter(world.process.clock())
    return {row.id for row in world.process.read(plans.compatible, caller, wanted, None)}


@pytest.mark.each_database
def test_every_read_shows_what_the_contract_says(world: World) -> None:
    for look in (listed, read_one_by_one, for_any_link):
        seen = world.seen(lambda look=look: look(world))  # type: ignore[misc]  # Bound at once.
        assert seen == {case: case.is_seen for case in cases()}, look


@pytest.mark.each_database
def test_a_top_up_for_a_known_profile_needs_a_provider_id_besides(world: World) -> None:
    plans, caller = world.process.plans, world.organizations["caller"]
    with world.process.views.reading() as connection:
        every = PlanFilter(world.process.clock())
        rows = plans.compatible(connection, caller, every, "sp-1")
        assert plans.compatible(connection, caller, every, "One") == [], "a link knows the id"
        assert plans.compatible(connection, caller, every, "sp-2") == []
    seen = world.seen(lambda: {row.id for row in rows})
    assert seen == {case: case.is_seen and case.connected for case in cases()}
