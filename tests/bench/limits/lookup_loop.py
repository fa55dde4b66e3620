"""The limit of bulk items: the offline provider's own loop, in a process that does nothing else."""

from uuid import UUID

from app.container import Container
from app.providers.offline import OfflineLookup
from app.settings import Settings
from tests.bench.measure import rate

LOOPS = 10
NOBODY = UUID(int=0)

_provider: OfflineLookup


def warm() -> None:
    """Prepare a process that only looks up."""
    global _provider  # noqa: PLW0603  # Of a process that has nothing else.
    _provider = Container(Settings.from_env({})).offline_lookup
    _provider.warm()


def loop(numbers: list[str]) -> float:
    """Return how many lookups a second one process makes that does nothing else."""

    def look_all_up() -> None:
        for number in numbers * LOOPS:
            _provider.look_up(NOBODY, number)

    return rate(len(numbers) * LOOPS, look_all_up)
