"""What each process loads: only what its own work needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.cli.serving import free_port
from tests.app.cli.shell import ROOT, TIMEOUT_S, Shell

# It runs the command as `python -m app` does, and looks when the process says that it works.
LOOK = """
import json, logging, os, signal, sys

class Look(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith(("serving ", f"{sys.argv[1]} is at work")):
            print(json.dumps(sorted(sys.modules)), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

logging.getLogger("app.processes").addHandler(Look())
from app.cli.root import main
main()
"""
EDGE = {"flask", "flask_smorest", "httptools", "werkzeug"}


def loaded(shell: Shell, name: str) -> set[str]:
    """Start a process until it works; return the packages that it has loaded."""
    shell = shell.having(BROKER_URL=f"amqp://127.0.0.1:{free_port()}", PORT=str(free_port()))
    done = subprocess.run(
        [sys.executable, "-c", LOOK, name],
        cwd=ROOT,
        env={"PATH": str(Path(sys.executable).parent), **shell.environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.stdout, done.stderr
    return {module.partition(".")[0] for module in json.loads(done.stdout)}


# The worker loads what the others load, and more.
@pytest.mark.parametrize(
    "name",
    [
        "worker",
        *(
            pytest.param(each, marks=pytest.mark.soak)
            for each in ("dispatcher", "projector", "clock")
        ),
    ],
)
def test_a_process_without_http_loads_no_edge_no_client_and_on_sqlite_no_postgresql(
    shell: Shell, name: str
) -> None:
    found = loaded(shell, name)
    assert {"app", "sqlite3", "eventsourcing"} <= found
    assert not found & (EDGE | {"psycopg", "psycopg_pool", "urllib3"})


def test_the_main_process_of_web_loads_no_edge_nor_postgresql(shell: Shell) -> None:
    assert not loaded(shell, "web") & (EDGE | {"psycopg", "psycopg_pool"})


def test_no_process_starts_in_another_currency_than_that_of_the_log(shell: Shell) -> None:
    shell.new_organization()
    euros = shell.having(
        CURRENCY="EUR", BROKER_URL=f"amqp://127.0.0.1:{free_port()}", PORT=str(free_port())
    )
    names = ("web", "worker", "serve")  # The others begin as `worker` does, or as commands do.
    for started in [euros.start(name) for name in names]:  # All at once: each loads for a while.
        out, err = started.communicate(timeout=TIMEOUT_S)
        stays = "Error: CURRENCY must stay USD: the log of this installation holds it"
        assert (started.returncode, out, err.splitlines()[-1]) == (1, "", stays)


def test_no_process_starts_with_a_sandbox_beside_a_provider_that_is_real(shell: Shell) -> None:
    both = shell.having(
        LOOKUP_PROVIDER="offline,telnyx",
        TELNYX_API_KEY="key",
        SANDBOX="true",
        BROKER_URL=f"amqp://127.0.0.1:{free_port()}",
        PORT=str(free_port()),
    )
    names = ("web", "worker", "dispatcher", "projector", "clock", "serve", "migrate", "doctor")
    for started in [both.start(name) for name in names]:
        out, err = started.communicate(timeout=TIMEOUT_S)
        told = "Error: SANDBOX must be false beside telnyx: what it sells is real and costs money"
        assert (started.returncode, out, err) == (1, "", f"{told}\n")


def test_no_command_that_writes_runs_in_another_currency(shell: Shell) -> None:
    organization = shell.new_organization()
    euros = shell.having(CURRENCY="EUR")
    for command in (
        ("org", "suspend", organization),
        ("client", "create", "--org", organization),
        ("wallet", "deposit", organization, "1.00", "--reference", "bank-1"),
        ("jobs", "retry"),
        ("links", "retry"),
    ):
        assert euros.refusal(*command).startswith("CURRENCY must stay USD")
    assert shell.json("wallet", "show", organization)["balance"] == "0.00"
