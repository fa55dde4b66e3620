"""The guide of webhooks names every type, and what can become of a delivery."""

import re
from typing import get_args

import pytest

from app.adapters.webhooks.sender import Failure
from app.http.docs import GUIDES
from domain.webhooks.messages import NAMED_ONLY, TYPES


def shown() -> dict[str, list[str]]:
    """Return what `data` holds by type, as the table of the guide has it."""
    text = (GUIDES / "webhooks.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z_.]+)`\*? \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    return {name: re.findall(r"`(\w+)`", cells) for name, cells in rows if "." in name}


def test_the_guide_shows_every_type_in_its_order() -> None:
    assert [*shown()] == [*TYPES]


def test_the_guide_marks_the_types_that_are_sent_only_where_they_are_named() -> None:
    text = (GUIDES / "webhooks.md").read_text("utf-8")
    assert {*re.findall(r"^\| `([a-z_.]+)`\* \|", text, re.MULTILINE)} == NAMED_ONLY


@pytest.mark.parametrize("failure", get_args(Failure))
def test_the_guide_says_what_to_do_when_no_answer_came(failure: str) -> None:
    table = (GUIDES / "webhooks.md").read_text("utf-8").partition("## When it fails")[2]
    assert f"`{failure}`" in table
