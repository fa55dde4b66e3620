"""A page of a list as it is sent: its items, and where it stands among all pages."""

from collections.abc import Mapping, Sequence
from typing import Any


def offset_of(query: Mapping[str, Any]) -> int:
    """Return how many items stand before the page that a query asks for."""
    before: int = (query["page"] - 1) * query["per_page"]
    return before


def show_page(items: Sequence[Any], total: int, query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `data` of a page; a page past the end is empty, and there is at least one."""
    meta = {
        "total": total,
        "per_page": query["per_page"],
        "current_page": query["page"],
        "last_page": max(1, -(-total // query["per_page"])),
    }
    return {"data": items, "meta": meta}
