"""The dispatcher and RabbitMQ: a message that could not be published is published later."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from app.adapters.queues.connection import BrokerAway
from projections.engine.follower import Follower
from tests.installation import Installation, Process, numbers, sqlite_only, wait_until
from tests.projections.histories import create_job
from tests.servers.given_broker import delete_queues
from tests.servers.rabbitmq import RabbitServer

pytestmark = sqlite_only("it is the broker that is in trouble")


@pytest.fixture
def server(rabbitmq: RabbitServer) -> RabbitServer:
    if not rabbitmq.is_running():
        rabbitmq.start()
    delete_queues(rabbitmq.url())
    return rabbitmq


@pytest.fixture
def process(server: RabbitServer, installation: Installation) -> Process:
    installation.environment["BROKER_URL"] = server.url()
    process = installation.process()
    while process.dispatcher.step():
        pass
    return process


@contextmanager
def following(process: Process, failures: list[Exception]) -> Iterator[None]:
    def step() -> int:
        try:
            return process.dispatcher.step()
        except Exception as error:
            failures.append(error)
            raise

    stop = Event()
    follower = Follower("dispatcher", step, process.waker)
    thread = Thread(target=follower.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_jobs_accepted_while_the_broker_is_away_are_published_when_it_comes(
    server: RabbitServer, process: Process
) -> None:
    server.kill()
    create_job(process, process.organization(), numbers(600))
    failures: list[Exception] = []
    with following(process, failures):
        wait_until(lambda: len(failures) >= 2)
        server.start()
        wait_until(lambda: process.publisher.backlog("lookup") == 3)
    assert {type(each) for each in failures} == {BrokerAway}
