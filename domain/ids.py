"""Derived stream ids: the same reason gives the same id, so the log itself refuses a twin.

What an Idempotency-Key becomes part of stands beside each aggregate: `number_lookup_id`, `link_id`.
Also ids as drivers return them.
"""

from functools import lru_cache
from hashlib import sha1
from json.encoder import encode_basestring
from uuid import UUID

# Fixed for ever, because every derived id in every log depends on it.
NAMESPACE = UUID("6f1c1f0e-6d0f-5a39-9b6e-2f5d3c8b7a10").bytes


def derive_id(kind: str, *parts: object) -> UUID:
    """Return the UUIDv5 (RFC 9562 §5.5) of a JSON array, so that no two lists of parts collide."""
    # As `json.dumps(..., ensure_ascii=False)` writes it, at a third of its cost.
    name = f"[{', '.join(map(encode_basestring, map(str, (kind, *parts))))}]"
    digest = sha1(NAMESPACE + name.encode(), usedforsecurity=False).digest()
    return UUID(bytes=digest[:16], version=5)


def as_id(value: UUID | str) -> UUID:
    """Return an id that a driver returned; that of SQLite returns text."""
    return _id_of(value) if isinstance(value, str) else value


@lru_cache(maxsize=1_024)  # For wallets, which have most of the events, and for organizations.
def _id_of(text: str) -> UUID:
    return UUID(text)
