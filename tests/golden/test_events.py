"""Every event that was ever written decodes, and is written today as it was then."""

import re
from inspect import get_annotations
from pathlib import Path

import pytest
from eventsourcing.persistence import StoredEvent
from eventsourcing.utils import get_topic

from app.processes.doctor import UNKNOWN_BEFORE
from domain.aggregates import AGGREGATES
from domain.log.aggregate import Event
from domain.log.mapper import MsgspecMapper
from tests.golden.examples import EVENTS
from tests.golden.files import EVENTS_FOLDER, EXAMPLES, event_classes, events_of, file_name
from tests.tidy.source import ROOT

# The topics that the release before knows, and its page about the way back to it.
TOPIC = re.compile(r"`([a-z_]+\.[a-z_]+)`")
BEFORE = {*(ROOT / "tests/data/topics_514c2a3.txt").read_text("utf-8").split()}
PAGE = (ROOT / "docs/deployment.md").read_text("utf-8").partition("### Roll back")[2]
FILES = sorted(EVENTS_FOLDER.iterdir())
BY_TOPIC = {get_topic(type(event)): event for event in EVENTS}


def test_every_event_class_has_an_example_and_a_golden_file() -> None:
    assert {type(event) for event in EVENTS} == event_classes()
    assert {file_name(each) for each in event_classes()} <= {file.name for file in FILES}


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
def test_an_event_is_written_as_exactly_these_bytes(name: str) -> None:
    golden = (EVENTS_FOLDER / name).read_bytes()
    assert MsgspecMapper().to_stored_event(EXAMPLES[name]).state == golden


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_event_ever_written_reads_as_its_example(file: Path) -> None:
    topic, _version, _json = file.name.rsplit(".", 2)
    expected = EXAMPLES.get(file.name) or BY_TOPIC[topic]
    stored = StoredEvent(
        expected.originator_id, expected.originator_version, topic, file.read_bytes()
    )
    event = MsgspecMapper().to_domain_event(stored)
    assert type(event) is type(expected)
    assert vars(event) == vars(expected)


def test_the_page_names_each_topic_that_closes_the_way_back() -> None:
    """A new topic is a line of that table: what writes it."""
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    table = {topic for row in rows for topic in TOPIC.findall(row)}
    assert {get_topic(each) for each in event_classes()} - BEFORE == table
    assert table == {*" ".join(UNKNOWN_BEFORE.values()).split()}, "what `doctor` looks for"
