"""What private servers have in common: programs, users, ports, and a home that goes away."""

import itertools
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.servers import clock
from tests.servers.guard import Guard, is_running, pid_in

COMMAND_S = 90.0
# Below those of outgoing connections: nobody takes the port of a stopped server by chance. Each
# process of the tests has its own and takes them in turn: no two servers are given the same.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", f"gw{8 + os.getpid() % 8}")
OWN = range(20_000 + int(WORKER[2:]), 32_000, 16)
PORTS = itertools.cycle(random.sample(OWN, len(OWN)))


class CannotStart(Exception):
    """Raised when a server does not come up; holds the end of its log."""


class NotInstalled(Exception):
    """Raised when the programs of a server are not there."""


def accepts(port: int) -> bool:
    """Tell whether somebody listens on a port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=20).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    while True:
        port = next(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def newest(pattern: str) -> Path:
    """Return the program at this place of the file system, of the newest release."""
    found = sorted(Path("/").glob(pattern), key=lambda path: [len(str(path)), str(path)])
    if not found:
        message = f"there is no /{pattern}"
        raise NotInstalled(message)
    return found[-1]


class Home:
    """A temporary directory of a server, and the user that its programs run as.

    As root that is the user of the Debian package, otherwise whoever runs the tests.
    `ends` tells how the server ends: signal and PID file, as `tests.servers.guard` reads them.
    """

    def __init__(self, name: str, ends: Sequence[str]) -> None:
        self.user = name if os.geteuid() == 0 else None
        if self.user is not None and self.user not in {each.pw_name for each in pwd.getpwall()}:
            message = f"there is no user {name} to run it as"
            raise NotInstalled(message)
        self.path = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        if self.user is not None:
            shutil.chown(self.path, self.user, pwd.getpwnam(self.user).pw_gid)
        self.log = self.path / "commands.log"
        self._guard = Guard(self.path, ends)
        self._spawned: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        """End the server and remove the directory."""
        self._guard.end()
        for each in self._spawned:
            each.wait(COMMAND_S)

    def run(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> int:
        """Run a program to its end; return its exit status. What it says is in `log`."""
        with self.log.open("a") as log:
            done = subprocess.run(
                command,
                stdout=log,
                stderr=log,
                timeout=COMMAND_S,
                check=False,
                **self._as_user(environment),
            )
        return done.returncode

    def spawn(self, command: Sequence[str | Path], environment: Mapping[str, str]) -> int:
        """Start a program in the background; return its process. The guard has to end it."""
        with self.log.open("a") as log:
            started = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                **self._as_user(environment),
            )
        self._spawned.append(started)
        return started.pid

    def _as_user(self, environment: Mapping[str, str]) -> dict[str, object]:
        options: dict[str, object] = {
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,
            "cwd": self.path,
            "env": {
                "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
                "HOME": str(self.path),
                "LC_ALL": "C.UTF-8",
                **clock.inherited(),
                **environment,
            },
        }
        if self.user is not None:
            group = pwd.getpwnam(self.user).pw_gid
            options |= {"user": self.user, "group": group, "extra_groups": []}
        return options

    def last_words(self, *logs: Path) -> str:
        """Return the ends of the logs, for the report of a server that did not start."""
        files = [file for file in (self.log, *logs) if file.is_file()]
        return "\n".join(file.read_text(errors="replace")[-2_000:] for file in files)


class Server:
    """A server with a home; its file names the process that all others of it descend from."""

    def __init__(self, home: Home, pid_file: str) -> None:
        self._home, self._pid_file = home, home.path / pid_file
        self.close = home.close  # It stops the server, and removes all files.

    def restart(self) -> None:
        self.stop()
        self.start()

    def is_running(self) -> bool:
        pid = pid_in(self._pid_file)
        return pid is not None and is_running(pid)

    @property
    def pid(self) -> int:
        pid = pid_in(self._pid_file)
        assert pid is not None, "the server does not run"
        return pid
