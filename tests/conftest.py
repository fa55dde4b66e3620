"""What holds for every test of the repository."""

import pytest
from hypothesis import settings

from tests.canaries import no_canary_is_logged, watched_logging
from tests.lending import nobody_waits_for_a_second_connection
from tests.servers.fixtures import (
    broker_url,
    databases,
    pooler,
    postgres,
    postgres_up,
    rabbitmq,
)
from tests.servers.given_broker import TakingTurns, given_broker

__all__ = [
    "broker_url",
    "databases",
    "no_canary_is_logged",
    "nobody_waits_for_a_second_connection",
    "pooler",
    "postgres",
    "postgres_up",
    "rabbitmq",
    "watched_logging",
]

# No deadline for one example: on shared cores it measures the neighbours. Under CI hypothesis loads
# a profile of its own, which has none either and repeats the same examples.
settings.register_profile("laptop", deadline=None)
if settings.get_current_profile_name() == "default":
    settings.load_profile("laptop")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> TakingTurns | None:
    """Keep tests of one process together where they share a virtual host."""
    return TakingTurns(config, log) if given_broker() is not None else None
