"""The fixtures of the HTTP tests: one service that runs, and others made to measure."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.http.service import Service, Tenant
from tests.seeds import Seed

MakeService = Callable[..., Service]
# It is for the soak alone, and its library takes as long to import as a hundred tests take.
collect_ignore = [] if "SOAK" in os.environ else ["test_fuzz.py"]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, migrated: Seed) -> Iterator[Service]:
    """A service with all of its threads, which every test shares; on each database in turn."""
    yield from run_service(tmp_path_factory.mktemp("service"), migrated)


def run_service(directory: Path, migrated: Seed, *, still: bool = False) -> Iterator[Service]:
    url = migrated.copy(directory)
    service = Service(directory, DATABASE_URL=url)
    yield service if still else service.start()
    service.stop()
    migrated.drop(url)


@pytest.fixture
def still(tmp_path: Path, migrated: Seed) -> Iterator[Service]:
    """A service whose threads stand still, on each database in turn."""
    yield from run_service(tmp_path, migrated, still=True)


@pytest.fixture
def tenant(service: Service) -> Tenant:
    return service.tenant()


@pytest.fixture(scope="module")
def acme(service: Service) -> Tenant:
    """An organization with 100.00 and a client with all scopes."""
    return service.tenant()


@pytest.fixture(scope="module")
def rival(service: Service) -> Tenant:
    """A second organization of the same kind."""
    return service.tenant()


def services_in(home: Path) -> Iterator[MakeService]:
    made: list[Service] = []

    def make(**options: Any) -> Service:
        directory = home / str(len(made))
        directory.mkdir()
        made.append(Service(directory, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def make_service(tmp_path: Path) -> Iterator[MakeService]:
    """Make a service of other settings, whose threads stand still, on SQLite."""
    yield from services_in(tmp_path)


@pytest.fixture(scope="module")
def share_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeService]:
    """Make one for all tests of a module."""
    yield from services_in(tmp_path_factory.mktemp("services"))
