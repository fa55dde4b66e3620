"""The page of the events about money says what the classes of the events say."""

from domain.aggregates import AGGREGATES
from domain.log.aggregate import kinds_below
from tests.docs.events_page import PAGE, page, rights, streams
from tests.docs.verifier import verify


def test_the_page_is_that_of_the_classes() -> None:
    written = PAGE.read_text("utf-8")
    assert written == page(), "run: python -m tests.docs.events_page"
    assert "| ? |" not in written, "say what the field is"


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
