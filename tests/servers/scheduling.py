"""Which process of `make test` runs which tests: what is costly to start is started once."""

from collections.abc import Sequence

import pytest

BROKER_GROUP = "RabbitMQ"
BROKER_USERS = (  # Each file or room.
    "tests/app/adapters/queues/",
    "tests/app/processes/test_cluster.py",
    "tests/app/watch/test_tracing.py",
    "tests/contracts/test_broker.py",
    "tests/scenarios/",
)
# A process that serves, and is busy even if nobody asks it.
HOUSES = {"main_house"}


def uses_broker(nodeid: str) -> bool:
    return nodeid.startswith(BROKER_USERS)


def database_of(item: pytest.Item) -> str | None:
    """Return the database that an item names; None where it has one of its own, or needs none."""
    given = getattr(item, "callspec", None)
    return given and given.params.get("migrated")


def share_of(item: pytest.Item) -> str:
    """Return what is run by one process: a file or those that share a house, on one database.

    pytest collects all tests of one database together: who went file by file would end the service
    of one and start that of the other twice a file. All that use RabbitMQ are one share: only one
    process starts it, and the virtual host of TEST_BROKER_URL has one user at a time. Each test of
    the simulation is a share: they come last, so all processes end at the same time.
    """
    if uses_broker(item.nodeid):
        return BROKER_GROUP
    if item.nodeid.startswith("tests/simulation/"):
        return item.nodeid
    houses = HOUSES.intersection(getattr(item, "fixturenames", ()))
    return f"{min(houses, default=item.path)} on {database_of(item)}"


def shares_of(items: Sequence[pytest.Item]) -> Sequence[list[int]]:
    """Return the places of the tests of each share, in the order in which they were collected."""
    shares: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        shares.setdefault(share_of(item), []).append(place)
    return [*shares.values()]
