"""What holds for every test of the repository."""

from hypothesis import settings

from tests.canaries import no_canary_is_logged, watched_logging
from tests.servers.fixtures import broker_url, databases, postgres, postgres_up, rabbitmq

__all__ = [
    "broker_url",
    "databases",
    "no_canary_is_logged",
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
