"""The adapter that a process has for a scripted provider of lookups, without its circuit."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from app.bootstrap.container import Container
from app.settings import Settings
from domain.lookups.ports import LookupProvider
from tests.support.providers.lookups import ScriptedLookups


@pytest.fixture
def lookup(server: ScriptedLookups) -> Iterator[LookupProvider]:
    with closing(Container(Settings.from_env(server.settings))) as container:
        [made] = container.bare_lookups
        yield made
