"""What holds for every test of the repository."""

import gc
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from uuid import UUID

import pytest
from hypothesis import settings

from tests.app.cli.shell import Shell, migrated_home, nowhere, organization, shell
from tests.app.http.clients.packages import axe, node
from tests.canaries import no_canary_is_logged, watched_logging
from tests.house.running import Served
from tests.installation import (
    CountingProvider,
    Process,
    SetClock,
    installation,
    migrated,
    process,
)
from tests.lending import nobody_waits_for_a_second_connection
from tests.servers.fixtures import (
    broker_url,
    browser,
    databases,
    pooler,
    postgres,
    postgres_up,
    rabbitmq,
)
from tests.servers.scheduling import Shares, rank
from tests.servers.second_try import NEEDS_SERVER, Outcome

__all__ = [
    "axe",
    "broker_url",
    "browser",
    "databases",
    "installation",
    "migrated",
    "migrated_home",
    "no_canary_is_logged",
    "nobody_waits_for_a_second_connection",
    "node",
    "nowhere",
    "organization",
    "pooler",
    "postgres",
    "postgres_up",
    "process",
    "rabbitmq",
    "shell",
    "watched_logging",
]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def provider() -> CountingProvider:
    return CountingProvider()


@pytest.fixture
def organization_id(process: Process) -> UUID:
    return process.organization()


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`serve` with the demo, beside which commands run; nobody moves its clock or ends it."""
    started = Served(Shell(tmp_path_factory.mktemp("serve")))
    yield started
    assert started.stop() == 0


# No deadline for one example: on shared cores it measures the neighbours. Under CI hypothesis loads
# a profile of its own, which has none either and repeats the same examples.
settings.register_profile("laptop", deadline=None)
if settings.get_current_profile_name() == "default":
    settings.load_profile("laptop")


# Files of tests lie in memory where there is room: a copy of a database costs a tenth there. With
# SOAK=1 they lie on a disk, as do those of `make bench`: what is measured is what people will have.
MEMORY = "/dev/shm"  # noqa: S108 - each makes a directory of its own there, as in /tmp.
ROOM_BYTES = 4 << 30
SERVERS = {"broker_url", "browser", "databases", "pooler", "postgres", "postgres_up", "rabbitmq"}


def pytest_configure(config: pytest.Config) -> None:
    """Collect garbage as rarely as the service does, and choose the place of temporary files.

    By Python's own threshold, looking for garbage was a quarter of the processor time of tests that
    start no server. The place is also that of the processes that tests start.
    """
    gc.set_threshold(10_000, 20, 50)
    if {"SOAK", "TMPDIR"}.isdisjoint(os.environ) and _is_roomy(MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = MEMORY
    if not (hasattr(config, "workerinput") or config.option.collectonly):
        config.pluginmanager.register(Outcome())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what stays: doing so took a third of the time to collect tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _is_roomy(directory: str) -> bool:
    return os.access(directory, os.W_OK) and shutil.disk_usage(directory).free >= ROOM_BYTES


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that a server is started for; some of them are for `make soak` alone.

    Those that wait for RabbitMQ and for whole processes come first: meanwhile others use the time.
    """
    for item in items:
        database = getattr(item, "callspec", None) and item.callspec.params.get("migrated")
        if database == "postgresql" or not SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("server")
            item.user_properties.append(NEEDS_SERVER)
        if database == "postgresql" and _is_for_any(item):
            item.add_marker("soak")
    items.sort(key=lambda item: rank(item.nodeid))


def _is_for_any(item: pytest.Item) -> bool:
    """Tell what is said of a test or of one of its cases, else of its file."""
    own = {each.name for each in item.own_markers}
    return "any_database" in own or item.get_closest_marker("each_database") is None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Shares | None:
    """Share the tests out as `make test` wants it; `make quick` lets idle processes steal."""
    return Shares(config, log) if config.getoption("dist") == "loadfile" else None
