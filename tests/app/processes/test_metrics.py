"""The metrics port of real processes: it answers from the start on."""

import socket
from contextlib import closing
from pathlib import Path

from app.bootstrap.known_keys import missing_keys
from tests.app.cli.shell import Shell
from tests.app.processes.test_containers import is_healthy
from tests.house.running import COMES_UP_S, Served, value_of
from tests.installation import wait_until

ELSEWHERE = "amqp://127.0.0.1:1"  # `web` needs no broker, but will not run without one.


def test_web_has_its_keys_before_anybody_can_ask_for_them(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        shell = Shell(tmp_path).having(BROKER_URL=ELSEWHERE, METRICS_PORT=port)
        status, _, errors = shell.process("web")
        *_, nowhere = shell.having(HOST="a..example").process("clock")
        *_, both = shell.having(PORT=port).process("web")
    # It comes so far and no further.
    assert (status, f"METRICS_PORT {port}" in errors) == (1, True)
    assert nowhere.endswith(f"HOST a..example METRICS_PORT {port}: no such address\n")
    assert both == f"Error: PORT and METRICS_PORT are both {port}: they must differ\n"
    assert missing_keys(shell.container()) is None


def test_the_active_copy_and_the_standby_show_as_such_and_are_healthy(tmp_path: Path) -> None:
    name = 'role_active{role="projector"}'
    with closing(Served(Shell(tmp_path), "serve").comes_up()) as active:
        wait_until(lambda: value_of(active.get("/metrics")[1], name) == 1, COMES_UP_S)
        assert is_healthy(active)
        (tmp_path / "second").mkdir()
        database = f"sqlite:///{tmp_path}/var/service.db"
        second = Shell(tmp_path / "second").having(DATABASE_URL=database)
        with closing(Served(second, "projector").comes_up()) as standby:
            wait_until(lambda: value_of(standby.get("/metrics")[1], name) == 0, COMES_UP_S)
            assert is_healthy(standby)
            assert active.stop() == 0
            assert not is_healthy(active)
            wait_until(lambda: value_of(standby.get("/metrics")[1], name) == 1, COMES_UP_S)
