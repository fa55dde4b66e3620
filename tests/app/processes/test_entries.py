"""What each process loads: only what its own work needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.cli.shell import ROOT, TIMEOUT_S, Shell
from tests.servers.running import free_port

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
