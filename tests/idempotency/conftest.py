"""One installation per test, and the organizations that ask for the operation under test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app.http.conftest import acme, make_service, service
from tests.domain.conftest import buyer, new_buyer, patience
from tests.idempotency.operations import Operation
from tests.installation import Installation
from tests.seeds import Seed

__all__ = ["acme", "buyer", "make_service", "new_buyer", "patience", "service"]

Make = Callable[..., Operation]


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> type[Operation] | None:
    """The operation under test, where the test has one."""
    return getattr(request, "param", None)


@pytest.fixture
def installation(
    tmp_path: Path, migrated: Seed, kind: type[Operation] | None
) -> Iterator[Installation]:
    made = Installation(tmp_path, like=migrated, **(kind.environment if kind else {}))
    yield made
    made.close()


@pytest.fixture
def make(installation: Installation, kind: type[Operation] | None) -> Iterator[Make]:
    """Make organizations that ask for the operation; at the end their log is right."""
    made: list[Operation] = []

    def make_one(
        amount: str = "10.00", of: type[Operation] | None = None, **more: bool
    ) -> Operation:
        chosen = of or kind
        assert chosen is not None
        made.append(chosen(installation, amount, **more))
        return made[-1]

    yield make_one
    for each in made:
        each.check()
        each.close()


@pytest.fixture
def operation(make: Make) -> Operation:
    """An organization with 10.00 that asks for the operation."""
    return make()
