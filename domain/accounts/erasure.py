"""What was erased, by ids and keys; the keys of personal data follow what these events say.

An erasure is recorded before its keys are deleted, and whoever finds keys that it names deletes
them again: `migrate`, the clock, and so an older copy of the keys beside a newer log.
"""

from collections.abc import Sequence
from typing import Self
from uuid import UUID, uuid4

import msgspec

from domain.cause import Cause
from domain.log.aggregate import ByOperator, Created, Root


class Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A key, by the name that `Sealed` has; all that it seals, or only some streams."""

    key: str
    streams: list[UUID] | None = None


class Erasure(Root):
    """One erasure from the personal data of one organization; each has a stream of its own."""

    TOPIC = "erasure"

    class Made(Created, ByOperator):
        """It names no number and no person: a number is named by the streams that held it."""

        TOPIC = "erasure.made"

        organization_id: UUID
        parts: list[Part]

    @classmethod
    def make(cls, organization_id: UUID, parts: Sequence[Part], cause: Cause) -> Self:
        return cls.begin(cls.Made, cause, uuid4(), organization_id=organization_id, parts=[*parts])
