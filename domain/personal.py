"""Personal data in events: sealed, and readable until its key is deleted.

The command `privacy erase` deletes keys (`app/cli/privacy.py`).
"""

from typing import Protocol
from uuid import UUID

import msgspec


class Sealed(msgspec.Struct, frozen=True):
    """Personal data inside an event: AES-GCM under the key of an organization and month."""

    month: str
    box: bytes


class Vault(Protocol):
    """Seals personal data; deleting the key of an organization and month erases it for ever."""

    def seal(self, organization_id: UUID, month: str, subject: UUID, clear: bytes) -> Sealed:
        """Seal bytes for the aggregate `subject`; the box opens for no other subject.

        Raises ServiceUnavailable when the key store cannot be reached, ValueError for a month
        that has been erased.
        """
        ...

    def open(self, organization_id: UUID, subject: UUID, sealed: Sealed) -> bytes | None:
        """Return the clear bytes, or None when their key has been erased."""
        ...
