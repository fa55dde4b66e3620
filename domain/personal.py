"""Personal data in events: sealed, and readable until its key is deleted.

The command `privacy erase` deletes keys (`app/cli/operate.py`).
"""

import logging
from collections.abc import Iterator
from typing import Protocol
from uuid import UUID

import msgspec

from domain.cause import Cause
from domain.months import month_of

logger = logging.getLogger(__name__)

NUMBERED = "."  # In the name of a key that each stream has a part of its own of.


class Sealed(msgspec.Struct, frozen=True):
    """Personal data inside an event: AES-GCM under a key of an organization and month.

    `month` names the key: `2026-11.0001`, and `2026-10` in events of earlier releases.
    """

    month: str
    box: bytes


class Vault(Protocol):
    """Seals personal data; deleting a key erases for ever what it has sealed."""

    def seal(
        self,
        organization_id: UUID,
        month: str,
        subject: UUID,
        clear: bytes,
        *,
        exactly: bool = False,
    ) -> Sealed:
        """Seal bytes for the aggregate `subject`; the box opens for no other subject.

        With `exactly` under the key of an earlier value (its `month`), so that both are erased
        together. Raises ServiceUnavailable when the key store cannot be reached, ValueError for a
        key that has been erased.
        """

    def open(self, organization_id: UUID, subject: UUID, sealed: Sealed) -> bytes | None:
        """Return the clear bytes, or None when their key has been erased."""


def in_clear(text: str | None) -> Sealed | None:
    """Return what releases before 1.0.0 wrote in clear, as if it were sealed without a key."""
    return None if text is None else Sealed("", text.encode())


def open_text(
    vault: Vault, organization_id: UUID, subject: UUID, text: Sealed | None
) -> str | None:
    """Return a text; None if it was erased.

    So it is for bytes that were not sealed for this subject: one odd value stops nothing else.
    """
    if text is None or not text.month:
        return None if text is None else text.box.decode()
    try:
        clear = vault.open(organization_id, subject, text)
    except ValueError:
        logger.warning("a sealed text of stream %s was not sealed for it", subject)
        return None
    return None if clear is None else clear.decode()


def seal_text(
    vault: Vault, organization_id: UUID, subject: UUID, text: str | None, cause: Cause
) -> Sealed | None:
    """Seal a text under the key of the present month; None for none."""
    if text is None:
        return None
    return vault.seal(organization_id, month_of(cause.at), subject, text.encode())


def seals_of(event: object) -> Iterator[Sealed]:
    """Yield every sealed value of an event, whichever field holds it."""
    yield from (value for value in vars(event).values() if isinstance(value, Sealed))
