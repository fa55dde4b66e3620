"""`python -m app serve` as a process of its own that can be killed, and operator commands."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from tests.installation import Installation
from tests.scenarios.system import Running
from tests.servers.running import free_port
from tests.support import warm

NUMBER_PATH = "/number-lookup?phone_number="


def installation_for_serving(directory: Path) -> Installation:
    port = str(free_port())
    return Installation(directory, PORT=port, TOKEN_ALGORITHM="ES256", LOG_FORMAT="json")


def serve(installation: Installation) -> Running:
    """Begin one life of the service, and wait until it answers."""
    log = installation.directory / "serve.log"
    start = partial(warm.start, ["serve"])
    return Running("serve", start, child_environment(installation), log).comes_up()


def child_environment(installation: Installation) -> dict[str, str]:
    """The settings, and nothing of this process but where programs are found."""
    return {**installation.environment, "PATH": os.environ.get("PATH", "")}


def run(installation: Installation, *arguments: str) -> tuple[int, Any]:
    """Run one operator command; return its exit status and what it printed."""
    done = warm.run([*arguments, "--json"], child_environment(installation))
    return done.returncode, json.loads(done.stdout or "null")
