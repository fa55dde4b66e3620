"""Every event that was ever written decodes, and is written today as it was then."""

import re
from inspect import get_annotations

import pytest
from eventsourcing.utils import get_topic

from app.processes.doctor import UNKNOWN_BEFORE
from domain.aggregates import AGGREGATES
from domain.log.aggregate import Event
from domain.log.mapper import MsgspecMapper
from tests.golden.files import (
    EVENTS,
    EVENTS_FOLDER,
    EXAMPLES,
    event_classes,
    events_of,
    file_name,
)
from tests.tidy.source import ROOT

# The topics that the release before knows, and its page about the way back to it.
TOPIC = re.compile(r"`([a-z_]+\.[a-z_]+)`")
BEFORE = {*(ROOT / "tests/data/topics_514c2a3.txt").read_text("utf-8").split()}
PAGE = (ROOT / "docs/deployment.md").read_text("utf-8").partition("### Roll back")[2]


def test_every_event_class_has_a_golden_file() -> None:
    assert {type(event) for event in EVENTS} == event_classes()


def test_every_aggregate_and_event_has_a_topic_of_its_own() -> None:
    classes = [*AGGREGATES, *event_classes()]
    assert len({get_topic(each) for each in classes}) == len(classes)


def test_the_topic_of_an_event_begins_with_that_of_its_aggregate() -> None:
    for aggregate in AGGREGATES:
        topics = [get_topic(each) for each in events_of(aggregate)]
        assert topics
        assert all(topic.startswith(f"{get_topic(aggregate)}.") for topic in topics)


def test_an_event_sets_attributes_that_its_aggregate_declares() -> None:
    for aggregate in AGGREGATES:
        declared = {name for each in aggregate.__mro__ for name in get_annotations(each)}
        for event in events_of(aggregate):
            assert event.SETS.keys() <= declared, event
            assert not event.SETS or event.apply is Event.apply, event


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_was_written_once_reads_as_an_event_that_is_written_so_today(name: str) -> None:
    event = EXAMPLES[name]
    kind = type(event)
    made = kind(**vars(event))  # So its fields have the order of the class.
    is_older = not name.startswith(file_name(kind).removesuffix(".json"))
    golden = (EVENTS_FOLDER / (file_name(kind) if is_older else name)).read_bytes()
    assert MsgspecMapper().to_stored_event(made).state == golden


def test_the_page_names_each_topic_that_closes_the_way_back() -> None:
    """A new topic is a line of that table: what writes it."""
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    table = {topic for row in rows for topic in TOPIC.findall(row)}
    assert {get_topic(each) for each in event_classes()} - BEFORE == table
    assert table == {*" ".join(UNKNOWN_BEFORE.values()).split()}, "what `doctor` looks for"
