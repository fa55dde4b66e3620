"""The metrics port of real processes: it answers from the start on, and adds up what workers do."""

import json
import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.bootstrap.known_keys import missing_keys
from tests.app.cli.shell import Shell
from tests.installation import wait_until
from tests.ops.processes import START_S, until_ready, value_of, watched
from tests.scenarios.system import command_of
from tests.servers.guard import children

LIVEZ = 'http_requests_total{method="GET",route="/livez",status="200"}'
ELSEWHERE = "amqp://127.0.0.1:1"  # `web` needs no broker, but will not run without one.


def worker_ids(web: int) -> list[int]:
    """The workers of `web`, without the process in which multiprocessing tracks what it shares."""
    return [child for child in children(web) if "spawn_main" in command_of(child)]


def test_a_process_that_waits_says_for_what_and_makes_nothing(tmp_path: Path) -> None:
    with watched(tmp_path, "projector") as projector:
        wait_until(lambda: projector.get("/livez")[0] == 200, START_S)
        status, body = projector.get("/readyz")
        assert status == 503
        assert "python -m app migrate" in json.loads(body)["missing"][0]
        status, text = projector.get("/metrics")
        assert status == 200
        assert value_of(text, 'scrape_part_reached{part="followers"}') == 0
        assert not (tmp_path / "var" / "service.db").exists()
        assert projector.stop() == 0


def test_a_port_that_is_taken_ends_the_process_with_one_line(tmp_path: Path) -> None:
    with watched(tmp_path, "projector") as first:
        wait_until(lambda: first.get("/livez")[0] == 200, START_S)
        (tmp_path / "second").mkdir()
        taken = str(first.metrics_port)
        for command in ("projector", "web"):
            with watched(
                tmp_path / "second", command, METRICS_PORT=taken, BROKER_URL=ELSEWHERE
            ) as second:
                assert second.process.wait(START_S) == 1
                assert f"METRICS_PORT {taken}" in second.log().splitlines()[-1]
                assert "Traceback" not in second.log()


def test_web_has_its_keys_before_anybody_can_ask_for_them(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        shell = Shell(tmp_path).having(BROKER_URL=ELSEWHERE, METRICS_PORT=port)
        status, _, errors = shell.process("web")
    assert (status, f"METRICS_PORT {port}" in errors) == (
        1,
        True,
    )  # It comes so far and no further.
    assert missing_keys(shell.container()) is None


def test_the_active_copy_and_the_standby_show_as_such(tmp_path: Path) -> None:
    name = 'role_active{role="projector"}'
    with watched(tmp_path, "serve") as active:
        until_ready(active)
        wait_until(lambda: value_of(active.get("/metrics")[1], name) == 1, START_S)
        (tmp_path / "second").mkdir()
        database = f"sqlite:///{tmp_path}/var/service.db"
        with watched(tmp_path / "second", "projector", DATABASE_URL=database) as standby:
            until_ready(standby)
            wait_until(lambda: value_of(standby.get("/metrics")[1], name) == 0, START_S)
            assert active.stop() == 0
            wait_until(lambda: value_of(standby.get("/metrics")[1], name) == 1, START_S)


@pytest.mark.soak  # The sums are the rule of tests/app/watch/test_web_workers.py.
def test_web_adds_up_its_workers_also_those_that_were_killed(tmp_path: Path) -> None:
    Shell(tmp_path).run("migrate")
    with watched(tmp_path, "web", BROKER_URL=ELSEWHERE, WEB_WORKERS="2") as web:
        until_ready(web)

        def shown(series: str) -> float | None:
            return value_of(web.get("/metrics")[1], series)

        wait_until(lambda: shown("web_workers") == 2, START_S)
        for _ in range(10):
            assert web.get("/livez", web.port)[0] == 200
        assert shown(LIVEZ) == 10
        with ExitStack() as kept:
            gauges = tmp_path.glob("web-metrics-*/gauge_live*.db")
            files = [kept.enter_context(path.open("rb")) for path in gauges]
            killed, _ = worker_ids(web.process.pid)
            os.kill(killed, signal.SIGKILL)
            wait_until(lambda: "a worker has died" in web.log(), START_S)
            wait_until(lambda: shown("web_workers") == 2, START_S)
            removed = [file for file in files if os.fstat(file.fileno()).st_nlink == 0]
            assert len(removed) == len(files) / 2
        assert shown(LIVEZ) == 10
        wait_until(lambda: shown('lookup_provider_up{provider="offline"}') == 1, START_S)
        wait_until(lambda: shown('network_provider_up{provider="simulated"}') == 1, START_S)
        assert web.stop() == 0
        assert not list(tmp_path.glob("web-metrics-*"))
        lines = [json.loads(line) for line in web.log().splitlines()]
        assert any({"command", "request_id", "duration_ms"} <= line.keys() for line in lines)
        assert any("NETWORK_PROVIDER is simulated" in line["message"] for line in lines)
