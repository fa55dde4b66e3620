"""Real processes with a METRICS_PORT, and what they show."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from app.watch.gauges import PREFIX
from tests.app.cli.shell import Shell
from tests.installation import wait_until
from tests.servers.running import free_port

START_S = 90.0


class Watched:
    """A process of an installation, from its start to its end."""

    def __init__(self, home: Path, command: str, **environment: str) -> None:
        self.port, self.metrics_port = free_port(), free_port()
        self._log = (home / f"{command}.log").open("w+")
        ports = {"PORT": str(self.port), "METRICS_PORT": str(self.metrics_port)}
        own = {"LOG_FORMAT": "json", "TMPDIR": str(home), **ports, **environment}
        shell = Shell(home).having(**own)
        self.process = shell.start(command, stdout=self._log, stderr=self._log)

    def get(self, path: str, port: int | None = None) -> tuple[int, str]:
        """Ask; status 0 while nobody listens."""
        url = f"http://127.0.0.1:{port or self.metrics_port}{path}"
        try:
            with urlopen(url, timeout=20) as reply:  # Our own URL.
                return int(reply.status), str(reply.read().decode())
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log()
        return self.get("/readyz")[0] == 200

    def log(self) -> str:
        return Path(self._log.name).read_text("utf-8")

    def stop(self) -> int:
        """End it as a supervisor does; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.stop()
        self._log.close()


@contextmanager
def watched(home: Path, command: str, **environment: str) -> Iterator[Watched]:
    """Run a process meanwhile."""
    process = Watched(home, command, **environment)
    try:
        yield process
    finally:
        process.close()


def until_ready(process: Watched) -> None:
    wait_until(process.is_ready, START_S)


def names_in(text: str) -> set[str]:
    """Return the names of all series and families of a scrape."""
    names: set[str] = set()
    for family in text_string_to_metric_families(text):
        suffixes = {
            "counter": ["_total"],
            "histogram": ["_bucket", "_sum", "_count"],
        }.get(family.type, [""])
        names |= {f"{family.name}{suffix}" for suffix in suffixes}
    return names


def value_of(text: str, series: str) -> float | None:
    """Return the value of a series, as the scrape writes its name behind our prefix."""
    found = [line for line in text.splitlines() if line.startswith(f"{PREFIX}{series} ")]
    return float(found[0].rpartition(" ")[2]) if found else None
