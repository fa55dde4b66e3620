"""The auditor judges whoever may cause an event, as the verifier does."""

from domain.log.aggregate import ByOperator
from domain.webhooks.endpoint import WebhookRequest
from projections.audit.auditor import verifier
from tests.golden.files import event_classes, events_of

ASK_FOR_NO_RIGHT = {each.TOPIC for each in events_of(WebhookRequest)}


def test_every_event_of_a_command_is_judged_by_the_right_that_it_needs() -> None:
    topics = {each.TOPIC for each in event_classes() if issubclass(each, ByOperator)}
    assert topics - ASK_FOR_NO_RIGHT == verifier().JUDGED
