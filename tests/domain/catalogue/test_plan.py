"""A plan: what it offers, whether it is offered, and from whom it is hidden."""

from uuid import UUID, uuid4

import msgspec
import pytest

from domain.catalogue.plan import Plan, coverage_type_of, key_of, plan_id
from domain.errors import NotPossible
from tests.domain.build import ORGANIZATION, cause
from tests.golden.files import TERMS
from tests.story import Story

OTHER = UUID("5f0c9c3e-2a4b-4f1d-9c3e-0d9c8f3e58f5")
PLAN = plan_id(key_of(None, TERMS.provider_plan_id, TERMS.name))


def published(owner: UUID | None = None, *excluded: UUID, enabled: bool = True) -> Story[Plan]:
    return Story(
        Plan.publish(
            PLAN, cause(), organization_id=owner, terms=TERMS, enabled=enabled, excluded=excluded
        )
    )


def test_only_a_global_plan_excludes() -> None:
    story = published(ORGANIZATION).given()
    story.when(lambda plan: plan.exclude(OTHER, cause())).refused(NotPossible, excluded=set())


@pytest.mark.parametrize(
    ("countries", "coverage_type"),
    [
        (["DE"], "local"),
        (["DE", "FR"], "regional"),
        (["US", "CA", "BM", "GL", "PM"], "regional"),
        (["US", "MX"], "global"),
        (["TR", "GR"], "global"),
    ],
)
def test_the_type_of_coverage_follows_from_the_countries(
    countries: list[str], coverage_type: str
) -> None:
    assert coverage_type_of(countries) == coverage_type


def test_a_plan_is_known_by_its_id_at_the_provider_else_by_its_name() -> None:
    keys = [
        key_of(None, "p", "n"),
        key_of(None, "n", "p"),
        key_of(None, None, "p"),
        key_of(None, None, "n"),
        key_of(ORGANIZATION, "p", "n"),
        key_of(ORGANIZATION, None, "n"),
        key_of(uuid4(), "p", "n"),
    ]
    assert len({plan_id(key) for key in keys}) == len(keys)
    assert key_of(None, "p", "another name") == keys[0]
    named = Plan.publish(
        PLAN,
        cause(),
        organization_id=ORGANIZATION,
        terms=msgspec.structs.replace(TERMS, provider_plan_id=None, name="n"),
    )
    assert named.key == keys[5]


def test_the_id_of_a_plan_never_changes() -> None:
    key = key_of(None, "eu-5gb-30d", "Europe 5 GB")
    assert plan_id(key) == UUID("4f85402c-ad66-555d-aabb-21207e117b04")
