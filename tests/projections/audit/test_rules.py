"""The rules of the verifier judge every event that they should, and each sentence finds a crime."""

import ast
from collections.abc import Iterator

from domain.log.aggregate import ByOperator
from domain.webhooks.endpoint import WebhookRequest
from projections.audit.rules import VERIFIER, verifier
from tests.golden.files import event_classes, events_of
from tests.projections.audit.test_crimes import CRIMES
from tests.projections.crimes.facts import FACTS
from tests.projections.crimes.rewrites import REWRITES

ASK_FOR_NO_RIGHT = {each.TOPIC for each in events_of(WebhookRequest)}


def test_every_event_of_a_command_is_judged_by_the_right_that_it_needs() -> None:
    topics = {each.TOPIC for each in event_classes() if issubclass(each, ByOperator)}
    assert topics - ASK_FOR_NO_RIGHT == verifier().JUDGED


def sentences() -> Iterator[list[str]]:
    """Yield the fixed words of each sentence by which the verifier says what is wrong."""
    for node in ast.walk(ast.parse(VERIFIER.read_text("utf-8"))):
        if isinstance(node, ast.Yield):
            texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
            words = [text.strip(" ,") for text in texts if isinstance(text, str)]
            if any(" " in each for each in words):
                yield words


def test_each_sentence_of_the_verifier_is_that_by_which_a_crime_is_found() -> None:
    """So one that is left out, or never reached, is missed by the crime that expects it."""
    reasons = [*(reason for _, reason in CRIMES), *REWRITES.values(), *(it.reason for it in FACTS)]
    for words in sentences():
        longest, every = max(words, key=len), " ".join(words)
        assert any(longest in reason or reason in every for reason in reasons), words
