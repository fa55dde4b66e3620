"""Writes every recording anew, or those of the tests that are named: `python -m tests.net.record`.

Afterwards `git diff` shows what users will see differently.
"""

import os
import shutil
import subprocess
import sys

from tests.net.recording import RECORDINGS, RENEW


def main() -> int:
    """Play on SQLite and keep what comes out; return the exit status of pytest."""
    named = sys.argv[1:]
    if not named:
        shutil.rmtree(RECORDINGS, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    chosen = [
        *(named or ["tests/net"]),
        "-k",
        "not postgresql",
        "--ignore=tests/net/test_coverage.py",
    ]
    return subprocess.run(
        [*command, *chosen], env={**os.environ, RENEW: "1"}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
