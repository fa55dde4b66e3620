"""Transactions by time and kind among half a million of one organization, beside reads by key."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

from app.bootstrap.container import Container
from projections.models.transactions import EntryFilter, Transaction
from tests.bench.history import grow_wallet
from tests.bench.installation import installation, new_organization
from tests.bench.limits import by_key
from tests.bench.measure import all_times, each_ms, percentile
from tests.bench.row import Aim, Row

TRANSACTIONS = 500_000
PAGE = 50
BEGAN = datetime(2025, 11, 1, tzinfo=UTC)
APART = timedelta(minutes=1)  # So that all of them take a year.
OTHER_KIND_EACH = 10
READS = 10
REPEATS = 5


@contextmanager
def prepared() -> Iterator[tuple[Container, UUID]]:
    """Charge a wallet for a year, in a minute."""
    with installation() as container:
        organization = new_organization(container)
        numbers = count()

        def move(state: dict[str, Any]) -> None:
            number = next(numbers)
            state["timestamp"] = BEGAN + number * APART
            state["kind"] = "lookup" if number % OTHER_KIND_EACH else "bulk_lookup"

        grow_wallet(container.log, organization, TRANSACTIONS, move)
        container.projector.catch_up()
        yield container, organization


def measure(container: Container, organization: UUID) -> Iterator[Row]:
    since, until = BEGAN + TRANSACTIONS // 3 * APART, BEGAN + TRANSACTIONS // 2 * APART
    for told, wanted in (
        ("of some months", EntryFilter(since=since, until=until)),
        ("of a kind", EntryFilter(kind="bulk_lookup")),
        (
            "of a kind in some months",
            EntryFilter(kind="bulk_lookup", since=since, until=until),
        ),
    ):
        yield _row(told, container, organization, wanted)


def _row(told: str, container: Container, organization: UUID, wanted: EntryFilter) -> Row:
    ours = partial(_page, container, organization, wanted)
    limit = partial(by_key.transactions, container, [each.id for each in ours()])
    assert limit() == ours()
    times = all_times(
        partial(each_ms, READS, ours), partial(each_ms, READS, limit), repeats=REPEATS
    )
    p50s = [percentile(each, 50) for each in times]
    name = f"{TRANSACTIONS:,} transactions, a page {told}"
    return Row(name, *p50s, "ms", Aim(ours_max=10))


def _page(container: Container, organization: UUID, wanted: EntryFilter) -> list[Transaction]:
    with container.views.reading() as connection:
        found, total = container.transactions.page(
            connection, organization, wanted, offset=0, limit=PAGE
        )
    assert PAGE == len(found) < total < TRANSACTIONS
    return found
