"""The price of a plan: what it is at a moment, by whose word, and from when on."""

from datetime import timedelta

from msgspec.structs import replace

from domain.catalogue.plan import LATER_PRICES_MAX, LaterPrice, Plan, PlanTerms, key_of, plan_id
from domain.cost import Cost
from domain.errors import NotPossible
from tests.domain.build import START, cause
from tests.golden.files import TERMS
from tests.story import Story, fact

SOON, LATER = START + timedelta(minutes=10), START + timedelta(minutes=20)
PLAN = plan_id(key_of(None, TERMS.provider_plan_id, TERMS.name))
MOMENT = timedelta(microseconds=1)
PRICE = TERMS.retail_price_micros
UNPRICED = replace(TERMS, retail_price_micros=0, unpriced=True)


def published(terms: PlanTerms = TERMS, *, enabled: bool = True) -> Story[Plan]:
    plan = Plan.publish(PLAN, cause(), organization_id=None, terms=terms, enabled=enabled)
    return Story(plan).given()


def prices_at(story: Story[Plan], *minutes: int) -> list[int]:
    terms = story.aggregate.terms
    return [terms.at(START + timedelta(minutes=each)).retail_price_micros for each in minutes]


def test_a_price_holds_from_its_moment_on_and_not_before() -> None:
    story = published().given(
        lambda plan: plan.price(7, cause(1), starts_at=LATER),
        lambda plan: plan.price(5, cause(2), starts_at=SOON),
    )
    terms = story.aggregate.terms
    assert prices_at(story, 0, 9, 10, 19, 20, 99) == [PRICE, PRICE, 5, 5, 7, 7]
    assert terms.at(SOON - MOMENT) == terms
    assert terms.at(SOON).later_prices == [LaterPrice(LATER, 7)]
    assert terms.at(LATER).later_prices is None


def test_the_same_word_twice_is_one_and_another_one_replaces_it() -> None:
    story = published().given(lambda plan: plan.price(5, cause(1), starts_at=SOON))
    story.when(lambda plan: plan.price(5, cause(2), starts_at=SOON)).then()
    story.when(lambda plan: plan.price(5, cause(11), starts_at=SOON)).then()
    story.when(lambda plan: plan.price(6, cause(3), starts_at=SOON)).then(fact(Plan.Changed))
    assert prices_at(story, 10) == [6]


def test_a_price_from_now_on_drops_those_that_were_to_come() -> None:
    story = published().given(lambda plan: plan.price(5, cause(1), starts_at=LATER))
    story.when(lambda plan: plan.price(6, cause(2))).then(fact(Plan.Changed))
    assert prices_at(story, 2, 99) == [6, 6]


def test_a_moment_that_has_passed_is_refused() -> None:
    story = published()
    for at in (SOON, SOON - MOMENT):
        story.when(lambda plan, at=at: plan.price(5, cause(10), starts_at=at))
        assert "has passed" in str(story.refused(NotPossible))


def test_terms_that_were_said_before_count_as_said_when_the_price_has_moved() -> None:
    """The file of before a price took effect brings that price back, because it says so."""
    story = published().given(lambda plan: plan.price(5, cause(1), starts_at=SOON))
    planned = story.aggregate.terms
    story.when(lambda plan: plan.change(planned, cause(15))).then()
    story.when(lambda plan: plan.change(TERMS, cause(16))).then(fact(Plan.Changed, terms=TERMS))
    assert prices_at(story, 16) == [PRICE]


def test_other_terms_say_the_prices_to_come_as_well() -> None:
    story = published().given(lambda plan: plan.price(5, cause(1), starts_at=SOON))
    other = replace(story.aggregate.terms, data_mb=1)
    story.when(lambda plan: plan.change(other, cause(15)))
    story.then(fact(Plan.Changed, terms=replace(TERMS, data_mb=1, retail_price_micros=5)))


def test_a_price_below_the_cost_has_to_be_meant() -> None:
    story = published(replace(TERMS, cost=Cost(5, TERMS.currency)))
    for starts_at in (None, SOON):
        story.when(lambda plan, at=starts_at: plan.price(4, cause(1), starts_at=at))
        assert "is below the cost" in str(story.refused(NotPossible))
    story.when(lambda plan: plan.price(4, cause(1), below_cost=True)).then(fact(Plan.Changed))
    story = published(replace(TERMS, cost=Cost(5, "XAF")))
    story.when(lambda plan: plan.price(4, cause(1))).then(fact(Plan.Changed))


def test_what_has_no_price_is_not_offered_until_it_has_one() -> None:
    story = published(UNPRICED, enabled=False)
    story.when(lambda plan: plan.switch(cause(1), enabled=True)).refused(NotPossible)
    story.when(lambda plan: plan.price(5, cause(1), starts_at=SOON)).refused(NotPossible)
    story.when(lambda plan: plan.price(5, cause(1)))
    story.then(fact(Plan.Changed), fact(Plan.Enabled), enabled=True)
    story.when(lambda plan: plan.change(UNPRICED, cause(2))).refused(NotPossible)
    story.given(lambda plan: plan.switch(cause(3), enabled=False))
    story.when(lambda plan: plan.price(6, cause(4))).then(fact(Plan.Changed), enabled=False)


def test_the_prices_to_come_are_bounded() -> None:
    story = published()
    for number in range(LATER_PRICES_MAX):
        at = SOON + timedelta(days=number)
        story.given(lambda plan, at=at: plan.price(5, cause(1), starts_at=at))
    story.when(lambda plan: plan.price(6, cause(1), starts_at=SOON)).then(fact(Plan.Changed))
    story.when(lambda plan: plan.price(6, cause(1), starts_at=LATER))
    assert str(LATER_PRICES_MAX) in str(story.refused(NotPossible))
