"""Ids in paths: a UUID in its one canonical spelling, or nothing that exists."""

from uuid import UUID

from domain.errors import NotFound


def parse_id(text: str) -> UUID:
    """Return the UUID of a path; a malformed one is NotFound, like one that names nothing."""
    try:
        parsed = UUID(text)
    except ValueError:
        raise NotFound from None
    if str(parsed) != text.lower():
        raise NotFound
    return parsed
