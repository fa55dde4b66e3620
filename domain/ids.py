"""Derived stream ids: the same reason gives the same id, so the log itself refuses a twin."""

import json
from uuid import UUID, uuid5

# Fixed for ever: every derived id in every log depends on it.
NAMESPACE = UUID("6f1c1f0e-6d0f-5a39-9b6e-2f5d3c8b7a10")


def derive_id(kind: str, *parts: object) -> UUID:
    """Return the UUIDv5 (RFC 9562 §5.5) of a JSON array, so that no two lists of parts collide."""
    name = json.dumps([kind, *(str(part) for part in parts)], ensure_ascii=False)
    return uuid5(NAMESPACE, name)
