"""Pages of a long list of links, against as many rows by primary key."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial

import msgspec

from tests.bench.fleet import append_links, name_of
from tests.bench.installation import installation
from tests.bench.limits.plain import Page, page_of
from tests.bench.measure import all_times, each_ms, percentile
from tests.bench.partners import new_partner
from tests.bench.reads import Reader, reader_of
from tests.bench.row import Aim, Row
from tests.bench.rows.bulk_items import threads_of

LINKS = 10_000
PAGE_LINKS = 20
FOUND_MAX = 5  # A name of six digits is one link's; an id or a number may hold them too.
READS = 10
REPEATS = 11


def measure() -> Iterator[Row]:
    plain, search = f"/v1/links?per_page={PAGE_LINKS}", f"&search={name_of(LINKS // 2)[-6:]}"
    with installation() as container:
        partner = new_partner(container)
        append_links(container, partner.organization, LINKS)
        with threads_of(container), closing(page_of(container, "links", PAGE_LINKS)) as page:
            reader = reader_of(container, partner)
            assert _total(reader, plain) == LINKS
            assert 1 <= _total(reader, plain + search) <= FOUND_MAX
            yield _row(f"list of {LINKS:,} links, a page", reader, plain, page)
            yield _row(f"list of {LINKS:,} links, a search", reader, plain + search, page)


def _total(reader: Reader, path: str) -> int:
    total: int = msgspec.json.decode(reader.read(path))["data"]["meta"]["total"]
    return total


def _row(name: str, reader: Reader, path: str, page: Page) -> Row:
    ours, limit = all_times(
        partial(each_ms, READS, partial(reader.read, path)),
        partial(each_ms, READS, page.read),
        repeats=REPEATS,
    )
    return Row(name, percentile(ours, 50), percentile(limit, 50), "ms", Aim())
