"""SIGTERM asks a process to end, a second one ends it; systemd hears whether it is alive."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from socket import AF_UNIX, SOCK_DGRAM, socket
from uuid import uuid4

import pytest

from app.processes.stopping import ALIVE, ALIVE_S, READY, notify
from tests.app.cli.shell import ROOT, TIMEOUT_S, Shell
from tests.house.running import Served, value_of

PROGRAM = """
import threading
from app.processes.stopping import stop_on_signals
stop = stop_on_signals()
print("listening", flush=True)
stop.wait()
print("asked", flush=True)
threading.Event().wait()
"""
# Each has the loop of another one here.
SOAKED = {name: pytest.param(name, marks=pytest.mark.soak) for name in ("worker", "web")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_and_a_second_one_ends_a_process_that_hangs(number: int) -> None:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for said in ("listening", "asked"):
            assert process.stdout.readline() == f"{said}\n"
            process.send_signal(number)
        assert process.wait(TIMEOUT_S) == -number


HOLDING = """
import signal
from app.processes.stopping import stop_on_signals
stop = stop_on_signals()
with stop._cond:  # As `wait` does for a moment, when a signal may come too.
    signal.raise_signal(signal.SIGTERM)
stop.wait()
"""


def test_a_signal_that_comes_while_the_event_is_held_is_no_deadlock() -> None:
    command = [sys.executable, "-c", HOLDING]
    assert subprocess.run(command, cwd=ROOT, timeout=TIMEOUT_S, check=False).returncode == 0


class Systemd:
    """What systemd hears of a process that it has started."""

    def __init__(self, hears: socket) -> None:
        self._hears = hears
        self.environment = {"NOTIFY_SOCKET": hears.getsockname()}

    def hear(self, within_s: float = TIMEOUT_S) -> str:
        """Return the next notification; raises TimeoutError if none comes."""
        self._hears.settimeout(within_s)
        return self._hears.recv(64).decode()

    def hear_until(self, state: str) -> None:
        while self.hear() != state:
            pass

    def is_left_alone(self) -> bool:
        """Tell whether no sign of life comes for three times their interval."""
        self._hears.settimeout(0)
        with suppress(BlockingIOError):
            while self._hears.recv(64):
                pass
        try:
            return not self.hear(3 * ALIVE_S)
        except TimeoutError:
            return True


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    with socket(AF_UNIX, SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        yield Systemd(made)


def test_a_notification_goes_to_a_name_too_and_to_nobody_without_systemd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = f"carrier-links-{uuid4()}"
    with socket(AF_UNIX, SOCK_DGRAM) as hears:
        hears.bind(f"\0{name}")
        for address in ("", "/nowhere/at/all", f"@{name}"):
            monkeypatch.setenv("NOTIFY_SOCKET", address)
            notify(READY)
        assert hears.recv(64) == READY.encode()


@pytest.mark.parametrize("command", ["projector", SOAKED["worker"], "web"])
def test_a_process_that_waits_for_its_tables_is_alive_and_says_for_what_and_makes_nothing(
    tmp_path: Path, systemd: Systemd, command: str
) -> None:
    settings = {"BROKER_URL": "amqp://127.0.0.1:1", **systemd.environment}
    with closing(Served(Shell(tmp_path), command, **settings)) as process:
        assert systemd.hear() == READY
        assert [systemd.hear() for _ in range(3)] == [ALIVE] * 3
        assert "waiting: " in process.said()
        assert process.get("/livez")[0] == 200
        status, body = process.get("/readyz")
        assert (status, "python -m app migrate" in json.loads(body)["missing"][0]) == (503, True)
        text = process.get("/metrics")[1]
        assert value_of(text, 'scrape_part_reached{part="followers"}') == 0
        assert value_of(text, "clock_offset_seconds") == 0
        assert not (tmp_path / "var" / "service.db").exists()
        assert process.stop() == 0


@pytest.mark.parametrize("command", ["projector", "serve", SOAKED["web"]])
def test_it_is_alive_while_its_loop_is(shell: Shell, systemd: Systemd, command: str) -> None:
    broker = {"web": {"BROKER_URL": "amqp://127.0.0.1:1"}}.get(command, {})
    with closing(Served(shell, command, **broker, **systemd.environment)) as process:
        assert systemd.hear() == READY
        process.comes_up()
        systemd.hear_until(ALIVE)
        process.signal(signal.SIGSTOP)
        assert systemd.is_left_alone()
        process.signal(signal.SIGCONT)
        systemd.hear_until(ALIVE)
