"""The units of systemd run every process with one environment, and the commands with the same."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from app.cli.root import COMMANDS
from app.processes.stopping import ALIVE_S
from tests.app.cli.shell import ROOT
from tests.servers.fixtures import started
from tests.servers.running import newest

SYSTEMD = ROOT / "ops" / "systemd"
UNIT = (SYSTEMD / "carrier-links@.service").read_text("utf-8")
INSTANCES = {
    "web": "web",
    "worker-1": "worker",
    "worker-2": "worker",
    "dispatcher-1": "dispatcher",
    "projector-2": "projector",
    "clock-1": "clock",
}
# Stands in for the interpreter of the checkout: says how it is called, and with which settings.
PYTHON = """#!/bin/sh
echo "$@ $DATABASE_URL $SERVICE_ROLE $SIGNING_KEYS $OPERATOR_KEY$OPERATOR_KEY_FILE"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("instance", INSTANCES)
def test_an_instance_runs_the_process_that_it_is_named_after(checkout: Path, instance: str) -> None:
    (line,) = re.findall(r"^ExecStart=/bin/sh -c '(.*)'$", UNIT, re.MULTILINE)
    told = line.replace("%%", "%").replace("%i", instance).replace("$$", "$")  # As systemd does.
    done = subprocess.run(["/bin/sh", "-c", told], cwd=checkout, capture_output=True, check=True)
    assert done.stdout.split()[:3] == [b"-m", b"app", INSTANCES[instance].encode()]
    assert INSTANCES[instance] in COMMANDS


@pytest.mark.parametrize("instance", ["web", "worker-2"])
def test_systemd_takes_the_unit(tmp_path: Path, instance: str) -> None:
    unit = tmp_path / f"carrier-links@{instance}.service"
    unit.write_text(UNIT)
    assert analyze("verify", unit) == ""


def test_a_process_may_do_little_beside_its_work(tmp_path: Path) -> None:
    """From 0 (safe) to 10; a process works under exactly these filters, as was tried."""
    unit = tmp_path / "carrier-links@web.service"
    unit.write_text(UNIT)
    told = analyze("security", "--offline=true", "--no-pager", unit)
    assert float(re.findall(r"Overall exposure level .*: ([0-9.]+)", told)[0]) < 2


def analyze(*arguments: str | Path) -> str:
    program = started(lambda: newest("usr/bin/systemd-analyze"), "systemd-analyze")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_systemd_hears_of_a_process_that_hangs() -> None:
    assert "\nType=notify\n" in UNIT
    (watchdog_s,) = re.findall(r"^WatchdogSec=(\d+)$", UNIT, re.MULTILINE)
    assert int(watchdog_s) > 2 * ALIVE_S
    (line,) = re.findall(r"^ExecStart=.*$", UNIT, re.MULTILINE)
    assert "; exec " in line  # Only the process that systemd has started may notify it.


def test_the_keys_are_where_the_unit_lets_them_be_written() -> None:
    assert "ProtectSystem=strict" in UNIT
    assert "StateDirectory=carrier-links carrier-links-redo\nStateDirectoryMode=0700" in UNIT
    environment = (SYSTEMD / "environment").read_text("utf-8")
    assert "\nSIGNING_KEYS='/var/lib/carrier-links/keys'\n" in environment
    assert "\nREDO_DIR='/var/lib/carrier-links-redo'\n" in environment
    read = re.findall(r"^EnvironmentFile=(.*)$", UNIT, re.MULTILINE)
    assert read == [
        "/etc/carrier-links/environment",
        "-/etc/carrier-links/environment.%i",
    ]


def test_a_process_is_started_again_however_often_it_ends() -> None:
    """By default systemd gives up for ever after five starts within 10 s."""
    assert "\nStartLimitIntervalSec=0\n" in UNIT.partition("[Service]")[0]
    assert "\nRestart=always\nRestartSec=1\n" in UNIT


def test_the_broker_is_the_virtual_host_that_the_page_makes() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    (host,) = re.findall(r"^rabbitmqctl add_vhost (\w+)$", page, re.MULTILINE)
    environment = (SYSTEMD / "environment").read_text("utf-8")
    assert re.findall(r"^BROKER_URL='amqp://[^/]*/(.*)'$", environment, re.MULTILINE) == [host]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize(
    ("command", "role"),
    [
        (["migrate"], "carrier_owner"),
        (["backup", "/backups/monday"], "carrier_owner"),
        (["restore", "/backups/monday"], "carrier_owner"),
        (["audit", "import", "log.jsonl"], "carrier_owner"),
        (["audit", "verify"], "carrier"),
        (["doctor"], "carrier"),
    ],
)
def test_a_command_has_the_environment_of_the_processes(
    checkout: Path, command: list[str], role: str
) -> None:
    url = f"postgresql://{role}:PASSWORD@db/carrier"
    told = ["-m", "app", *command, url, "carrier", "/var/lib/carrier-links/keys"]
    assert run_command(checkout, *command) == told


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_the_file_of_an_operators_key_need_not_be_open_to_the_service(checkout: Path) -> None:
    file = checkout / "key"
    file.write_text("ok_operator\n")
    file.chmod(0o600)
    assert run_command(checkout, "doctor", OPERATOR_KEY_FILE="key")[-1] == "ok_operator"


def run_command(checkout: Path, *command: str, **environment: str) -> list[str]:
    """Run `carrier-links` in the checkout, and return what it has given to the interpreter."""
    for name in ("environment", "environment.owner"):
        shutil.copy(SYSTEMD / name, checkout)
    script = (SYSTEMD / "carrier-links").read_text("utf-8")
    script = script.replace("/etc/carrier-links", str(checkout))
    script = script.replace("/srv/carrier-links", str(checkout))
    script = re.sub(r"(--re[ug]id)=carrier-links", r"\1=0", script)
    done = subprocess.run(
        ["/bin/sh", "-c", script, "carrier-links", *command],
        env={"PATH": os.environ["PATH"], **environment},
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()
