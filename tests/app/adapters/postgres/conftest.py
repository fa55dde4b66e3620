"""Processes on one server of PostgreSQL, each with the schema that it names."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.settings import Settings
from tests.installation import Process

NewProcess = Callable[..., Process]


@pytest.fixture
def new_process(tmp_path: Path) -> Iterator[NewProcess]:
    made: list[Process] = []

    def make(url: str, schema: str = "") -> Process:
        url = f"{url}?options=-csearch_path%3D{schema}" if schema else url
        environment = {"DATABASE_URL": url, "SIGNING_KEYS": str(tmp_path / "keys")}
        made.append(Process(Settings.from_env(environment)))
        return made[-1]

    yield make
    for each in made:
        each.close()
