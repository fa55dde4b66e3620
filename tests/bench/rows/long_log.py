"""A long log: appended to at its end, followed from its beginning, rebuilt from."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from app.bootstrap.container import Container
from app.settings import Settings
from projections.engine.rebuild import rebuild_all
from tests.bench.history import append_lookups
from tests.bench.installation import installation, new_organization
from tests.bench.measure import medians, rate, seconds
from tests.bench.row import Aim, Row
from tests.bench.sizes import events

FOLLOW_EVENTS = 500  # What a follower reads at once.
REBUILD_EVENTS = 2_000  # What a rebuild reads at once.
LOOKUPS = 20
REPEATS = 41
READ_REPEATS = 3
MS = 1_000
KB_IN_MB = 1_024


@contextmanager
def prepared() -> Iterator[tuple[Container, Container]]:
    """Make a long log and a short one."""
    with installation() as long, installation() as short:
        _fill(long, events())
        _fill(short, 10)
        yield long, short


def measure(long: Container, short: Container) -> Iterator[Row]:
    yield _append(long, short)
    count = long.log.head()  # With what has been appended meanwhile.
    yield _follow(long, count)
    yield _rebuild(long, count)
    yield _memory(long, short)


def _fill(container: Container, count: int) -> None:
    append_lookups(container.log, new_organization(container), count // 2)


def _append(long: Container, short: Container) -> Row:
    ours, limit = medians(lambda: _append_ms(long), lambda: _append_ms(short), repeats=REPEATS)
    aim = Aim(ratio_max=1.2)
    return Row(f"append to a log of {events():,} events or few", ours, limit, "ms", aim)


def _append_ms(container: Container) -> float:
    organization = new_organization(container)
    return seconds(lambda: append_lookups(container.log, organization, LOOKUPS)) * MS


def _follow(container: Container, count: int) -> Row:
    """Compare what the log gives with what its recorder reads, not yet decoded."""
    ours, limit = medians(
        lambda: rate(count, lambda: _read_all(container, FOLLOW_EVENTS)),
        lambda: rate(count, lambda: _select_all(container)),
        repeats=READ_REPEATS,
    )
    return Row("follow it in batches", ours, limit, "events/s", Aim())


def _rebuild(container: Container, count: int) -> Row:
    ours = rate(count, lambda: _rebuild_all(container))
    limit = rate(count, lambda: _read_all(container, REBUILD_EVENTS))
    return Row("rebuild all read models of it", ours, limit, "events/s", Aim(ratio_min=0.3))


def _memory(long: Container, short: Container) -> Row:
    """Compare processes that do nothing else."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        urls = (each.settings.database_url for each in (long, short))
        ours, limit = pool.map(rebuild_peak_mb, urls)
    name = f"memory of a rebuild from {events():,} events or few"
    return Row(name, ours, limit, "MB", Aim(ratio_max=1.2))


def rebuild_peak_mb(database_url: str) -> float:
    """Rebuild all read models; return the most memory that this process ever held."""
    container = Container(Settings.from_env({"DATABASE_URL": database_url}))
    _rebuild_all(container)
    container.close()
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / KB_IN_MB


def _rebuild_all(container: Container) -> None:
    rebuild_all(container.log, container.views, container.positions, container.models)


def _read_all(container: Container, at_once: int) -> None:
    position = 0
    while batch := container.log.read(position, at_once):
        position = batch[-1].position


def _select_all(container: Container) -> None:
    position, select = 0, container.log.recorder.select_notifications
    while rows := select(position, FOLLOW_EVENTS, inclusive_of_start=False):
        position = rows[-1].id
