"""The read of a finished job of 1000 items, against a bare view that returns the same bytes."""

from collections.abc import Iterator

from flask.testing import FlaskClient

from app.container import Container
from app.http.application import create_app
from domain.commands.bulk_create import BulkRequest
from domain.organization import SCOPES
from tests.bench.installation import PRICE_MICROS, cause
from tests.bench.limits.bare_view import bare_app
from tests.bench.measure import medians, seconds
from tests.bench.numbers import real_numbers
from tests.bench.partners import Partner, new_partner
from tests.bench.row import Aim, Row
from tests.bench.rows.bulk_items import running, wait_for_ends

READS = 10
REPEATS = 21
MS = 1_000


def measure() -> Iterator[Row]:
    with running() as container:
        partner = new_partner(container)
        path = f"/number-lookup/bulk/{_finished_job(container, partner)}"
        headers = {"Authorization": f"Bearer {_token(container, partner)}"}
        client = create_app(container).test_client()
        bare = bare_app(client.get(path, headers=headers).data).test_client()
        ours, limit = medians(
            lambda: _read_ms(client, path, headers),
            lambda: _read_ms(bare, path, headers),
            repeats=REPEATS,
        )
    yield Row("read of a job of 1000 items", ours, limit, "ms", Aim(ratio_max=5, ours_max=10))


def _finished_job(container: Container, partner: Partner) -> str:
    head = container.log.head()
    request = BulkRequest(partner.organization, real_numbers(), PRICE_MICROS, "USD", None)
    job, _ = container.bulk_create.run(request, cause())
    wait_for_ends(container, head, 1)
    container.projector.catch_up()
    return str(job)


def _token(container: Container, partner: Partner) -> str:
    container.keys.ensure()
    return container.issuer.issue(partner.client_id, partner.organization, SCOPES)


def _read_ms(client: FlaskClient, path: str, headers: dict[str, str]) -> float:
    def read() -> None:
        for _ in range(READS):
            reply = client.get(path, headers=headers)
            assert reply.status_code == 200, reply.data

    return seconds(read) / READS * MS
