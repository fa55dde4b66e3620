"""What operators do beside the aggregates: to keys, to the auditor's tree, to the installation.

Such an act changes files or own stores and no aggregate, so without an event nobody would know of
it. The event is appended as the last step, after the act itself, except where the act says another
order: `tree.rebuilt` and `checkpoint.signed` come first, so neither is ever done unrecorded.
"""

from typing import Literal, Self
from uuid import uuid4

from domain.cause import Cause
from domain.log.aggregate import ByOperator, Created, Root

Act = Literal[
    "key.renewed",
    "key.revoked",
    "tree.rebuilt",
    "checkpoint.signed",
    "installation.held",
    "installation.released",
]


class OperatorAct(Root):
    """One act of one operator; each has a stream of its own."""

    TOPIC = "operator_act"

    class Done(Created, ByOperator):
        """`subject` says to what: kind and id of a key, the head of the log that is signed.

        It never holds a secret or anything personal.
        """

        TOPIC = "operator_act.done"

        act: Act
        subject: str

    @classmethod
    def of(cls, act: Act, subject: str, cause: Cause) -> Self:
        return cls.begin(cls.Done, cause, uuid4(), act=act, subject=subject)
