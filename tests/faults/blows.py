"""Faults of processes and servers that come from outside, each with its repair."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.faults.programme import Programme
from tests.faults.system import System
from tests.installation import wait_until

SERVER_S_MAX = 60.0
QUIET_S_MAX = 30.0
FULL_S_MAX = 30.0
LOST_MESSAGES = 4


def kill_one(role: str) -> Callable[[System], None]:
    return lambda system: system.of(role)[0].kill()


def kill_active(role: str) -> Callable[[System], None]:
    return lambda system: system.active(role).kill()


def kill_broker(system: System) -> None:
    system.servers.rabbitmq.kill()
    system.servers.rabbitmq.start()


def kill_database(system: System) -> None:
    system.servers.postgres.kill()
    system.servers.postgres.start()


KILLS: Mapping[str, Callable[[System], None]] = {
    "kill -9 of web": kill_one("web"),
    "kill -9 of a worker": kill_one("worker"),
    "kill -9 of the active dispatcher": kill_active("dispatcher"),
    "kill -9 of the active projector": kill_active("projector"),
    "kill -9 of the active clock": kill_active("clock"),
    "kill -9 of RabbitMQ": kill_broker,
    "kill -9 of PostgreSQL": kill_database,
}


def purge(system: System) -> None:
    """Lose what waits in the queues while there is nobody to take it."""
    with system.without("worker"):
        wait_until(
            lambda: system.servers.waiting() >= LOST_MESSAGES, SERVER_S_MAX, "messages that wait"
        )
        assert system.servers.purge() >= LOST_MESSAGES


def fill_disk(programme: Programme) -> None:
    """Leave PostgreSQL no space until a client has felt it."""
    servers, refusals = programme.system.servers, programme.load.ledger.refusals
    before = dict(refusals)

    def is_felt() -> bool:
        return refusals.get("503 SERVICE_UNAVAILABLE", 0) > before.get("503 SERVICE_UNAVAILABLE", 0)

    ballast = servers.fill_disk()
    try:
        wait_until(is_felt, FULL_S_MAX, "a request that cannot be written")
    finally:
        ballast.unlink()
        wait_until(servers.is_database_up, SERVER_S_MAX, "PostgreSQL after its disk was full")


@contextmanager
def without_late_work(programme: Programme) -> Iterator[None]:
    """Let no link wait for a moment of the clock: two hours ahead it would wait for two hours."""
    load = programme.load
    load.slow_pauses.set()
    wait_until(lambda: not programme.has_late_work(), QUIET_S_MAX, "the end of what comes late")
    yield
    load.slow_pauses.clear()
