"""What we have left at providers, asked by the clock."""

import logging
from collections.abc import Iterator
from math import nan

from app.bootstrap.container import Container
from domain.cost import ProviderBalance
from domain.provider_errors import problem_of

ANSWER_S = 5.0  # Of one provider; they are asked one after the other.

logger = logging.getLogger(__name__)


def balance_of(container: Container, name: str) -> ProviderBalance | None:
    """Ask a configured provider; None if it tells none. Raises ProviderError."""
    for each in container.lookups:
        if each.name == name:
            return each.balance(timeout_s=ANSWER_S)
    return container.networks.of(name).balance(timeout_s=ANSWER_S)


def remote_providers(container: Container) -> Iterator[str]:
    """Yield the names of the configured providers that are not in this process."""
    yield from (each.name for each in container.lookups if each.remote)
    networks = container.networks
    yield from (name for name in networks.names if networks.of(name).remote)


def note_balances(container: Container) -> None:
    """Show each balance in the metrics; one that cannot be read now is NaN, and no alert fires."""
    metrics = container.metrics
    for name in remote_providers(container):
        try:
            told = balance_of(container, name)
        except Exception as error:  # noqa: BLE001  # The others are asked all the same.
            logger.info("the balance of %s cannot be read: %s", name, problem_of(error))
            metrics.balance(name, nan)
        else:
            metrics.balance(name, nan if told is None else told.amount_micros / 1_000_000)
