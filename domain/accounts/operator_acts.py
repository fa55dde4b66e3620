"""What operators do beside the aggregates: to keys, the auditor's tree, the installation; erasures.

Such an act changes files or own stores and no aggregate, so without an event nobody would know of
it. The event is appended first, so none is ever done unrecorded: an act whose command was killed
behind its event is done by running it again.
"""

from collections.abc import Sequence
from typing import Literal, Self
from uuid import UUID, uuid4

import msgspec

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


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key, by the name that `Sealed` has; all that it seals, or only some streams."""

    key: str
    streams: list[UUID] | None = None


class Erasure(Root):
    """One erasure from the personal data of one organization; each has a stream of its own.

    It is recorded before its keys are deleted, and whoever finds keys that it names deletes them
    again: `migrate`, the clock, and so an older copy of the keys beside a newer log.
    """

    TOPIC = "erasure"

    class Made(Created, ByOperator):
        """It names no number and no person: a number is named by the streams that held it."""

        TOPIC = "erasure.made"

        organization_id: UUID
        parts: list[Part]

    @classmethod
    def make(cls, organization_id: UUID, parts: Sequence[Part], cause: Cause) -> Self:
        return cls.begin(cls.Made, cause, uuid4(), organization_id=organization_id, parts=[*parts])
