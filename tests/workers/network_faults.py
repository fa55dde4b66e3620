"""The possible faults of one call of the network, by name: the rows of the fault tables."""

from collections.abc import Mapping
from typing import NamedTuple

from domain.links.network import NoEndpoint
from domain.provider_errors import OutcomeUnknown, Rejected, Unavailable
from tests.faulty_network import FaultyNetwork, Killed
from tests.workers.places import When


class Fault(NamedTuple):
    """An error that meets the caller before the call has reached the network, or after."""

    when: When
    error: type[BaseException]


REFUSALS: Mapping[str, Fault] = {
    "unavailable": Fault("before", Unavailable),
    "rejected": Fault("before", Rejected),
}
NO_ENDPOINT: Mapping[str, Fault] = {"no endpoint": Fault("before", NoEndpoint)}
UNKNOWN: Mapping[str, Fault] = {
    "unknown, not done": Fault("before", OutcomeUnknown),
    "unknown, done": Fault("after", OutcomeUnknown),
}
KILLS: Mapping[str, Fault] = {
    "killed before": Fault("before", Killed),
    "killed after": Fault("after", Killed),
}
FAULTS: Mapping[str, Fault] = {**REFUSALS, **NO_ENDPOINT, **UNKNOWN, **KILLS}


def arm(
    network: FaultyNetwork, call: str, fault: Fault, *, after_calls: int = 0, times: int = 1
) -> None:
    """Let this many calls pass, then fail the next ones."""
    happenings = [int] * after_calls + [fault.error("a fault of the test") for _ in range(times)]
    (network.before if fault.when == "before" else network.after)(call, *happenings)
