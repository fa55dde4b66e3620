"""Projecting a log into all read models, against inserting the rows that come of it."""

from collections.abc import Iterator
from contextlib import closing

from app.adapters.sqlite.database import SqliteFiles
from projections.engine.sql_views import detached
from tests.bench.history import append_jobs, append_lookups
from tests.bench.installation import DEPOSIT, installation
from tests.bench.measure import medians, rate
from tests.bench.peers.plain_rows import PlainFileRows, PlainRows
from tests.bench.row import Aim, Row
from tests.installation import Parts

EVENTS = 20_000
JOBS = 40
JOB_ITEMS = 1_000
REPEATS = 5


def measure() -> Iterator[Row]:
    with installation() as container:
        _fill_log(container)
        _project(container)
        with closing(_rows_of(container)) as rows:
            ours, limit = medians(
                lambda: _project(container), lambda: rows.rate(EVENTS), repeats=REPEATS
            )
    yield Row("projecting into all read models", ours, limit, "events/s", Aim(ratio_min=0.5))


def _rows_of(container: Parts) -> PlainRows | PlainFileRows:
    """Return the rows of all read models as they are now."""
    if isinstance(container.persistence, SqliteFiles):
        return PlainFileRows(container.persistence.beside_the_log("views"))
    tables = [table.name for model in container.models for table in model.tables]
    return PlainRows(container.settings.database_url, tables)


def _fill_log(container: Parts) -> None:
    """Append as many events, nearly all of them of paid single lookups."""
    organization = container.organization(DEPOSIT)
    append_jobs(container.log, organization, JOBS, JOB_ITEMS)
    missing = EVENTS - container.log.head()
    append_lookups(container.log, organization, -(-missing // 2))


def _project(container: Parts) -> float:
    """Forget all read models, then measure how fast the projector fills them."""
    with container.views.writing() as connection:
        for model in container.models:
            with detached(connection, [*model.metadata.tables]):
                model.metadata.drop_all(connection)
                model.metadata.create_all(connection)
            container.positions.start(connection, model.name, model.version, None)
    return rate(EVENTS, container.projector.catch_up)
