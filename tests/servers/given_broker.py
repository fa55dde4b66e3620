"""The virtual host that TEST_BROKER_URL names: one for all, so its tests take turns."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pika
import pytest
from dramatiq.common import dq_name, xq_name
from pika.adapters.blocking_connection import BlockingChannel

from app.brokers.rabbitmq import parameters
from workers.routes import QUEUES

BROKER = "TEST_BROKER_URL"
GROUP = "given broker"


def given_broker() -> str | None:
    """Return the URL of a virtual host that belongs to the tests, if one is named."""
    return os.environ.get(BROKER) or None


def take_turns(items: Iterable[pytest.Item]) -> None:
    """Let one test process run all that use the named virtual host; needs `--dist loadgroup`.

    Other tests are shared out file by file, as `--dist loadfile` does.
    """
    if given_broker() is None:
        return
    for item in items:
        group = GROUP if _uses_broker(item) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def _uses_broker(item: pytest.Item) -> bool:
    fixtures: Iterable[str] = getattr(item, "fixturenames", ())
    return "broker_url" in fixtures or hasattr(getattr(item, "module", None), "fresh_url")


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
