"""The auditor judges whoever may cause an event."""

from domain.accounts.operator_acts import OperatorAct
from domain.log.aggregate import ByOperator
from projections.audit.operators import RIGHTS
from tests.golden.files import event_classes, events_of


def test_every_event_of_a_command_has_the_right_that_it_needs() -> None:
    kinds = {each for each in event_classes() if issubclass(each, ByOperator)}
    nouns = {each.TOPIC.partition(".")[0] for each in kinds - {*events_of(OperatorAct)}}
    assert nouns == {*RIGHTS}
