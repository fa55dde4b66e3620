"""The virtual host that TEST_BROKER_URL names: one for all tests, which take turns."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pika
from dramatiq.common import dq_name, xq_name
from pika.adapters.blocking_connection import BlockingChannel

from app.adapters.queues.rabbitmq import parameters
from workers.routes import QUEUES

BROKER = "TEST_BROKER_URL"


def given_broker() -> str | None:
    """Return the URL of a virtual host that belongs to the tests, if one is named."""
    return os.environ.get(BROKER) or None


def delete_queues(url: str) -> None:
    """Leave a virtual host without any queue of ours."""
    with channel_to(url) as channel:
        for queue in QUEUES:
            for name in (queue, dq_name(queue), xq_name(queue)):
                channel.queue_delete(name)


@contextmanager
def channel_to(url: str) -> Iterator[BlockingChannel]:
    """Open a separate channel, for what happens to queues from outside."""
    connection = pika.BlockingConnection(parameters(url))
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel
    finally:
        if connection.is_open:
            connection.close()
