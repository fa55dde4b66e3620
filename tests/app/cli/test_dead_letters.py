"""`dead-letters`: what was given up is shown by its ids, comes back, or goes for good."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from app.adapters.queues.rabbitmq import DurableBroker
from app.bootstrap.container import Container
from tests.app.cli.shell import Shell
from tests.servers.fixtures import fresh_url
from tests.servers.given_broker import channel_to
from tests.servers.running import free_port
from workers.routes import Message, plan_change_message, slice_message


@pytest.fixture
def url(request: pytest.FixtureRequest) -> str:
    return fresh_url(request)


@pytest.fixture
def on_rabbit(nowhere: Shell, url: str) -> Shell:
    return nowhere.having(BROKER_URL=url)


@pytest.fixture
def container(on_rabbit: Shell) -> Iterator[Container]:
    made = on_rabbit.container()
    yield made
    made.close()


def give_up(container: Container, url: str, *messages: Message) -> None:
    """Let messages end as dead letters, as a worker rejects them."""
    for message in messages:
        container.publisher.publish(message)
    with channel_to(url) as channel:
        for message in messages:
            method, _, _ = channel.basic_get(message.queue)
            assert method is not None
            channel.basic_nack(method.delivery_tag, requeue=False)
        for queue in {each.queue for each in messages}:
            channel.queue_declare(f"{queue}.XQ", passive=True)


def waiting(container: Container) -> tuple[int, int, int, int]:
    """Count what waits for work and what is dead, of lookups and of provisioning."""
    broker = container.broker
    assert isinstance(broker, DurableBroker)
    lookup = broker.backlog("lookup"), broker.dead("lookup")
    return (*lookup, broker.backlog("provision"), broker.dead("provision"))


def test_the_list_tells_actor_ids_time_and_error_and_leaves_all_where_it_is(
    on_rabbit: Shell, container: Container, url: str
) -> None:
    job_id, change_id = uuid4(), uuid4()
    give_up(container, url, slice_message(job_id, 3), plan_change_message(change_id))
    for _ in range(2):
        lookup, provision, *_ = on_rabbit.json("dead-letters", "list")["data"]
        assert (lookup["count"], provision["count"]) == (1, 1)
        (message,) = lookup["messages"]
        assert message.pop("died_at").endswith("Z")
        assert message == {"actor": "work_slice", "ids": [str(job_id), 3], "error": "Unknown"}
        assert provision["messages"][0]["ids"] == [str(change_id)]
    assert waiting(container) == (0, 1, 0, 1)


def test_a_replay_may_be_of_one_queue_and_of_so_many(
    on_rabbit: Shell, container: Container, url: str
) -> None:
    give_up(container, url, *[slice_message(uuid4(), index) for index in range(3)])
    give_up(container, url, plan_change_message(uuid4()))
    asked = ["dead-letters", "replay", "--queue", "lookup", "--max", "2"]
    assert on_rabbit.json(*asked) == {"replayed": 2, "left": 0}
    assert waiting(container) == (2, 1, 0, 1)


def test_a_replay_leaves_what_no_actor_is_made_for(
    on_rabbit: Shell, container: Container, url: str
) -> None:
    give_up(container, url, Message("of_another_release", "lookup", ()), slice_message(uuid4(), 0))
    assert on_rabbit.json("dead-letters", "replay") == {"replayed": 1, "left": 1}
    assert waiting(container) == (1, 1, 0, 0)


def test_a_purge_has_to_be_meant(on_rabbit: Shell, container: Container, url: str) -> None:
    give_up(container, url, slice_message(uuid4(), 0))
    refused = on_rabbit.refusal("dead-letters", "purge", "--queue", "lookup", status=2)
    assert "--yes" in refused
    assert "'--queue'" in on_rabbit.run("dead-letters", "purge", "--yes", status=2).stderr
    assert waiting(container) == (0, 1, 0, 0)
    purge = ("dead-letters", "purge", "--queue", "lookup", "--yes")
    assert on_rabbit.json(*purge) == {"purged": 1}
    assert waiting(container) == (0, 0, 0, 0)


@pytest.mark.parametrize("asked", ["list", "replay", "purge --queue lookup --yes"])
def test_without_the_broker_one_line_says_so(nowhere: Shell, asked: str) -> None:
    away = nowhere.having(BROKER_URL=f"amqp://user:hush@127.0.0.1:{free_port()}")
    told = away.refusal("dead-letters", *asked.split())
    assert told.startswith("BROKER_URL: RabbitMQ is not available")
    assert "hush" not in told
