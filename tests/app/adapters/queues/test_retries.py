"""A message on its way to its second try holds no text of the error."""

from collections.abc import Iterator

import pytest
from dramatiq import Message
from pika.adapters.blocking_connection import BlockingChannel

from app.adapters.queues import rabbitmq
from tests.app.adapters.queues.bench import Bench, durable
from tests.installation import wait_until
from tests.servers.fixtures import fresh_url

PERSONAL = "what only the two of us should know"


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = durable(fresh_url(request))
    yield made
    made.broker.close()


def test_the_type_of_the_error_is_kept_and_its_text_is_not(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies, publish = list[bytes](), rabbitmq.publish

    def seen(channel: BlockingChannel, queue: str, body: bytes) -> None:
        bodies.append(body)
        publish(channel, queue, body)

    monkeypatch.setattr(rabbitmq, "publish", seen)
    bench.failing.add(PERSONAL)
    with bench.working():
        bench.publish(PERSONAL)
        wait_until(lambda: bench.given_up == ["lookup"])
    _, *repeats = bodies
    assert repeats
    for body in repeats:
        assert Message.decode(body).options["error"] == "KeyError"
        assert b"Traceback" not in body
        assert body.count(PERSONAL.encode()) == 1, "only as what the actor was asked for"
