"""Brings what the tests start onto a Debian machine, before `make test` needs it.

Nothing is installed where the environment names a server, where the programs are there, or without
the rights to. What is then missing is named; under CI that is the end.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers import browser, pgbouncer, postgres, rabbitmq
from tests.servers.fixtures import BROKER, CI, DATABASE
from tests.servers.running import NotInstalled, newest

HEADER = "usr/include/time.h"
PROMTOOL = "usr/bin/promtool"
NGINX, HAPROXY, HLEDGER = "usr/sbin/nginx", "usr/sbin/haproxy", "usr/bin/hledger"
SOAK = bool(os.environ.get("SOAK"))
SERVERS = [  # What people call it, the setting that names one (if any), the program, the package.
    ("PostgreSQL", DATABASE, postgres.PROGRAM, "postgresql"),
    ("RabbitMQ", BROKER, rabbitmq.PROGRAM, "rabbitmq-server"),
    ("PgBouncer", "", pgbouncer.PROGRAM, "pgbouncer"),
    ("curl", "", "usr/bin/curl", "curl"),  # These three run the samples of the guides.
    ("jq", "", "usr/bin/jq", "jq"),
    ("Node.js", "", "usr/bin/node", "nodejs"),
    ("Chromium", "", browser.PROGRAM, "chromium"),
    ("promtool", "", PROMTOOL, "prometheus"),  # It plays the alerts.
    ("systemd-analyze", "", "usr/bin/systemd-analyze", "systemd"),  # It judges the units.
    # They stand before the service where broken framing is tried, which takes minutes.
    *((("nginx", "", NGINX, "nginx"), ("HAProxy", "", HAPROXY, "haproxy")) * SOAK),
    *((("hledger", "", HLEDGER, "hledger"),) * SOAK),  # It reads the journal.
    # For the clock of the tests, which CI shifts.
    *((("A C compiler", "", "usr/bin/cc", "gcc"), ("Its headers", "", HEADER, "libc6-dev")) * CI),
]
POLICY = Path("/usr/sbin/policy-rc.d")
FORBID = "#!/bin/sh\nexit 101\n"  # Debian's word for "do not start what was installed".


def missing() -> list[tuple[str, str, str, str]]:
    """Return the servers that are neither named nor installed."""
    return [each for each in SERVERS if not os.environ.get(each[1]) and not _is_there(each[2])]


def _is_there(program: str) -> bool:
    try:
        newest(program)
    except NotInstalled:
        return False
    return True


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: Sequence[str]) -> None:
    """Install packages quietly; what apt-get says is shown when it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options = ["--yes", "--no-install-recommends"]
    for command in (["update"], ["install", *options, *packages]):
        done = subprocess.run(
            ["apt-get", "-qq", *command],  # noqa: S607  # Root's own path decides.
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.stderr.write(done.stdout + done.stderr)
            return


@contextmanager
def nothing_started() -> Iterator[None]:
    """Keep Debian from starting what it installs: the tests start servers of their own."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text(FORBID)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def main() -> int:
    """Return the exit status."""
    packages = [package for *_, package in missing()]
    if packages and can_install():
        sys.stdout.write(f"Installing {' and '.join(packages)} for the tests\n")
        sys.stdout.flush()
        with nothing_started():
            install(packages)
    absent = missing()
    for name, setting, _, package in absent:
        sys.stdout.write(
            f"{name} is missing, so its tests are skipped:"
            f" install the package {package}{f', or set {setting}' if setting else ''}\n"
        )
    return 1 if absent and CI else 0


if __name__ == "__main__":
    sys.exit(main())
