"""The metrics port of real processes: it answers from the start on."""

import json
import socket
from contextlib import closing
from pathlib import Path

from app.bootstrap.known_keys import missing_keys
from tests.app.cli.shell import Shell
from tests.house.running import COMES_UP_S, Served, value_of
from tests.installation import wait_until

ELSEWHERE = "amqp://127.0.0.1:1"  # `web` needs no broker, but will not run without one.


def test_a_process_that_waits_says_for_what_and_makes_nothing(tmp_path: Path) -> None:
    with closing(Served(Shell(tmp_path), "projector")) as projector:
        wait_until(lambda: projector.get("/livez")[0] == 200, COMES_UP_S)
        status, body = projector.get("/readyz")
        assert status == 503
        assert "python -m app migrate" in json.loads(body)["missing"][0]
        status, text = projector.get("/metrics")
        assert status == 200
        assert value_of(text, 'scrape_part_reached{part="followers"}') == 0
        assert value_of(text, "clock_offset_seconds") == 0
        assert not (tmp_path / "var" / "service.db").exists()
        assert projector.stop() == 0


def test_web_has_its_keys_before_anybody_can_ask_for_them(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        shell = Shell(tmp_path).having(BROKER_URL=ELSEWHERE, METRICS_PORT=port)
        status, _, errors = shell.process("web")
    # It comes so far and no further.
    assert (status, f"METRICS_PORT {port}" in errors) == (1, True)
    assert missing_keys(shell.container()) is None


def test_the_active_copy_and_the_standby_show_as_such(tmp_path: Path) -> None:
    name = 'role_active{role="projector"}'
    with closing(Served(Shell(tmp_path), "serve").comes_up()) as active:
        wait_until(lambda: value_of(active.get("/metrics")[1], name) == 1, COMES_UP_S)
        (tmp_path / "second").mkdir()
        database = f"sqlite:///{tmp_path}/var/service.db"
        second = Shell(tmp_path / "second").having(DATABASE_URL=database)
        with closing(Served(second, "projector").comes_up()) as standby:
            wait_until(lambda: value_of(standby.get("/metrics")[1], name) == 0, COMES_UP_S)
            assert active.stop() == 0
            wait_until(lambda: value_of(standby.get("/metrics")[1], name) == 1, COMES_UP_S)
