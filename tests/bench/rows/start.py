"""From the start of the process to the first answer, for a new installation."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.engine import on_postgres
from tests.bench.installation import environment
from tests.bench.measure import medians
from tests.bench.row import Aim, Row
from tests.bench.server import bare_server, free_port, service

REPEATS = 5


def measure() -> Iterator[Row]:
    if on_postgres():  # There a release makes the tables, and nothing starts on a new installation.
        return
    ours, limit = medians(_service_s, _bare_s, repeats=REPEATS)
    yield Row("start of serve to its first answer", ours, limit, "s", Aim(ours_max=3))


def _service_s() -> float:
    with TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        with service(environment(directory), free_port(), directory / "serve.log") as running:
            return running.ready_s


def _bare_s() -> float:
    with (
        TemporaryDirectory(prefix="bench-") as name,
        bare_server(b"{}", free_port(), Path(name)) as running,
    ):
        return running.ready_s
