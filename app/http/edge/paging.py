"""A page of a list as it is sent: its items, and where it stands among all pages."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Struct

from app.http.edge.replies import means

Item = TypeVar("Item")


class PageMeta(Struct):
    """Where a page stands in its list."""

    total: Annotated[int, means("Items of all pages.")]
    per_page: Annotated[int, means("Items of a full page.")]
    current_page: Annotated[int, means("This page.")]
    last_page: Annotated[int, means("The last page, at least 1.")]


class Page(Struct, Generic[Item]):
    """One page of a list."""

    data: Sequence[Item]
    meta: PageMeta


def offset_of(query: Mapping[str, Any]) -> int:
    """Return how many items come before the page that a query asks for."""
    before: int = (query["page"] - 1) * query["per_page"]
    return before


def show_page(items: Sequence[Item], total: int, query: Mapping[str, Any]) -> Page[Item]:
    """Return the `data` of a page; one past the end is empty, and there is at least one page."""
    per_page: int = query["per_page"]
    return Page(items, PageMeta(total, per_page, query["page"], max(1, -(-total // per_page))))
