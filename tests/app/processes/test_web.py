"""What a partner sees of `web` over a real socket; the server itself in `http/test_server.py`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from app.bootstrap.known_keys import ensure_keys
from app.processes import serve
from tests.app.cli.shell import ROOT, Shell
from tests.app.http.over_http import send
from tests.house.partner import Partner
from tests.house.running import COMES_UP_S, END_S, Served
from tests.installation import wait_until
from tests.servers.running import free_port

PROXY = "203.0.113.7"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """It is behind one trusted proxy; no broker is there."""
    broker = f"amqp://127.0.0.1:{free_port()}"
    shell = Shell(tmp_path_factory.mktemp("web")).having(BROKER_URL=broker, TRUSTED_PROXIES="1")
    shell.run("migrate")
    yield (started := Served(shell, "web").comes_up())
    assert started.stop() == 0


def test_the_address_behind_a_trusted_proxy_is_what_the_proxy_saw(web: Served) -> None:
    def code(seen: str) -> int:
        form = b"grant_type=client_credentials&client_id=cl_nobody&client_secret=wrong"
        answer = send(
            web.port,
            b"POST /auth/token HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n"
            b"X-Forwarded-For: 198.51.100.1, %s\r\nContent-Length: %d\r\n\r\n%s"
            % (seen.encode(), len(form), form),
        )
        assert json.loads(answer.body)["error"] in {"invalid_client", "slow_down"}
        return answer.status

    wait_until(lambda: code(PROXY) == 429)
    assert code("203.0.113.8") == 401


@pytest.mark.parametrize("shared", ["false", "true"])
def test_a_taken_port_is_one_line_and_nothing_is_said_to_be_served(
    web: Served, shared: str
) -> None:
    """Nor is it shared unless both say so."""
    own = {"SHARE_PORT": shared, "METRICS_PORT": str(free_port())}
    second = web.shell.having(**own).start("web")
    output, errors = second.communicate(timeout=END_S)
    assert (second.returncode, output) == (1, "")
    port = web.port
    assert errors.splitlines() == [
        f"Error: cannot listen on HOST 127.0.0.1 PORT {port}: Address already in use"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("MCC_MNC_FILE", "requirements.lock"), ("BROKER_URL", "amqp://127.0.0.1:99999")],
)
def test_a_setting_that_only_its_part_can_judge_is_one_line(
    web: Served, nowhere: Shell, name: str, value: str
) -> None:
    wrong = nowhere.having(**{"BROKER_URL": web.shell.changes["BROKER_URL"], name: value})
    status, output, errors = wrong.process("web")
    assert (status, output) == (1, "")
    (line,) = errors.splitlines()
    assert line.startswith(f"Error: {name} ")
    (found,) = (
        each for each in wrong.json("doctor", status=1)["data"] if each["check"] == "settings"
    )
    assert line == f"Error: {found['message']}"


def test_one_that_is_told_to_end_is_not_ready_while_it_finishes(
    nowhere: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, stop = nowhere.having(BROKER_URL="amqp://127.0.0.1:1"), Event()
    needs = dict[str, Any]()
    shell.run("migrate")
    monkeypatch.setattr(serve, "stop_on_signals", lambda: stop)
    for each in ("configure_logging", "bind"):
        monkeypatch.setattr(serve, each, Mock())
    monkeypatch.setattr(serve, "_answer", lambda *given: given[-1]())
    monkeypatch.setattr(serve.background, "listen", lambda *_, **given: needs.update(given))
    with closing(shell.container()) as container:
        serve.serve_alone(container)
    assert needs["http"]() is None
    stop.set()
    assert needs["http"]() == "HTTP is not served"


READ_ONLY = """
mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"
"""
# Each waits until it is told to begin; what ends it is said.
COMMANDS = """
import sys
from app.cli.root import cli
for command in sys.argv[1:]:
    sys.stdin.readline()
    try:
        cli.main(command.split(), standalone_mode=False)
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_keys_on_a_mount_that_nobody_may_write_are_enough_for_web_and_for_a_backup(
    tmp_path: Path,
) -> None:
    shell = Shell(tmp_path).having(BROKER_URL="amqp://127.0.0.1:1", PORT=str(free_port()))
    keys = Path(shell.environment["SIGNING_KEYS"])
    shell.run("migrate")

    keys.mkdir(mode=0o700, parents=True)
    mounted = ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", READ_ONLY, str(keys)]
    process = [sys.executable, "-c", COMMANDS, "web", f"backup {tmp_path}/copy", "web"]
    environment, pipe = {**os.environ, **shell.environment}, subprocess.PIPE
    partner = Partner(f"http://127.0.0.1:{shell.environment['PORT']}", "", "")
    with subprocess.Popen(
        [*mounted, *process], env=environment, cwd=ROOT, stdin=pipe, stderr=pipe, text=True
    ) as web:
        assert web.stdin is not None
        assert web.stderr is not None
        try:
            print(file=web.stdin, flush=True)
            assert "Read-only file system" in web.stderr.readline()
            with closing(shell.container()) as container:
                ensure_keys(container)
            print("\n", file=web.stdin, flush=True)
            wait_until(lambda: partner.ask("GET", "/readyz").status == 200, COMES_UP_S)
        finally:
            web.terminate()
            web.communicate()
    assert {each.name for each in (tmp_path / "copy" / "keys").iterdir()} == {
        each.name for each in keys.iterdir() if not each.name.startswith(".")
    }
