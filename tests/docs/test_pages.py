"""What is made from the code says what the code says: two pages, and the picture of a link."""

from typing import Any

import pytest

from domain.aggregates import AGGREGATES
from domain.log.aggregate import kinds_below
from tests.docs import errors_page, events_page, link_states
from tests.docs.events_page import PAGE, rights, streams
from tests.docs.verifier import verify
from tests.tidy.source import ROOT


@pytest.mark.parametrize("made", [errors_page, events_page, link_states])
def test_what_is_made_is_that_of_the_code(made: Any) -> None:
    assert made.PAGE.read_text("utf-8") == made.page(), made.__doc__


def test_every_code_and_every_field_is_explained() -> None:
    assert [each.code for each in errors_page.rows() if not each.advice] == []
    assert "| ? |" not in PAGE.read_text("utf-8"), "say what the field is"


def test_both_pictures_of_the_readme_are_small() -> None:
    pictures = (link_states.PAGE, ROOT / "docs" / "finance.png")
    assert sum(each.stat().st_size for each in pictures) < 200_000


def test_the_verifier_has_a_rule_for_every_event_that_names_money() -> None:
    names = ("price", "amount_micros", "refund", "refunds", "additions", "balance_micros")
    events = {event for kind in AGGREGATES for event in kinds_below(kind.Event)}
    events |= {
        each for kind in AGGREGATES for each in vars(kind).values() if isinstance(each, type)
    }
    money = {
        each.TOPIC
        for each in events
        if any(name in getattr(each, "__dataclass_fields__", ()) for name in names)
    }
    never_written = {"link.began", "wallet.moved"}
    moves_nothing = {"organization.low_balance_threshold_set"}  # It tells what the wallet held.
    assert money - never_written - moves_nothing <= verify.RULES.keys()


def test_the_page_has_each_id_that_is_derived_and_each_right_with_what_needs_it() -> None:
    written = PAGE.read_text("utf-8")
    assert [row for row in (*streams(), *rights()) if row not in written] == []
