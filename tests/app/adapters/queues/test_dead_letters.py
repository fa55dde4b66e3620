"""Messages that were given up after a real failure, and a replay that ends in its midst."""

import pytest
from dramatiq.common import xq_name
from pika.adapters.blocking_connection import BlockingChannel

from app.adapters.queues.rabbitmq import DurableBroker
from tests.app.adapters.queues.bench import Bench, durable
from tests.installation import wait_until
from tests.servers.fixtures import fresh_url
from tests.servers.given_broker import channel_to

PERSONAL = "what only the two of us should know"


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    return fresh_url(request)


def broker_of(bench: Bench) -> DurableBroker:
    assert isinstance(bench.broker, DurableBroker)
    return bench.broker


def given_up(url: str, *texts: str) -> Bench:
    """Make messages fail twice."""
    bench = durable(url)
    bench.failing.update(texts)
    with bench.working():
        bench.publish(*texts)
        wait_until(lambda: broker_of(bench).dead("lookup") == len(texts))
    return bench


def test_the_type_of_the_error_is_kept_and_its_text_is_not(url: str) -> None:
    bench = given_up(url, PERSONAL)
    (letter,) = broker_of(bench).given_up.read("lookup")
    assert (letter.actor, letter.error, letter.ids) == ("note_lookup", "KeyError", [])
    assert letter.died_at is not None
    with channel_to(url) as channel:
        _, _, body = channel.basic_get(xq_name("lookup"))
    assert body is not None
    assert b"Traceback" not in body
    assert body.count(PERSONAL.encode()) == 1, "only as what the actor was asked for"
    bench.broker.close()


def test_a_replayed_message_is_tried_twice_again(url: str) -> None:
    bench = given_up(url, "x")
    assert broker_of(bench).given_up.replay("lookup", None) == (1, 0)
    with bench.working():
        wait_until(lambda: bench.failed == ["x"] * 4)
        wait_until(lambda: broker_of(bench).dead("lookup") == 1)
        bench.failing.clear()
        assert broker_of(bench).given_up.replay("lookup", None) == (1, 0)
        wait_until(lambda: bench.done == ["x"])
    bench.broker.close()


class Killed(BaseException):
    """Stands for the end of the process."""


def test_a_replay_that_ends_in_its_midst_doubles_at_most_one_message_and_loses_none(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = given_up(url, "a", "b", "c")
    acknowledge, count = BlockingChannel.basic_ack, 0

    def die_at_the_second(channel: BlockingChannel, tag: int) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise Killed
        acknowledge(channel, tag)

    with monkeypatch.context() as patched:
        patched.setattr(BlockingChannel, "basic_ack", die_at_the_second)
        with pytest.raises(Killed):
            broker_of(bench).given_up.replay("lookup", None)
    assert broker_of(bench).backlog("lookup") == 2
    wait_until(lambda: broker_of(bench).dead("lookup") == 2)
    bench.failing.clear()
    assert broker_of(bench).given_up.replay("lookup", None) == (2, 0)
    with bench.working():
        wait_until(lambda: len(bench.done) == 4)
    assert set(bench.done) == {"a", "b", "c"}
    bench.broker.close()
