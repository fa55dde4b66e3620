"""`honcho start` runs the whole system, and survives the loss of each of its processes."""

import os
import random
import signal
from pathlib import Path

import pytest

from tests.installation import wait_until
from tests.scenarios.conftest import partner_of
from tests.scenarios.load import grown, load
from tests.scenarios.partner import Partner
from tests.scenarios.system import (
    PROCESSES,
    Running,
    System,
    failures,
    find,
    new_database,
    unfinished,
)
from tests.scenarios.walk import walk
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitServer

COMES_UP_S = 60.0
WEB_WORKER = r"(-\S+ )*-c from multiprocessing\.spawn .*"  # With the flags of its parent.
VICTIMS = {
    "web": "-m app web",
    "web worker": WEB_WORKER,
    **{name: f"-m app {name}" for name in PROCESSES[1:]},
}

pytestmark = pytest.mark.timeout(400)  # Two servers and seven starts of six processes.


def come_up(system: System, running: Running) -> None:
    """Wait until HTTP is served and every process has said that it works."""
    for name in PROCESSES[1:]:
        running.says(f"{name} is at work", COMES_UP_S)
    anyone = Partner(system.url, "", "")
    wait_until(lambda: anyone.ask("GET", "/readyz").status == 200, COMES_UP_S)


def test_the_procfile_runs_everything_and_outlives_a_kill_of_each_process(system: System) -> None:
    running = system.honcho()
    come_up(system, running)
    partner = partner_of(system)
    walk(partner)
    with load(partner):
        for victim in VICTIMS:
            more = grown(partner)
            wait_until(more, COMES_UP_S)
            running = lose(system, running, victim)
        wait_until(grown(partner), COMES_UP_S)
    assert all(partner.promised.__dict__.values())
    partner.check()
    assert failures(system) == ""
    assert unfinished(system) == []
    running.signal(signal.SIGTERM)
    assert running.ended() == 128 + signal.SIGTERM  # What honcho returns for SIGTERM.


def lose(system: System, running: Running, victim: str) -> Running:
    """Kill one process; return what runs everything then."""
    pid, *_ = find(running.pid, VICTIMS[victim])
    os.kill(pid, signal.SIGKILL)
    if victim == "web worker":
        wait_until(lambda: pid not in find(running.pid, WEB_WORKER))
        wait_until(lambda: len(find(running.pid, WEB_WORKER)) == 2)
        return running
    assert running.ended() == 256 - signal.SIGKILL, running.said()[-3000:]  # As a byte: -9.
    again = system.honcho()
    come_up(system, again)
    return again


@pytest.mark.parametrize("seed", [1])
def test_processes_that_start_before_their_servers_in_any_order_come_up(
    tmp_path: Path, postgres_up: PostgresServer, rabbitmq: RabbitServer, seed: int
) -> None:
    chance = random.Random(seed)
    broker_url = rabbitmq.new_vhost()
    system = System(tmp_path, new_database(postgres_up), broker_url)
    servers = [rabbitmq, postgres_up]
    for server in servers:
        server.stop()
    try:
        started = [system.start(name) for name in chance.sample(PROCESSES, len(PROCESSES))]
        for each in started:
            each.says("cannot be reached")
        for server in chance.sample(servers, len(servers)):
            server.start()
        come_up_alone(system, started, chance)
    finally:
        for server in servers:
            if not server.is_running():
                server.start()
        system.close()
        rabbitmq.drop_vhost(broker_url)


def come_up_alone(system: System, started: list[Running], chance: random.Random) -> None:
    """Make the tables; every process must find them, work, and end well."""
    assert system.run("migrate").returncode == 0
    for each in started:
        each.says("serving" if each.name == "web" else "is at work")
    partner = partner_of(system)
    wait_until(lambda: partner.authorize().status == 200, COMES_UP_S)
    walk(partner)
    for each in chance.sample(started, len(started)):
        assert each.stop() == 0, each.said()
    assert failures(system) == ""
