"""`python -m app …` in a process that does not have to import the service first.

A start takes more than a second of a processor, nearly all of it for imports, and tests start some
hundred processes. So one process imports the service once and forks: each copy gets the arguments,
environment, directory, session and files that `Popen` would give it, runs `app/__main__.py`, and
is a child of the tests like any other. What each process loads by itself, and how Python takes it
apart at its end, tests show that start a new interpreter: `tests/app/processes/test_entries.py`,
those of the Procfile, and all of `app` with SOAK=1.
"""

import atexit
import ctypes
import gc
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.servers import clock

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 60.0
REQUEST_BYTES_MAX = 1 << 17
SET_CHILD_SUBREAPER = 36  # Of prctl(2): whose parent has ended becomes a child of the caller.
# Those of the environment, which act before any code of ours, are for a new interpreter.
INTERPRETER = "PYTHON"
COPIED = {"app", "tests.net.serve"}


def start(
    arguments: Sequence[str], env: Mapping[str, str], module: str = "app", **options: Any
) -> subprocess.Popen[Any]:
    """Start `python -m module` with these arguments, as a copy where that makes no difference."""
    command = [sys.executable, "-m", module, *arguments]
    env = {**clock.inherited(), **env}
    changed = dict(env.items() - os.environ.items())
    new = (
        sys.platform != "linux"
        or module not in COPIED  # Others replace parts of the service before they are imported.
        or ("SOAK" in os.environ and module == "app")
        or "preexec_fn" in options
        or clock.PRELOAD in changed
        or any(name.startswith(INTERPRETER) for name in changed)
    )
    return (subprocess.Popen if new else Copy)(command, cwd=ROOT, env=env, **options)


def run(arguments: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    pipe = subprocess.PIPE
    with start(arguments, env, stdout=pipe, stderr=pipe, text=True) as process:
        out, errors = process.communicate(timeout=TIMEOUT_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


class Copy(subprocess.Popen[Any]):
    """A process that is forked from one that has imported the service."""

    def __init__(self, *args: Any, start_new_session: bool = False, **options: Any) -> None:
        self._leads = start_new_session
        super().__init__(*args, **options)

    def _execute_child(self, args: list[str], *options: Any) -> None:
        """Fork where `Popen` would start a program; what it has opened by then is given on."""
        cwd, env, pipes = options[4], options[5], options[9:15]
        task = {
            "module": args[2],
            "arguments": args[3:],
            "cwd": str(cwd),
            "env": dict(env),
            "leads": self._leads,
            "heeds": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN,
        }
        theirs = [pipes[0], pipes[3], pipes[5]]
        files = [number if file == -1 else file for number, file in enumerate(theirs)]
        self.pid = original().fork(task, files)
        self._child_created = True
        self._close_pipe_fds(*pipes)


class Original:
    """The process that is copied; it ends with the tests."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "tests.support.warm", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
        atexit.register(self._close)

    def fork(self, task: dict[str, Any], files: list[int]) -> int:
        """Return the process of a copy that does this task; it is a child of the caller."""
        request = json.dumps(task).encode()
        assert len(request) < REQUEST_BYTES_MAX
        with self._lock:
            _adopt(1)
            try:
                socket.send_fds(self._requests, [request], files)
                return int(self._requests.recv(REQUEST_BYTES_MAX))
            finally:
                _adopt(0)

    def _close(self) -> None:
        self._requests.close()
        self._process.wait(TIMEOUT_S)


@cache
def original() -> Original:
    return Original()


def _adopt(orphans: int) -> None:
    """Have this process be the parent of orphans below it, or no longer."""
    assert ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, orphans, 0, 0, 0) == 0


def serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for each request until the tests are over; return the task, in the copy alone."""
    while True:
        request, files, *_ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 3)
        if not request:
            os._exit(0)
        # One in between ends at once, so that the copy becomes a child of the tests.
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            copy = os.fork()
            if copy:
                os.write(writing, str(copy).encode())
                os._exit(0)
            for number, file in enumerate(files):
                os.dup2(file, number)
            for file in (*files, reading, writing, requests.detach()):
                os.close(file)
            task: dict[str, Any] = json.loads(request)
            return task
        os.waitpid(between, 0)
        requests.send(os.read(reading, 20))
        for file in (*files, reading, writing):
            os.close(file)


def become(task: dict[str, Any]) -> None:
    """Become what a new interpreter would be, and run the service."""
    if task["leads"]:
        os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler if task["heeds"] else signal.SIG_IGN)
    os.chdir(task["cwd"])
    os.environ.clear()
    os.environ.update(task["env"])
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = _text(1, "strict", by_lines=os.isatty(1))
    sys.stderr = _text(2, "backslashreplace", by_lines=True)
    sys.argv = ["", *task["arguments"]]
    try:
        runpy.run_module(task["module"], run_name="__main__", alter_sys=True)
    except SystemExit as end:  # As in `multiprocessing`: to take a copy apart is most of a command.
        threading._shutdown()  # noqa: SLF001  # As there.
        atexit._run_exitfuncs()  # noqa: SLF001  # As there.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))


def _text(number: int, errors: str, *, by_lines: bool) -> io.TextIOWrapper:
    file = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    return io.TextIOWrapper(file, "utf-8", errors, line_buffering=by_lines, write_through=at_once)


def main() -> None:
    for file in sorted((ROOT / "app").rglob("[!_]*.py")):
        import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    gc.collect()
    gc.freeze()  # So that a copy does not have to look at all of it, and to copy it, when it ends.
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        try:
            task = serve(requests)
        except KeyboardInterrupt:
            os._exit(1)  # Ctrl-C in the terminal ends the tests too.
    become(task)


if __name__ == "__main__":
    main()
