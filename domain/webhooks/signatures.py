"""Secrets of webhooks and signatures by them, after the specification Standard Webhooks 1.0.

A secret is derived from the installation's key, so no store holds it. The log keeps only its
generation, and the same generation always gives the same secret.
"""

import hmac
from base64 import b64encode
from collections.abc import Callable, Iterable
from uuid import UUID

PREFIX = "whsec_"  # A public prefix by which scanners recognise a leaked secret.


class WebhookSigner:
    """Makes secrets and signatures; `key` is called each time, and may raise if there is none."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key

    def secret(self, endpoint_id: UUID, generation: int) -> str:
        """Return the secret as its receiver keeps it."""
        return PREFIX + b64encode(self._bytes(endpoint_id, generation)).decode()

    def sign(
        self,
        endpoint_id: UUID,
        generations: Iterable[int],
        message_id: str,
        timestamp: int,
        body: bytes,
    ) -> str:
        """Return the header `webhook-signature`: a signature for each generation in force."""
        signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
        digests = (
            hmac.digest(self._bytes(endpoint_id, generation), signed, "sha256")
            for generation in generations
        )
        return " ".join(f"v1,{b64encode(digest).decode()}" for digest in digests)

    def _bytes(self, endpoint_id: UUID, generation: int) -> bytes:
        return hmac.digest(self._key(), f"webhook/{endpoint_id}/{generation}".encode(), "sha256")
