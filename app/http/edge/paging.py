"""Pages of lists: which one a query asks for, and how it is sent, with its place among all."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Struct

from app.http.edge.input import Query, WholeNumber, described
from projections.engine.shape import means

PER_PAGE_MAX = 100
PAGE_MAX = 10**12  # Far beyond any list, but its offset still fits into the database's 64 bits.
PAST_ALL = "No list is that long; the number of its last page stands in `last_page`."

Item = TypeVar("Item")


def per_page(usual: int, what: str) -> WholeNumber:
    """Return the field that says how many of what make a page."""
    about = described(f"How many {what} make a page.")
    return WholeNumber(PER_PAGE_MAX, load_default=usual, metadata=about)


class PageQuery(Query):
    """Which page is asked for."""

    page = WholeNumber(
        PAGE_MAX,
        "Must be a whole number, 1 or more.",
        PAST_ALL,
        load_default=1,
        metadata=described("The page, from 1."),
    )
    per_page = per_page(50, "items")


class PageMeta(Struct):
    """Where a page stands in its list."""

    total: Annotated[int, means("Items of all pages.")]
    per_page: Annotated[int, means("Items of a full page.", example=50)]
    current_page: Annotated[int, means("This page.")]
    last_page: Annotated[int, means("The last page, at least 1.")]


class Page(Struct, Generic[Item]):
    """One page of a list."""

    data: Sequence[Item]
    meta: PageMeta


def span_of(query: Mapping[str, Any]) -> dict[str, int]:
    """Return the `offset` and the `limit` of the page that a query asks for."""
    per_page: int = query["per_page"]
    return {"offset": (query["page"] - 1) * per_page, "limit": per_page}


def show_page(items: Sequence[Item], total: int, query: Mapping[str, Any]) -> Page[Item]:
    """Return the `data` of a page; a page past the end is empty, `last_page` is at least 1."""
    per_page: int = query["per_page"]
    return Page(items, PageMeta(total, per_page, query["page"], max(1, -(-total // per_page))))
