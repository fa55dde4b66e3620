"""What every broker promises: each message is worked on, and what cannot be is out of the way."""

import json
from collections.abc import Iterator

import pytest
from pika.exceptions import ChannelClosedByBroker

from app.adapters.queues.in_process import InProcessBroker
from app.adapters.queues.rabbitmq import DurableBroker
from tests.app.adapters.queues.bench import Bench, durable
from tests.installation import wait_until
from tests.servers.fixtures import fresh_url
from tests.servers.given_broker import channel_to
from workers.routes import QUEUES, Message

BROKERS = [
    "in process",
    pytest.param("classic queues", marks=pytest.mark.server),
    # Theirs are the same calls; that they work is in `queues/test_trouble`.
    pytest.param("quorum queues", marks=[pytest.mark.server, pytest.mark.soak]),
]


@pytest.fixture(params=BROKERS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if request.param == "in process":
        made = Bench(InProcessBroker())
    else:
        made = durable(fresh_url(request), quorum=request.param == "quorum queues")
    yield made
    made.broker.close()


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    return fresh_url(request)


def backlog(bench: Bench) -> int:
    return bench.publisher.backlog("lookup")


def counted(bench: Bench, *queues: str) -> bool:
    """Tell whether these messages were given up; the broker within a process counts none."""
    return bench.given_up == ([*queues] if isinstance(bench.broker, DurableBroker) else [])


def test_each_message_is_worked_on_once(bench: Bench) -> None:
    texts = [f"message-{index}" for index in range(50)]
    with bench.working(threads=4):
        bench.publish(*texts)
        wait_until(lambda: len(bench.done) >= 50)
        wait_until(lambda: backlog(bench) == 0)
    assert sorted(bench.done) == sorted(texts)
    assert counted(bench)


def test_messages_that_were_there_before_the_worker_are_worked_on(bench: Bench) -> None:
    bench.publish("early")
    with bench.working():
        wait_until(lambda: bench.done == ["early"])


def test_the_backlog_is_what_waits_in_that_queue(bench: Bench) -> None:
    assert [bench.publisher.backlog(queue) for queue in QUEUES] == [0, 0, 0, 0]
    bench.publish("a", "b")
    bench.publish("c", queue="provision")
    wait_until(lambda: [bench.publisher.backlog(queue) for queue in QUEUES] == [2, 1, 0, 0])


def test_a_worker_takes_only_from_its_own_queue(bench: Bench) -> None:
    bench.publish("other", queue="billing")
    with bench.working(queue="lookup"):
        bench.publish("mine")
        wait_until(lambda: bench.done == ["mine"])
    assert bench.publisher.backlog("billing") == 1


def test_a_message_whose_actor_raises_is_not_tried_again(bench: Bench) -> None:
    bench.failing.add("bad")
    with bench.working():
        bench.publish("bad", "good")
        wait_until(lambda: bench.failed == ["bad"])
        bench.publish("later")
        wait_until(lambda: sorted(bench.done) == ["good", "later"])
        wait_until(lambda: backlog(bench) == 0)
    assert bench.failed == ["bad"]
    assert counted(bench)


def test_a_message_for_an_unknown_actor_does_not_stop_the_queue(bench: Bench) -> None:
    with bench.working(threads=1):
        bench.publisher.publish(Message("of_another_release", "lookup", ("x",)))
        bench.publish("next")
        wait_until(lambda: bench.done == ["next"])
        wait_until(lambda: counted(bench, "lookup"))


SOUND = {
    "queue_name": "lookup",
    "actor_name": "note_lookup",
    "args": ["x"],
    "kwargs": {},
    "options": {},
    "message_id": "a",
    "message_timestamp": 1,
}
ODD: list[dict[str, object]] = [
    {"queue_name": "billing"},
    {"actor_name": "of_another_release"},
    {"actor_name": ["a"]},
    {"args": "x"},
    {"kwargs": 1},
    {"options": None},
    {"options": {"eta": 9}},
    {"options": {"throws": 1}},
    {"of_another_release": 1},
]
POISON = [b"\xff\xfe", b"[]", b"{}", b"[" * 100_000]
POISON += [json.dumps(SOUND | odd).encode() for odd in ODD]


@pytest.mark.server
def test_what_is_no_message_of_ours_is_said_once_counted_and_dropped(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench = durable(url)
    bench.publish("before")  # So there is a queue.
    with bench.working(threads=1), channel_to(url) as channel:
        for count, body in enumerate(POISON, start=1):
            channel.basic_publish("", "lookup", body, mandatory=True)
            channel.basic_publish("", "lookup", json.dumps(SOUND).encode(), mandatory=True)
            wait_until(lambda count=count: bench.done == ["before", *["x"] * count])
            said = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
            assert said == [f"a message of {len(body)} bytes in lookup cannot be read"], body
            caplog.clear()
        wait_until(lambda: counted(bench, *["lookup"] * len(POISON)))
        wait_until(lambda: backlog(bench) == 0)
    bench.broker.close()


@pytest.mark.server
@pytest.mark.parametrize("suffix", ["DQ", "XQ"])
def test_a_queue_of_an_earlier_release_goes_once_it_is_empty_and_nobody_has_it(
    url: str, suffix: str
) -> None:
    bench, former = durable(url), f"lookup.{suffix}"
    with channel_to(url) as channel:
        channel.queue_declare(former, durable=True)
        channel.basic_publish("", former, b"left", mandatory=True)
        assert bench.broker.delete_former_queues() == {former: 1}
        channel.queue_purge(former)
        tag = channel.basic_consume(former, lambda *_: None)
        assert bench.broker.delete_former_queues() == {}
        channel.queue_declare(former, passive=True)  # It is there while somebody listens.
        channel.basic_cancel(tag)
        assert bench.broker.delete_former_queues() == {}
    with channel_to(url) as channel, pytest.raises(ChannelClosedByBroker, match="NOT_FOUND"):
        channel.queue_declare(former, passive=True)
    bench.publish("x")
    assert backlog(bench) == 1
    bench.broker.close()


@pytest.mark.server
def test_messages_outlive_the_process_that_published_them(url: str) -> None:
    first = durable(url)
    first.publish("heritage")
    first.broker.close()
    second = durable(url)
    with second.working():
        wait_until(lambda: second.done == ["heritage"])
    second.broker.close()


@pytest.mark.server
def test_a_message_waits_in_the_queue_until_a_thread_is_free_for_it(url: str) -> None:
    bench = durable(url)
    texts = [f"message-{index}" for index in range(10)]
    bench.holding += texts
    bench.publish(*texts)
    with bench.working(threads=2):
        wait_until(lambda: len(bench.held) == 2)
        assert backlog(bench) == 8
        bench.go_on.release(10)
        wait_until(lambda: len(bench.done) == 10)
    bench.broker.close()
