"""The guide of webhooks names what the body of each type tells."""

import json
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast, get_args
from uuid import UUID

import pytest

from app.adapters.webhooks.sender import Failure
from app.http.docs import GUIDES
from domain.links.plan_change import PlanChange
from domain.log.aggregate import Event
from domain.log.log import Log, Recorded
from domain.lookups.bulk_job import BulkJob
from domain.webhooks.endpoint import WebhookRequest
from domain.webhooks.messages import (
    NAMED_ONLY,
    OF_ENTRIES,
    TEST,
    TYPES,
    Entry,
    EventContext,
    body_of_entry,
    messages_of,
)
from tests.golden.files import EVENTS, LATER_FORMS

KNOWN = [*EVENTS, *(event for _, event in LATER_FORMS)]


def shown() -> dict[str, list[str]]:
    """Return what `data` holds by type, as the table of the guide has it."""
    text = (GUIDES / "webhooks.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z_.]+)`\*? \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    return {name: re.findall(r"`(\w+)`", cells) for name, cells in rows if "." in name}


class AsIfRead(EventContext):
    """Knows a job, a change and a threshold that fit the events."""

    def __init__(self) -> None:
        self.log = cast("Log", self)

    def newest_first(self, *_: object) -> Iterator[Event]:
        return iter(())

    def get(self, kind: type, _: UUID) -> object:
        if kind is BulkJob:
            job = SimpleNamespace(completed={0: 1}, failed=set(), cancelled_count=0, items={})
            job.created = SimpleNamespace(total_count=1)
            return job
        assert kind is PlanChange
        added = next(each for each in KNOWN if isinstance(each, PlanChange.Requested))
        return SimpleNamespace(requested=added)


def told(name: str) -> list[dict[str, Any]]:
    """Return what is told of all events that we know, as one of the types."""
    kinds = TYPES[name][0] if name != TEST else (WebhookRequest.TestAsked,)
    found = [each for each in KNOWN if type(each) in kinds]
    assert {type(each) for each in found} == {*kinds}
    look = AsIfRead()
    look.threshold_of = lambda _: 10**18  # type: ignore[method-assign]  # One threshold suits all.
    if name in OF_ENTRIES:
        return [json.loads(body_of_entry(name, Entry.of(Recorded(7, each)))) for each in found]
    messages = (message for each in found for message in messages_of(Recorded(7, each), look))
    return [json.loads(each.body) for each in messages if each.type == name]


def test_the_guide_shows_every_type_in_its_order() -> None:
    assert [*shown()] == [*TYPES]


@pytest.mark.parametrize("name", TYPES)
def test_a_body_has_what_the_guide_names(name: str) -> None:
    bodies = told(name)
    assert bodies
    for body in bodies:
        assert [*body] == ["type", "timestamp", "data"]
        assert [each for each in body["data"] if each != "plans"] == [*shown()[name], "position"]


def test_the_guide_marks_the_types_that_are_sent_only_where_they_are_named() -> None:
    text = (GUIDES / "webhooks.md").read_text("utf-8")
    assert {*re.findall(r"^\| `([a-z_.]+)`\* \|", text, re.MULTILINE)} == NAMED_ONLY


@pytest.mark.parametrize("failure", get_args(Failure))
def test_the_guide_says_what_to_do_when_no_answer_came(failure: str) -> None:
    table = (GUIDES / "webhooks.md").read_text("utf-8").partition("## When it fails")[2]
    assert f"`{failure}`" in table
