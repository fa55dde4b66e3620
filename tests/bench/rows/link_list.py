"""Lists of a hundred thousand links, against the same rows by primary key.

A limit reads and decodes what ours returns, so that a ratio says what it costs to find them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from app.bootstrap.container import Container
from app.http.links.finding import find_links
from projections.models.links import LinkRow
from projections.models.transactions import Transaction
from tests.bench.fleet import PLAN, append_links, charge_often, name_of, number_of
from tests.bench.installation import installation
from tests.bench.limits import by_key
from tests.bench.measure import all_times, each_ms, percentile
from tests.bench.partners import Partner, new_partner
from tests.bench.reads import reader_of
from tests.bench.row import Aim, Row

LINKS = 100_000
PAGE_LINKS = 20
READS = 10
REPEATS = 11
FLAT = Aim(ratio_max=3)
INFORMATION = Aim()

Query = Mapping[str, Any]


@contextmanager
def prepared() -> Iterator[tuple[Container, Partner]]:
    """Make the links, which takes minutes."""
    with installation() as container:
        partner = new_partner(container)
        append_links(container, partner.organization, LINKS)
        container.projector.catch_up()
        charge_often(container, partner.organization, _one(container, partner).id, PAGE_LINKS)
        container.projector.catch_up()
        yield container, partner


def measure(container: Container, partner: Partner) -> Iterator[Row]:
    link = _one(container, partner)
    number = number_of(container, link.id)
    some = {"search": name_of(LINKS // 2)[:-2]}  # A hundred have it.
    for told, query, aim in (
        ("a page", {}, FLAT),
        ("the page in the middle", {"page": LINKS // PAGE_LINKS // 2}, FLAT),
        ("a page of a status", {"status": "active"}, FLAT),
        ("a search for a name", some, FLAT),
        ("a search for a phone number", {"search": number}, FLAT),
        ("a search for four digits", {"search": number[-4:]}, FLAT),
        ("a search that all match", {"search": PLAN.name[:6]}, INFORMATION),
    ):
        yield _list(f"{LINKS:,} links, {told}", container, partner, query, aim)
    yield _history(f"{LINKS:,} links, the history of one", container, partner, link.id)
    for told, query in (("a page", {}), ("a search for a name", some)):
        yield _over_http(f"{LINKS:,} links, {told} over HTTP", container, partner, query)


def _list(name: str, container: Container, partner: Partner, query: Query, aim: Aim) -> Row:
    found = [row.id for row in _find(container, partner, query)]
    limit = partial(by_key.links, container, found)
    assert [row.id for row in limit()] == found
    return _row(name, partial(_find, container, partner, query), limit, aim)


def _history(name: str, container: Container, partner: Partner, link_id: UUID) -> Row:
    def ours() -> list[Transaction]:
        with container.views.reading() as connection:
            found, total = container.transactions.link_history(
                connection, partner.organization, link_id, offset=0, limit=PAGE_LINKS
            )
        assert total == PAGE_LINKS + 1
        return found

    found = ours()
    limit = partial(by_key.transactions, container, [each.id for each in found])
    assert limit() == found
    return _row(name, ours, limit, FLAT)


def _over_http(name: str, container: Container, partner: Partner, query: Query) -> Row:
    reader = reader_of(container, partner)
    path = "/v1/links?" + urlencode({"per_page": PAGE_LINKS, **query})
    found = [row.id for row in _find(container, partner, query)]
    limit = partial(by_key.links, container, found)
    return _row(name, partial(reader.read, path), limit, INFORMATION)


def _one(container: Container, partner: Partner) -> LinkRow:
    (link,) = _find(container, partner, {"search": name_of(LINKS // 2)})
    return link


def _find(container: Container, partner: Partner, query: Query) -> list[LinkRow]:
    whole = {"page": 1, "per_page": PAGE_LINKS, **query}
    rows, total = find_links(container, partner.organization, whole)
    assert 1 <= len(rows) <= total <= LINKS
    return rows


def _row(name: str, ours: Callable[[], object], limit: Callable[[], object], aim: Aim) -> Row:
    times = all_times(
        partial(each_ms, READS, ours), partial(each_ms, READS, limit), repeats=REPEATS
    )
    return Row(name, percentile(times[0], 50), percentile(times[1], 50), "ms", aim)
