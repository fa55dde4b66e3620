"""A plan: what it offers, whether it is offered, and from whom it is hidden."""

from functools import partial
from uuid import UUID, uuid4

import msgspec
import pytest

from domain.catalogue.plan import Plan, coverage_type_of, key_of, plan_id
from domain.errors import NotPossible
from tests.domain.build import ORGANIZATION, cause
from tests.golden.examples import TERMS
from tests.story import Story, fact

OTHER = UUID("5f0c9c3e-2a4b-4f1d-9c3e-0d9c8f3e58f5")
PLAN = plan_id(key_of(None, TERMS.provider_plan_id, TERMS.name))


def published(owner: UUID | None = None, *excluded: UUID, enabled: bool = True) -> Story[Plan]:
    return Story(
        Plan.publish(
            PLAN,
            cause(),
            organization_id=owner,
            terms=TERMS,
            enabled=enabled,
            excluded=excluded,
        )
    )


def test_a_published_plan_is_what_it_was_published_as() -> None:
    published(None, OTHER, ORGANIZATION, OTHER).then(
        fact(
            Plan.Published,
            organization_id=None,
            terms=TERMS,
            enabled=True,
            excluded_organizations=sorted([OTHER, ORGANIZATION], key=str),
        ),
        id=PLAN,
        terms=TERMS,
        enabled=True,
        excluded={OTHER, ORGANIZATION},
    )
    published(ORGANIZATION, enabled=False).then(
        fact(Plan.Published), organization_id=ORGANIZATION, enabled=False, excluded=set()
    )


def test_other_terms_are_a_change_and_the_same_are_none() -> None:
    dearer = msgspec.structs.replace(TERMS, retail_price_micros=5_000_000)
    story = published().given()
    story.when(lambda plan: plan.change(TERMS, cause(1))).then(terms=TERMS)
    story.when(lambda plan: plan.change(dearer, cause(2)))
    story.then(fact(Plan.Changed, terms=dearer), terms=dearer, enabled=True)


def test_a_plan_is_switched_off_and_on() -> None:
    story = published().given()
    for enabled, facts in [
        (True, []),
        (False, [fact(Plan.Disabled)]),
        (False, []),
        (True, [fact(Plan.Enabled)]),
    ]:
        story.when(partial(Plan.switch, cause=cause(), enabled=enabled))
        story.then(*facts, enabled=enabled)


def test_an_organization_is_excluded_and_included_once() -> None:
    story = published().given()
    for facts in ([fact(Plan.OrganizationExcluded, organization_id=OTHER)], []):
        story.when(lambda plan: plan.exclude(OTHER, cause())).then(*facts, excluded={OTHER})
    for facts in ([fact(Plan.OrganizationIncluded, organization_id=OTHER)], []):
        story.when(lambda plan: plan.include(OTHER, cause())).then(*facts, excluded=set())


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
