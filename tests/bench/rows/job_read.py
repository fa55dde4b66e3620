"""The read of a finished job of 1000 items, against a bare view that returns the same bytes."""

from collections.abc import Iterator

from app.container import Container
from domain.commands.bulk_create import BulkRequest
from tests.bench.installation import PRICE_MICROS, cause
from tests.bench.limits.bare_view import bare_app
from tests.bench.measure import medians, seconds
from tests.bench.numbers import real_numbers
from tests.bench.partners import Partner, new_partner
from tests.bench.reads import Reader, reader_of
from tests.bench.row import Aim, Row
from tests.bench.rows.bulk_items import running, wait_for_ends

READS = 10
REPEATS = 21
MS = 1_000


def measure() -> Iterator[Row]:
    with running() as container:
        partner = new_partner(container)
        path = f"/number-lookup/bulk/{_finished_job(container, partner)}"
        reader = reader_of(container, partner)
        bare = Reader(bare_app(reader.read(path)))
        ours, limit = medians(
            lambda: _read_ms(reader, path), lambda: _read_ms(bare, path), repeats=REPEATS
        )
    yield Row("read of a job of 1000 items", ours, limit, "ms", Aim(ratio_max=5, ours_max=10))


def _finished_job(container: Container, partner: Partner) -> str:
    head = container.log.head()
    request = BulkRequest(partner.organization, real_numbers(), PRICE_MICROS, "USD", None)
    job, _ = container.bulk_create.run(request, cause())
    wait_for_ends(container, head, 1)
    container.projector.catch_up()
    return str(job)


def _read_ms(reader: Reader, path: str) -> float:
    def read() -> None:
        for _ in range(READS):
            reader.read(path)

    return seconds(read) / READS * MS
