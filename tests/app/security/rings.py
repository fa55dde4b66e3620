"""What tests of tokens share: a moment, a ring, and a ring in another process."""

import atexit
import json
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

from app.security.key_file import Algorithm
from app.security.keys import KeyRing
from tests.installation import SetClock

ROOT = Path(__file__).parents[3]
RETIRE_AFTER_S = 3630
NOW = datetime(2026, 11, 21, 3, 4, 5, 678901, tzinfo=UTC)
ALGORITHMS: tuple[Algorithm, ...] = ("RS256", "ES256")


def ring_of(
    directory: Path, clock: SetClock, algorithm: Algorithm = "ES256", retire_after_s: int = 3630
) -> KeyRing:
    return KeyRing(directory, algorithm, clock, retire_after_s)


def ensured_ring(directory: Path, clock: SetClock, algorithm: Algorithm) -> KeyRing:
    """Return a ring with its first key, which is made once: RSA takes a tenth of a second."""
    copytree(_first_key(algorithm, clock.now), directory)
    return ring_of(directory, clock, algorithm)


@cache
def _first_key(algorithm: Algorithm, now: datetime) -> Path:
    home = TemporaryDirectory()
    atexit.register(home.cleanup)
    directory = Path(home.name) / "keys"
    KeyRing(directory, algorithm, lambda: now, RETIRE_AFTER_S).ensure()
    return directory


# Answers one line on standard output for each line on standard input; the first says it is ready.
OTHER_PROCESS = """
import json, sys
from pathlib import Path
from app.security.keys import KeyRing, Pepper
from domain.cause import utc_now

directory = Path(sys.argv[1])
ring = KeyRing(directory, sys.argv[2], utc_now, 3630)
def verify(kid):
    return ring.verification_key(kid) is not None
def sign(_):
    return ring.newest().kid
def ensure(_):
    ring.ensure()
    pepper = Pepper(directory, utc_now, lambda: False).newest().value
    return [ring.newest().kid, pepper.decode()]
orders = {"verify": verify, "sign": sign, "ensure": ensure}
print("ready", flush=True)
for line in sys.stdin:
    order, argument = json.loads(line)
    print(json.dumps(orders[order](argument)), flush=True)
"""


class OtherProcess:
    """A real process with a ring of its own over the same directory."""

    def __init__(self, directory: Path, algorithm: Algorithm) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", OTHER_PROCESS, str(directory), algorithm],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._orders, self._answers = self._process.stdin, self._process.stdout
        assert self._answers.readline() == "ready\n"

    def order(self, name: str, argument: str = "") -> None:
        self._orders.write(json.dumps([name, argument]) + "\n")
        self._orders.flush()

    def answer(self) -> object:
        answer: object = json.loads(self._answers.readline())
        return answer

    def ask(self, name: str, argument: str = "") -> object:
        self.order(name, argument)
        return self.answer()

    def close(self) -> None:
        self._orders.close()
        assert self._process.wait(timeout=10) == 0
        self._answers.close()
