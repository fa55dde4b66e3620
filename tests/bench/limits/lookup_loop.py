"""The limit of bulk items: the offline provider's own loop, in a process that does nothing else."""

from uuid import uuid4

from app.adapters.lookups.offline import OfflineLookup
from app.bootstrap.container import Container
from app.settings import Settings
from tests.bench.measure import rate

LOOPS = 10

_provider: OfflineLookup


def warm() -> None:
    """Prepare a process that only looks up."""
    global _provider  # noqa: PLW0603  # Of a process that has nothing else.
    _provider = Container(Settings.from_env({})).bare_lookups[0]
    _provider.probe()


def loop(numbers: list[str]) -> float:
    """Return how many lookups a second one process makes that does nothing else."""

    def look_all_up() -> None:
        for _ in range(LOOPS):
            customer = uuid4()  # Another one each time: nothing is remembered for it.
            for number in numbers:
                _provider.look_up(customer, number)

    return rate(len(numbers) * LOOPS, look_all_up)
