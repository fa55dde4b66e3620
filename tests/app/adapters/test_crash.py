"""What was acknowledged is still true after a crash of PostgreSQL."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from domain.links.link import Stage
from tests.app.adapters.stores.test_lookup_cache import NOON, NUMBER, ORGANIZATION, answer
from tests.faulty_network import Killed
from tests.installation import Installation
from tests.servers.fixtures import started
from tests.servers.postgres import PostgresServer
from tests.workers.link_checks import check
from tests.workers.link_lab import Lab

# Only a commit that waits for the disk brings the server's log there.
LAZY = {"wal_writer_delay": "10s", "bgwriter_lru_maxpages": "0"}

Story = Callable[[Lab], None]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    made = started(partial(PostgresServer, LAZY), "PostgreSQL", "nothing else: it is killed")
    yield made
    made.close()


@pytest.fixture
def crash(server: PostgresServer) -> Callable[[], None]:
    def crash() -> None:
        server.kill()
        server.start()

    return crash


@pytest.fixture
def installation(server: PostgresServer, tmp_path: Path) -> Iterator[Installation]:
    name = f"crash_{uuid4().hex}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    made = Installation(tmp_path, DATABASE_URL=server.url(name))
    yield made
    made.close()


def create(lab: Lab) -> None:
    assert lab.create().stage is Stage.ACTIVE


def fail_late(lab: Lab) -> None:
    """Fail a link at its deadline: its endpoint is found and removed, its eSIM given back."""
    link_id = lab.request()
    lab.network.after("create_endpoint", Killed())
    lab.work(link_id)
    lab.clock.forward(seconds=15)
    lab.expire(link_id)


def change_plans(lab: Lab) -> None:
    link = lab.create()
    lab.change(link.id, [plan.id for plan in link.current_activations], ["eu-2"])


@pytest.mark.parametrize(
    ("story", "calls"),
    [
        (create, ["available_esims", "create_endpoint"]),
        (fail_late, ["remove_endpoint", "release_esim"]),
        (change_plans, ["remove_plan", "add_plan"]),
    ],
)
def test_the_network_holds_to_its_reply_that_is_written_down_after_a_crash(
    installation: Installation, crash: Callable[[], None], story: Story, calls: list[str]
) -> None:
    lab = Lab(installation)
    for call in calls:
        lab.network.after(call, crash)
    story(lab)
    lab.settle()
    assert [lab.network.count(call) for call in calls] == [1, 1]
    check(lab)


def test_what_was_forgotten_on_purpose_does_not_come_back(
    installation: Installation, crash: Callable[[], None]
) -> None:
    process = installation.process()
    process.lookup_cache.keep(ORGANIZATION, [answer()])
    process.lookup_cache.flush()
    process.organization()  # Its commit waits for the disk, so what came before it is there too.

    assert process.lookup_cache.forget(NOON + timedelta(seconds=1), ORGANIZATION) == 1
    crash()

    assert process.lookup_cache.find(ORGANIZATION, [NUMBER], NOON) == {}
