"""The virtual host that TEST_BROKER_URL names: one for all, so its tests take turns."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pika
from dramatiq.common import dq_name, xq_name
from pika.adapters.blocking_connection import BlockingChannel
from xdist.scheduler import LoadFileScheduling

from app.adapters.queues.rabbitmq import parameters
from workers.routes import QUEUES

BROKER = "TEST_BROKER_URL"
GROUP = "given broker"
USERS = (  # Of the virtual host; each file or room.
    "tests/app/adapters/queues/",
    "tests/app/cli/test_dead_letters.py",
    "tests/contracts/test_broker.py",
    "tests/scenarios/",
    "tests/workers/test_lookup_turns.py",
    "tests/workers/test_shares.py",
)


def given_broker() -> str | None:
    """Return the URL of a virtual host that belongs to the tests, if one is named."""
    return os.environ.get(BROKER) or None


class TakingTurns(LoadFileScheduling):
    """Shares tests out file by file, but gives all that use the broker to one test process."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return GROUP if file.startswith(USERS) else file


def delete_queues(url: str) -> None:
    """Leave a virtual host without any queue of ours."""
    with channel_to(url) as channel:
        for queue in QUEUES:
            for name in (queue, dq_name(queue), xq_name(queue)):
                channel.queue_delete(name)


@contextmanager
def channel_to(url: str) -> Iterator[BlockingChannel]:
    """Open a channel of nobody, for what happens to queues from outside."""
    connection = pika.BlockingConnection(parameters(url))
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel
    finally:
        if connection.is_open:
            connection.close()
