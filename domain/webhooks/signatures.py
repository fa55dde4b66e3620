"""Secrets of webhooks and signatures by them, after the specification Standard Webhooks 1.0.

A secret is derived from a key of the installation, so no store holds it. The log keeps only its
generation and the id of the key, and these always give the same secret.
"""

import hmac
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

PREFIX = "whsec_"  # A public prefix by which scanners recognise a leaked secret.


class Generation(NamedTuple):
    """A secret of an endpoint by its number, and the id of its key; None: the first key."""

    number: int
    key_id: str | None = None


class WebhookSigner:
    """Makes secrets and signatures.

    `key` returns the key of an id, None if it is revoked or gone; it may raise if there is none.
    """

    def __init__(self, key: Callable[[str | None], bytes | None]) -> None:
        self._key = key

    def secret(self, endpoint_id: UUID, generation: Generation) -> str | None:
        """Return the secret as its receiver keeps it; None if its key is revoked or gone."""
        secret = self._bytes(endpoint_id, generation)
        return None if secret is None else PREFIX + b64encode(secret).decode()

    def sign(
        self,
        endpoint_id: UUID,
        generations: Iterable[Generation],
        message_id: str,
        timestamp: int,
        body: bytes,
    ) -> str:
        """Return the header `webhook-signature`: a signature for each generation in force.

        Secrets of revoked keys sign nothing, so the header may be empty.
        """
        signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
        secrets = (self._bytes(endpoint_id, generation) for generation in generations)
        digests = (hmac.digest(each, signed, "sha256") for each in secrets if each is not None)
        return " ".join(f"v1,{b64encode(digest).decode()}" for digest in digests)

    def _bytes(self, endpoint_id: UUID, generation: Generation) -> bytes | None:
        key = self._key(generation.key_id)
        if key is None:
            return None
        return hmac.digest(key, f"webhook/{endpoint_id}/{generation.number}".encode(), "sha256")
