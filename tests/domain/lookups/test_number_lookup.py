"""A single lookup is one answer, with the price that was paid for it."""

from datetime import timedelta

from domain.accounts.paid_price import PaidPrice
from domain.lookups.number_lookup import NumberLookup, number_lookup_id
from tests.domain.build import ORGANIZATION, START, TRANSACTION, cause, sealed
from tests.story import Story, fact


def answered(price: PaidPrice | None) -> Story[NumberLookup]:
    return Story(
        NumberLookup.give(
            number_lookup_id(ORGANIZATION, "key-1"),
            cause(),
            organization_id=ORGANIZATION,
            source="cache",
            as_of=START - timedelta(days=1),
            provider="offline",
            price=price,
            personal=sealed(),
        )
    )


def test_an_answer_keeps_where_it_came_from_and_what_it_cost() -> None:
    price = PaidPrice(5_000, "EUR", TRANSACTION)
    story = answered(price).then(
        fact(
            NumberLookup.Answered,
            organization_id=ORGANIZATION,
            source="cache",
            as_of=START - timedelta(days=1),
            provider="offline",
            price=price,
            personal=sealed(),
        )
    )
    assert story.aggregate.answer.price == price


def test_an_answer_given_for_nothing_has_no_price() -> None:
    answered(None).then(fact(NumberLookup.Answered, price=None))


def test_a_key_names_one_lookup_of_one_organization() -> None:
    assert number_lookup_id(ORGANIZATION, "key-1") == number_lookup_id(ORGANIZATION, "key-1")
    assert number_lookup_id(ORGANIZATION, "key-1") != number_lookup_id(TRANSACTION, "key-1")
