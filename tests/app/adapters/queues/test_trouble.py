"""RabbitMQ is away, comes and goes, refuses and forgets; work goes on as soon as it can."""

import socket
import time
from collections.abc import Iterator

import pytest

from app.adapters.queues.connection import BrokerAway
from tests.app.adapters.queues.bench import Bench, durable
from tests.installation import wait_until
from tests.servers.given_broker import delete_queues
from tests.servers.rabbitmq import RabbitServer
from tests.servers.running import free_port

BACK_S_MAX = 5.0
ALARM_S_MAX = 8.0  # The time-out of a blocked connection is 5 s.


@pytest.fixture
def url(rabbitmq: RabbitServer) -> str:
    if not rabbitmq.is_running():
        rabbitmq.start()
    delete_queues(rabbitmq.url())
    return rabbitmq.url()


@pytest.fixture
def bench(url: str) -> Iterator[Bench]:
    made = durable(url)
    yield made
    made.broker.close()


CLOSE_ALL = (
    '[rabbit_networking:close_connection(C, "test") || C <- rabbit_networking:connections()]'
)
WATERMARK = "vm_memory_monitor:set_vm_memory_high_watermark"


def test_without_a_broker_publishing_and_counting_fail_at_once_and_say_why() -> None:
    bench = durable(f"amqp://user:hush@127.0.0.1:{free_port()}")
    began = time.monotonic()
    with pytest.raises(BrokerAway, match=r"BROKER_URL: .*refused") as away:
        bench.publish("x")
    with pytest.raises(BrokerAway):
        bench.publisher.backlog("lookup")
    assert time.monotonic() - began < BACK_S_MAX
    assert "hush" not in repr(away.value)
    bench.broker.close()


def test_a_broker_that_listens_and_says_nothing_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        bench = durable(f"amqp://user:hush@127.0.0.1:{port}?stack_timeout=1&socket_timeout=1")
        with pytest.raises(BrokerAway, match="BROKER_URL: ") as away:
            bench.publish("x")
    assert "hush" not in repr(away.value)
    bench.broker.close()


def test_a_wrong_password_and_an_unknown_vhost_are_told_apart_from_absence(url: str) -> None:
    wrong = [url.replace("guest:guest", "guest:hush"), url.replace("%2F", "nowhere")]
    told = []
    for each in wrong:
        with pytest.raises(BrokerAway) as away:
            durable(each).publish("x")
        told.append(str(away.value))
    assert "ACCESS_REFUSED" in told[0]
    assert "vhost nowhere not found" in told[1]
    assert "hush" not in told[0]


def test_the_first_of_several_that_answers_is_taken(url: str) -> None:
    bench = durable(f"amqp://127.0.0.1:{free_port()},{url}")
    with bench.working():
        bench.publish("x")
        wait_until(lambda: bench.done == ["x"])
    bench.broker.close()


# One that stops in good order loses no more.
@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.soak), "kill"])
def test_what_was_confirmed_outlives_the_broker_and_each_worker_finds_it_when_it_comes(
    rabbitmq: RabbitServer, bench: Bench, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that have lost their broker, and one that was there before it."""
    texts, early = [f"message-{index}" for index in range(200)], durable(rabbitmq.url())
    bench.publish(*texts)
    bench.holding += texts[:2]
    with bench.working(threads=2):
        wait_until(lambda: len(bench.held) == 2)
        rabbitmq.eval("mnesia:sync_log()")  # Else a queue that is new may be lost.
        getattr(rabbitmq, end)()
        with pytest.raises(BrokerAway):
            bench.publish("refused")
        with early.working(queue="billing"):
            wait_until(lambda: caplog.text.count("connection to RabbitMQ failed") >= 2)
            rabbitmq.start()
            up = time.monotonic()
            bench.go_on.release(2)
            early.publish("x", queue="billing")
            wait_until(lambda: set(texts) <= set(bench.done) and early.done == ["x"])
            assert time.monotonic() - up < BACK_S_MAX
        wait_until(lambda: bench.publisher.backlog("lookup") == 0)
    early.broker.close()
    assert len(bench.done) <= len(texts) + 2, "only what was in hand may come twice"
    complaints = [each for each in caplog.records if "connection to RabbitMQ" in each.message]
    assert len(complaints) <= 8, "one line a minute, whoever tries, and one that it works again"
    assert not any(each.name.startswith("pika") for each in caplog.records)
    assert "guest" not in caplog.text


def test_a_publisher_whose_idle_connection_was_lost_makes_another_one(
    rabbitmq: RabbitServer, bench: Bench
) -> None:
    bench.publish("a")
    rabbitmq.eval(CLOSE_ALL)
    bench.publish("b")
    rabbitmq.eval(CLOSE_ALL)
    assert bench.publisher.backlog("lookup") == 2


def test_a_worker_whose_queue_is_deleted_makes_it_again(url: str, bench: Bench) -> None:
    with bench.working():
        bench.publish("before")
        wait_until(lambda: bench.done == ["before"])
        delete_queues(url)
        deleted = time.monotonic()
        bench.publish("after")
        wait_until(lambda: bench.done == ["before", "after"])
        assert time.monotonic() - deleted < BACK_S_MAX


def test_during_a_memory_alarm_publishing_fails_in_time_and_goes_on_after_it(
    rabbitmq: RabbitServer, bench: Bench
) -> None:
    bench.publish("before")
    rabbitmq.eval(f"{WATERMARK}(1.0e-6)")
    try:
        began = time.monotonic()
        with pytest.raises(BrokerAway, match=r"[Bb]locked"):
            bench.publish("during")
        assert time.monotonic() - began < ALARM_S_MAX
        assert bench.publisher.backlog("lookup") == 1
    finally:
        rabbitmq.eval(f"{WATERMARK}(0.4)")
    bench.publish("after")
    with bench.working():
        wait_until(lambda: {"before", "after"} <= set(bench.done))


def test_without_quorum_wanted_where_it_is_one_line_names_the_setting(
    url: str, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.publish("classic")
    other = durable(url, quorum=True)
    other.publish("more")
    with other.working():
        wait_until(lambda: other.done == ["classic", "more"])
    lines = [each.message for each in caplog.records if "QUORUM_QUEUES=true" in each.message]
    assert len(lines) == 1
    other.broker.close()
